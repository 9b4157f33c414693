"""Who takes part: learners of this package, and baselines that know nothing of the features."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from olstream.comparison.score import Score
from olstream.learners._jit import F64, I64
from olstream.learners._score import LARGEST
from olstream.messages import Example, Label
from olstream.model import Model, Rows

Task: TypeAlias = Literal["binary", "multiclass", "regression"]


@dataclass(frozen=True, slots=True)
class Shown:
    """Rows that everybody gets, in order, in columns of n."""

    examples: Sequence[Example]
    measured: NDArray[np.bool_]  # has a label, and a weight above 0
    target: F64  # regression: the label
    truth: I64  # classification: index of the label's class
    forms: Sequence[Label | None]  # classes by index, as they were first seen

    def __len__(self) -> int:
        return len(self.examples)


class Entrant(Protocol):
    """Predicts each row, then learns it."""

    name: str
    score: Score

    def take(self, shown: Shown) -> None: ...


class Ours:
    """A learner of this package."""

    def __init__(self, name: str, model: Model, fading: float) -> None:
        self.name = name
        self.model = model
        self.score = Score(fading)
        self.score.learnt(0, 0.0)
        model.warm_up()  # so that rows a second tell of learning, not of compiling

    def take(self, shown: Shown) -> None:
        start = 0
        while start < len(shown):
            taken = slice(start, min(start + self.model.room, len(shown)))
            began = time.perf_counter()
            rows = self.model.predict_then_update(shown.examples[taken])
            self.score.seconds += time.perf_counter() - began
            self._count(rows, shown.target[taken])
            start = taken.stop

    def _count(self, rows: Rows, target: F64) -> None:
        measured = rows.measured != 0
        self.score.rows += rows.n - len(rows.rejects)
        self.score.learnt(rows.counts.updated, rows.counts.loss)
        if self.model.task == "regression":
            self.score.add(distances(target[measured], rows.score[measured]))
        else:
            self.score.add((rows.correct[measured] != 1).astype(np.float64))


class Majority:
    """Guesses the class that was the most frequent so far; of several the first one."""

    name = "majority"

    def __init__(self, fading: float) -> None:
        self.score = Score(fading)
        self._counts: Counter[int] = Counter()
        self._best = -1

    def take(self, shown: Shown) -> None:
        truths = shown.truth[shown.measured].tolist()
        errors = np.zeros(len(truths))
        for i, truth in enumerate(truths):
            errors[i] = truth != self._best
            self._counts[truth] += 1
            here, there = self._counts[truth], self._counts[self._best]
            if here > there or (here == there and truth < self._best):
                self._best = truth
        self.score.add(errors)


class LastLabel:
    """Guesses the class of the row before."""

    name = "last label"

    def __init__(self, fading: float) -> None:
        self.score = Score(fading)
        self._last = -1

    def take(self, shown: Shown) -> None:
        truths = shown.truth[shown.measured]
        if truths.size:
            before = np.concatenate([[self._last], truths[:-1]])
            self._last = int(truths[-1])
            self.score.add((truths != before).astype(np.float64))


class MeanSoFar:
    """Guesses the mean of the labels so far, at first 0."""

    name = "mean so far"

    def __init__(self, fading: float) -> None:
        self.score = Score(fading)
        self._n = 0
        self._mean = 0.0

    def take(self, shown: Shown) -> None:
        labels = shown.target[shown.measured].tolist()
        means = np.zeros(len(labels))
        for i, label in enumerate(labels):
            means[i] = self._mean
            self._n += 1
            self._mean += label / self._n - self._mean / self._n
        self.score.add(distances(np.array(labels), means))


class LastValue:
    """Guesses the label of the row before, at first 0."""

    name = "last value"

    def __init__(self, fading: float) -> None:
        self.score = Score(fading)
        self._last = 0.0

    def take(self, shown: Shown) -> None:
        labels = shown.target[shown.measured]
        if labels.size:
            self.score.add(distances(labels, np.concatenate([[self._last], labels[:-1]])))
            self._last = float(labels[-1])


def baselines(task: Task, fading: float) -> list[Entrant]:
    """Two for the task."""
    return [MeanSoFar(fading), LastValue(fading)] if task == "regression" else [Majority(fading), LastLabel(fading)]


def distances(labels: F64, guesses: F64) -> F64:
    """How far the guesses are off; no number is worse than the largest."""
    with np.errstate(over="ignore", invalid="ignore"):
        off = np.abs(labels - guesses)
    return np.where(np.isfinite(off), np.minimum(off, LARGEST), LARGEST)
