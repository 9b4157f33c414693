"""PA for several classes: the best wrong class, all wrong classes, or the predicted one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from olstream import Learner
from olstream.errors import ConfigError
from tests.learners.beliefs import sparse_rows

VARIANTS = ("pa", "pa1", "pa2")
CONSTRAINTS = ("single", "all", "prediction")
C = 0.3


def learner(name: str, constraint: str, **settings: Any) -> Learner:
    params = {"constraint": constraint} | ({} if name == "pa" else {"C": C})
    return Learner(name, "multiclass", params, bias=False, **settings)


def stream(classes: int, seed: int) -> zip[tuple[Any, str]]:
    labels = np.random.default_rng(seed).integers(0, classes, 60)
    return zip(sparse_rows(60, 4, seed), (f"class {k}" for k in labels), strict=True)


def matrix(m: Learner) -> Any:
    """(K, d)"""
    return np.array([list(vector.values()) for vector in m.weights().values()])


def scores(m: Learner, x: Any) -> dict[str, float]:
    return dict(m.predict(x).scores or {})


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_the_weights_of_all_classes_sum_to_zero(name: str, constraint: str) -> None:
    m = learner(name, constraint)

    for x, label in stream(4, 0):
        m.learn(x, label)

        assert matrix(m).sum(axis=0) == pytest.approx(np.zeros(4), abs=1e-12)


def test_after_a_step_of_pa_every_wrong_class_is_one_behind() -> None:
    m = learner("pa", "all")

    for x, label in stream(5, 1):
        before = m.weights()
        report = m.learn(x, label)

        found = scores(m, x)
        behind = {k: found[label] - found[k] for k in found if k != label}
        assert all(gap >= 1.0 - 1e-9 for gap in behind.values())
        at_fault = moved_down(m, before, label)
        assert [behind[k] for k in at_fault] == pytest.approx([1.0] * len(at_fault))
        assert not report.updated or report.loss_after == pytest.approx(0.0, abs=1e-9)


def moved_down(m: Learner, before: Any, label: str) -> list[str]:
    """The wrong classes that took part in the last step."""
    return [k for k, vector in m.weights().items() if k != label and vector != before.get(k, vector)]


def test_the_steps_of_pa1_against_all_sum_to_no_more_than_c() -> None:
    m, capped = learner("pa1", "all"), 0

    for x, label in stream(5, 2):
        report = m.learn(x, label)

        assert report.step <= C * (1.0 + 1e-12)
        capped += report.step == pytest.approx(C)
        if 0.0 < report.step < 0.99 * C:
            assert report.loss_after == pytest.approx(0.0, abs=1e-9)
    assert capped > 10


def test_every_class_at_fault_is_left_the_same_violation_by_pa2() -> None:
    m = learner("pa2", "all")

    for x, label in stream(5, 3):
        before = m.weights()
        report = m.learn(x, label)

        found = scores(m, x)
        for k in moved_down(m, before, label):
            assert 1.0 - (found[label] - found[k]) == pytest.approx(report.step / (2.0 * C), abs=1e-9)


@pytest.mark.parametrize("name", VARIANTS)
def test_with_two_classes_all_is_single(name: str) -> None:
    every, single = learner(name, "all"), learner(name, "single")

    for x, label in stream(2, 4):
        every.learn(x, label)
        single.learn(x, label)

        assert matrix(every) == pytest.approx(matrix(single), abs=1e-12)


def test_the_runner_up_after_a_step_against_one_class_may_be_another() -> None:
    start = {"a": {"x": 1.0}, "b": {"x": 0.9}, "c": {"x": 0.0}}
    m = learner("pa", "single", weights=start)

    report = m.learn({"x": 1.0}, "c")

    # l = 2 over 2 ||x||^2: the step is 1, and b is left where it was
    assert (report.margin, report.loss, report.step) == (-1.0, 2.0, 1.0)
    assert scores(m, {"x": 1.0}) == pytest.approx({"a": 0.0, "b": 0.9, "c": 1.0})
    assert report.margin_after == pytest.approx(0.1)


def test_what_was_predicted_right_is_left_alone_however_narrowly() -> None:
    m = learner("pa", "prediction", weights={"a": {"x": 0.1}, "b": {"x": 0.0}})

    report = m.learn({"x": 1.0}, "a")

    assert (report.margin, report.loss, report.updated) == (0.1, 0.0, False)


COSTS = [[0.0, 4.0, 1.0], [1.0, 0.0, 9.0], [1.0, 1.0, 0.0]]  # rows: the true class


@pytest.mark.parametrize("cost", [COSTS, {"a": {"b": 4}, "b": {"c": 9.0}}], ids=["matrix", "mapping"])
def test_what_was_predicted_wrong_is_put_right_by_the_root_of_its_cost(cost: Any) -> None:
    for truth, taken, root in (("a", "b", 2.0), ("b", "c", 3.0), ("c", "b", 1.0)):
        start = {k: {"x": 0.5 if k == taken else 0.0} for k in "abc"}
        m = Learner("pa", "multiclass", {"constraint": "prediction", "cost": cost},
                    bias=False, classes=["a", "b", "c"], weights=start)  # fmt: skip

        report = m.learn({"x": 2.0}, truth)

        found = scores(m, {"x": 2.0})
        assert report.loss == pytest.approx(1.0 + root)
        assert report.step == pytest.approx((1.0 + root) / 8.0)
        assert found[truth] - found[taken] == pytest.approx(root)


@pytest.mark.parametrize(("cost", "wrong"), [
    ([[0, 1], [1, 0]], "must have 3 rows of 3 costs"),
    ([[0, 1, 1], [1, 0, 1], [1, 1]], "must have 3 rows of 3 costs"),
    ([[0, 1, 1], [1, 2, 1], [1, 1, 0]], r"the right class costs 0, not 2 \(b\)"),
    ([[0, 1, -1], [1, 0, 1], [1, 1, 0]], "a cost is a finite number >= 0, not -1"),
    ([[0, 1, math.nan], [1, 0, 1], [1, 1, 0]], "a cost is a finite number >= 0, not nan"),
    ({"d": {"a": 1}}, "'d' is none of the classes a, b, c"),
    ({"a": 1}, "the costs of class 'a' must be"),
])  # fmt: skip
def test_costs_that_cannot_be_are_refused(cost: Any, wrong: str) -> None:
    with pytest.raises(ConfigError, match=rf"params\.cost.*{wrong}"):
        Learner("pa", "multiclass", {"constraint": "prediction", "cost": cost}, classes=["a", "b", "c"])


def test_costs_need_declared_classes_and_the_constraint_that_reads_them() -> None:
    with pytest.raises(ConfigError, match=r"params\.cost needs `classes`"):
        Learner("pa", "multiclass", {"constraint": "prediction", "cost": COSTS})
    with pytest.raises(ConfigError, match=r"params\.cost is for constraint: prediction"):
        Learner("pa", "multiclass", {"cost": COSTS}, classes=["a", "b", "c"])
