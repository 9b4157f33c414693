"""Everybody gets the same rows, and is ranked by what they made of them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from olstream.admit import Admission
from olstream.classes import Classes
from olstream.comparison.contest import Contest
from olstream.comparison.entrants import Entrant, Ours, Task, baselines
from olstream.config import LearnerConfig, MonitorConfig
from olstream.messages import Example, Label, Reason, Reject
from olstream.model import Model

FADING = 0.99


def contest(task: Task = "binary", algorithms: tuple[str, ...] = ("pa1", "pa2"), classes_max: int = 1000) -> Contest:
    ours = [Ours(name, model(task, name), FADING) for name in algorithms]
    classes = None if task == "regression" else Classes(task, None, classes_max)
    return Contest(Admission(classes, {}), ours, baselines(task, FADING))


def model(task: Task, algorithm: str) -> Model:
    return Model(algorithm, LearnerConfig(algorithm=algorithm, task=task), MonitorConfig())


def rows(task: Task, n: int = 700) -> list[Example]:
    rng = random.Random(3)
    made = []
    for i in range(n):
        x = {"a": rng.gauss(0, 1), "b": rng.gauss(0, 1), "c": rng.choice("rgb")}
        label: Label = x["a"] + 0.2 * i / n  # type: ignore[operator]
        if task != "regression":
            label = "abc"[int(label > 0) + (label > 1 and task == "multiclass")]  # type: ignore[operator]
        made.append(Example(features=x, label=label if rng.random() < 0.8 else None))
    return made


def errors(entrants: Any) -> dict[str, Any]:
    return {entrant.name: (entrant.score.labelled, entrant.score.error_sum) for entrant in entrants}


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_a_learner_does_here_what_it_does_alone(task: Task) -> None:
    stream, held = rows(task), contest(task)
    alone = model(task, "pa1")

    for start in range(0, len(stream), 64):
        held.take(stream[start : start + 64])
        alone.predict_then_update(stream[start : start + 64])

    entrant = held.entrants[0]
    tally, score = alone.tally, entrant.score
    assert isinstance(entrant, Ours) and entrant.model.digest() == alone.digest()
    assert (score.rows, score.labelled, score.updates) == (tally.seen, tally.labelled, tally.updates)
    assert score.error_mean == pytest.approx(
        tally.mean_absolute_error() if task == "regression" else tally.error_rate()
    )
    assert score.loss_mean == pytest.approx(tally.loss_mean())


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_baselines_are_those_of_the_evaluation(task: Task) -> None:
    stream, held, alone = rows(task), contest(task), model(task, "pa1")

    for start in range(0, len(stream), 100):
        held.take(stream[start : start + 100])
        alone.predict_then_update(stream[start : start + 100])

    majority, last = (baseline.score.error_mean for baseline in held.baselines)
    assert majority == alone.tally.baseline("majority")
    assert last == alone.tally.baseline("no_change")


def test_the_form_of_the_first_rows_is_that_of_all() -> None:
    held = contest()

    held.take([Example(features=[1.0, 2.0], label="a")])
    held.take([Example(features={"x": 1.0}, label="a"), Example(features=[1.0], label="a")])

    assert held.rejected == {Reason.DIMENSION: 2}
    assert "array of 2 numbers" in held.details[Reason.DIMENSION]


def test_of_equally_frequent_classes_the_first_in_order_is_guessed() -> None:
    held, alone = contest(), model("binary", "pa1")
    labelled = [Example(features={}, label=label) for label in ("a", "b", "b", "a", "a")]  # `b` is the negative one

    held.take(labelled)
    alone.predict_then_update(labelled)

    assert held.baselines[0].score.error_sum == 4.0
    assert alone.tally.baseline("majority") == 4 / 5


def test_baselines_of_a_regression_by_hand() -> None:
    held = contest("regression")

    held.take([Example(features={}, label=y) for y in (2.0, 4.0)])
    held.take([Example(features={}, label=None), Example(features={}, label=9.0)])

    assert errors(held.baselines) == {"mean so far": (3, 2.0 + 2.0 + 6.0), "last value": (3, 2.0 + 2.0 + 5.0)}


def test_how_rows_are_cut_into_batches_changes_nothing() -> None:
    told = []
    for size in (1, 33, 700):
        held = contest("multiclass")
        stream = rows("multiclass")
        for start in range(0, len(stream), size):
            held.take(stream[start : start + size])
        told.append((errors([*held.entrants, *held.baselines]), held.entrants[0].score.curve.points))

    assert told[0] == told[1] == told[2]


def test_what_the_task_cannot_take_is_counted_and_nobody_gets_it() -> None:
    held = contest()

    held.take(
        [
            Reject(Reason.BAD_JSON, ""),
            Example(id=1, label="a"),
            Example(features={"x": 1.0}, label="a"),
            Example(features={"x": 1.0}, label=0.5),
            Example(features=[1.0], label="a"),
            Example(features={"x": 1.0}, label="b"),
            Example(features={"x": 1.0}, label="c"),
            Example(features={"x": 1.0}, label="a", weight=0.0),
            Example(features={"x": 1.0}),
        ]
    )

    assert dict(held.rejected) == {
        Reason.BAD_JSON: 1,
        Reason.BAD_LABEL: 1,
        Reason.DIMENSION: 1,
        Reason.UNKNOWN_LABEL: 1,
    }
    assert (held.rows, held.unmatched, held.labelled) == (9, 1, 2)
    assert all(entrant.score.labelled == 2 for entrant in (*held.entrants, *held.baselines))
    assert all(entrant.score.rows == 4 for entrant in held.entrants)


class Fixed:
    """An entrant that is wrong in a set part of the rows."""

    def __init__(self, name: str, wrong: list[float]) -> None:
        self.name = name
        self.score = contest().entrants[0].score
        self.score.add(np.array(wrong))

    def take(self, shown: Any) -> None: ...


def test_the_best_comes_first_and_equals_share_a_rank() -> None:
    entrants: list[Entrant] = [
        Fixed("bad", [1.0, 1.0]),
        Fixed("good", [0.0, 1.0]),
        Fixed("new", []),
        Fixed("as good", [1.0, 0.0]),
    ]
    held = Contest(Admission(None, {}), entrants, [Fixed("baseline", [1.0, 1.0])])

    assert [(rank, entrant.name) for rank, entrant in held.ranked()] == [
        (1, "good"),
        (1, "as good"),
        (3, "bad"),
        (None, "new"),
    ]
    assert held.no_better_than_a_baseline() == ["bad"]
