"""Which learners are measured alone, over which rows, and how long a pass of theirs takes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Final, NamedTuple

import numpy as np

from olstream.bench.load import FEATURES
from olstream.learners import base
from olstream.learners._jit import F64, I64
from olstream.learners._state import BIAS, LinearState
from olstream.vocabulary import FIRST_NAMED

CLASSES: Final = 10
CHUNK: Final = 500  # rows of a pass, as many as the service takes at once
WINDOWED_ROWS: Final = 500  # of a learner that solves its last rows again and again


class Problem(NamedTuple):
    """n rows of 20 numbers of so many `names`: `columns` and `values` (n, 20), and for each task a target (n,)."""

    names: int
    columns: I64
    values: F64
    targets: Mapping[base.Task, F64]

    def first(self, n: int) -> Problem:
        targets = {task: target[:n] for task, target in self.targets.items()}
        return Problem(self.names, self.columns[:n], self.values[:n], targets)


def problem(n: int, names: int, seed: int = 20) -> Problem:
    """The targets follow noisy linear rules. Of many names each row has one of every twentieth part of them."""
    rng = np.random.default_rng(seed)
    part = names // FEATURES
    columns = np.arange(FEATURES) * part + rng.integers(0, part, (n, FEATURES))
    values = np.round(rng.normal(size=(n, FEATURES)), 6)
    rules = [rng.normal(size=names) for _ in range(CLASSES)]
    scores = np.array([(rule[columns] * values).sum(axis=1) for rule in rules]) + rng.normal(size=(CLASSES, n))
    targets: dict[base.Task, F64] = {
        "binary": np.where(scores[0] > 0.0, 1.0, -1.0),
        "multiclass": scores.argmax(axis=0).astype(np.float64),
        "regression": scores[0],
    }
    return Problem(names, columns, values, targets)


@dataclass(frozen=True, slots=True)
class Form:
    """An algorithm for a task; `more` tells what is not its default."""

    name: str
    task: base.Task = "binary"
    more: str = ""
    params: Mapping[str, object] = field(default_factory=dict)
    multiclass: str = "direct"

    @property
    def shown(self) -> str:
        return f"olstream {self.name}{', ' if self.more else ''}{self.more}"

    def learning(self) -> base.Learning:
        algorithm = base.algorithm(self.name)
        return algorithm.learning(self.task, algorithm.check(self.task, self.params), self.multiclass)


MORE: Final = (
    Form("arow", more="full covariance", params={"covariance": "full"}),
    Form("arow", "multiclass", f"{CLASSES} classes"),
    Form("arow", "multiclass", f"{CLASSES} classes one_vs_rest", multiclass="one_vs_rest"),
    Form("pa1", "multiclass", f"{CLASSES} classes"),
    Form("logistic", "multiclass", f"{CLASSES} classes"),
    Form("arow", "regression", "regression"),
    Form("pa1", "regression", "regression"),
)


def forms() -> list[Form]:
    """Every algorithm with its defaults, binary where it can, and a few more."""
    found = base.algorithms().items()
    usual = [(name, "binary" if algorithm.takes("binary") else algorithm.tasks[0]) for name, algorithm in found]
    return [Form(name, task, "" if task == "binary" else task) for name, task in usual] + list(MORE)


class Told(NamedTuple):
    """Microseconds of CPU per row, and the share of wrong predictions where there are classes."""

    us: float
    wrong: float | None


def measured(form: Form, rows: Problem, repetitions: int) -> Told | str:
    """The median of passes from the empty state, or the reason why these rows are not for it."""
    learning = form.learning()
    if learning.features_max is not None and learning.features_max < rows.names:
        return f"left out: it keeps {learning.features_max:,} features apart"
    if learning.anatomy.window:
        rows, repetitions = rows.first(WINDOWED_ROWS), 1
    _timed(form.task, learning, rows.first(CHUNK // 5))  # compiles
    runs = [_timed(form.task, learning, rows) for _ in range(repetitions)]
    return Told(median(run.us for run in runs), runs[0].wrong)


def _entries(rows: Problem) -> base.Entries:
    """With the bias, where the service has it."""
    n, width = len(rows.values), FEATURES + 1
    columns = np.insert(rows.columns + FIRST_NAMED, 0, BIAS, axis=1)
    values = np.insert(rows.values, 0, 1.0, axis=1)
    return base.Entries(np.arange(0, (n + 1) * width, width), columns.ravel(), values.ravel())


def _timed(task: base.Task, learning: base.Learning, rows: Problem) -> Told:
    entries, target = _entries(rows), rows.targets[task]
    classes = CLASSES if task == "multiclass" else None
    state = LinearState(learning.anatomy)
    state.use(classes or 1, FIRST_NAMED + rows.names)
    has_spreads = learning.anatomy.prior is not None
    seconds, wrong = 0.0, 0
    for start in range(0, len(target), CHUNK):
        truths = target[start : start + CHUNK]
        columns = base.Columns(len(truths), classes, has_spreads)
        columns.numbers[base.TARGET] = truths
        columns.numbers[base.WEIGHT] = 1.0
        columns.codes[base.KNOWN] = classes or 0
        chunk = entries._replace(indptr=entries.indptr[start : start + len(truths) + 1])
        start_s = time.process_time()
        learning.run(state, chunk, columns)
        seconds += time.process_time() - start_s
        wrong += _wrong(task, columns, truths)
    return Told(seconds / len(target) * 1e6, None if task == "regression" else wrong / len(target))


def _wrong(task: base.Task, columns: base.Columns, truths: F64) -> int:
    if task == "multiclass":
        return int(np.count_nonzero(columns.codes[base.WINNER] != truths))
    return int(np.count_nonzero((columns.numbers[base.SCORE] >= 0.0) != (truths > 0.0)))
