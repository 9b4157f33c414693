"""Models of other libraries, known by what they can do; stood in for by small ones of their kind."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from olstream.admit import Admission
from olstream.classes import Classes
from olstream.comparison.contest import Contest
from olstream.comparison.entrants import Task
from olstream.comparison.foreign import entrant
from olstream.errors import ConfigError
from olstream.messages import Example


class Rivers:
    """Remembers what it was shown, and answers with the last label."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, Any, Any]] = []
        self.answer: Any = None

    def predict_one(self, x: Any) -> Any:
        self.shown.append(("predict", x, None))
        return self.answer

    def learn_one(self, x: Any, y: Any) -> None:
        self.shown.append(("learn", x, y))
        self.answer = np.bool_(y) if isinstance(y, bool) else y


class Scikits:
    """The same with arrays."""

    def __init__(self) -> None:
        self.shown: list[tuple[Any, list[Any], dict[str, Any]]] = []

    def predict(self, X: Any) -> Any:
        assert X.shape[0] == 1
        return np.array(self.shown[-1][1])

    def partial_fit(self, X: Any, y: Any, **more: Any) -> None:
        self.shown.append((X, y.tolist(), more))


class Broken(Rivers):
    """Fails at its second row."""

    def learn_one(self, x: Any, y: Any) -> None:
        if self.answer is not None:
            raise TypeError("can't multiply\nsequence")
        super().learn_one(x, y)


@pytest.fixture
def made() -> Iterator[SimpleNamespace]:
    """A module `others` whose factories leave what they made in `last`."""
    module = SimpleNamespace(last=None, number=7)

    def factory(kind: Any) -> Any:
        def build() -> Any:
            module.last = kind()
            return module.last

        return build

    module.river, module.scikit, module.broken = factory(Rivers), factory(Scikits), factory(Broken)
    module.inner = SimpleNamespace(scikit=module.scikit)
    module.nothing = object
    sys.modules["others"] = module  # type: ignore[assignment]
    yield module
    del sys.modules["others"]


def held(named: str, task: Task, rows: list[Example], classes: list[Any] | None = None) -> Contest:
    door = None if task == "regression" else Classes(task, classes)
    one = entrant(named, task, None if classes is None else len(classes), 0.99)
    contest = Contest(Admission(door, {}), [one], [])
    contest.take(rows[:2])
    contest.take(rows[2:])
    return contest


ROWS = [
    Example(features={"x": 1.0, "color": "red"}, label="spam"),
    Example(features={"x": 2.0}, label="ham"),
    Example(features={"x": 5.0}, label=None),
    Example(features={"x": 3.0, "color": "blue"}, label="ham"),
]


def test_a_model_of_rivers_kind_predicts_then_learns_named_features(made: SimpleNamespace) -> None:
    contest = held("others:river", "binary", ROWS)

    assert made.last.shown == [
        ("predict", {"x": 1.0, "color": "red"}, None),
        ("learn", {"x": 1.0, "color": "red"}, True),
        ("predict", {"x": 2.0}, None),
        ("learn", {"x": 2.0}, False),
        ("predict", {"x": 3.0, "color": "blue"}, None),
        ("learn", {"x": 3.0, "color": "blue"}, False),
    ]
    score = contest.entrants[0].score
    assert (score.rows, score.labelled, score.error_sum) == (3, 3, 2.0)  # it knew nothing of the first
    assert (score.loss_mean, score.updates) == (None, None)


def test_of_several_classes_it_gets_the_class_itself(made: SimpleNamespace) -> None:
    rows = [Example(features=[0.5, 1.0], label=label) for label in (3, 3.0, "3", 4)]

    contest = held("others:river", "multiclass", rows)

    assert [y for what, _, y in made.last.shown if what == "learn"] == [3, 3, 3, 4]
    assert made.last.shown[0][1] == {"0": 0.5, "1": 1.0}
    assert contest.entrants[0].score.error_sum == 2.0


def test_in_a_regression_it_gets_the_value(made: SimpleNamespace) -> None:
    rows = [Example(features={"x": 1.0}, label=label) for label in (3.0, 5, 4.5)]

    assert held("others:river", "regression", rows).entrants[0].score.error_sum == 3.0 + 2.0 + 0.5
    assert held("others:scikit", "regression", rows).entrants[0].score.error_sum == 3.0 + 2.0 + 0.5
    assert made.last.shown[0][2] == {}


def test_a_model_of_scikit_learns_kind_gets_one_row_at_a_time(made: SimpleNamespace) -> None:
    contest = held("others:inner.scikit", "binary", ROWS)

    matrices = [x.toarray()[0] for x, _, _ in made.last.shown]
    assert [np.flatnonzero(row).tolist() for row in matrices] == [[2, 3], [3], [3, 4]]
    assert len({row.size for row in matrices}) == 1
    assert [y for _, y, _ in made.last.shown] == [[1], [0], [0]]
    assert all(more["classes"].tolist() == [0, 1] for _, _, more in made.last.shown)
    assert contest.entrants[0].score.error_sum == 2.0


def test_rows_of_arrays_are_dense_there(made: SimpleNamespace) -> None:
    rows = [Example(features=[0.5, float(i)], label="abc"[i % 3]) for i in range(4)]

    held("others:scikit", "multiclass", rows, ["a", "b", "c"])

    assert [x.tolist() for x, _, _ in made.last.shown] == [[[0.5, float(i)]] for i in range(4)]
    assert made.last.shown[0][2]["classes"].tolist() == [0, 1, 2]


def test_a_guess_that_is_no_number_is_as_wrong_as_can_be(made: SimpleNamespace) -> None:
    rows = [Example(features={}, label=1.0)] * 2
    one = entrant("others:river", "regression", None, 0.99)
    made.last.answer = float("nan")

    contest = Contest(Admission(None, {}), [one], [])
    contest.take(rows[:1])

    assert 1e308 < (one.score.error_mean or 0.0) < float("inf")


@pytest.mark.parametrize(
    ("named", "task", "told"),
    [
        ("others", "binary", "write module:factory, such as river.linear_model:PAClassifier"),
        ("others:", "binary", "write module:factory"),
        ("no_such_module:f", "binary", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("others:missing", "binary", "AttributeError"),
        ("others:number", "binary", "TypeError: 'int' object is not callable"),
        ("others:nothing", "binary", "object has neither predict_one and learn_one, nor predict and partial_fit"),
        ("others:scikit", "multiclass", "partial_fit must be told all classes beforehand: add --classes"),
    ],
)
def test_what_cannot_be_compared_is_told_in_a_sentence(
    made: SimpleNamespace, named: str, task: Task, told: str
) -> None:
    with pytest.raises(ConfigError, match=told) as error:
        entrant(named, task, None, 0.99)

    assert str(error.value).startswith(f"--also {named}: ")
    assert "\n" not in str(error.value)


def test_a_failure_of_the_model_names_the_row(made: SimpleNamespace) -> None:
    with pytest.raises(ConfigError, match="others:broken: at labelled row 2: TypeError: can't multiply sequence"):
        held("others:broken", "binary", ROWS)
