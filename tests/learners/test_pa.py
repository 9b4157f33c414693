"""PA, PA-I and PA-II against the paper: by hand, and against the slow reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from olstream import Learner
from olstream.errors import ConfigError
from olstream.learners.base import TASKS, Task
from tests.learners.beliefs import labels_for, sparse_rows
from tests.references.first_order import Kind, PassiveAggressive, PassiveAggressiveRegression, PassiveAggressiveSingle

VARIANTS: tuple[Kind, ...] = ("pa", "pa1", "pa2")


def learner(kind: str, task: Task = "binary", **params: float) -> Learner:
    return Learner(kind, task=task, params=params, bias=False)


def test_a_pa_step_by_hand() -> None:
    m = Learner("pa", bias=False, weights={"x": 0.2})

    report = m.learn({"x": 1.0}, 1)

    assert report.margin == pytest.approx(0.2)
    assert report.loss == pytest.approx(0.8)
    assert report.step == pytest.approx(0.8)
    assert m.weights() == {"x": pytest.approx(1.0)}
    assert report.margin_after == pytest.approx(1.0)
    assert report.loss_after == pytest.approx(0.0)


def test_a_pa1_step_is_capped_at_c_by_hand() -> None:
    m = Learner("pa1", params={"C": 0.3}, bias=False, weights={"x": 0.2})

    report = m.learn({"x": 1.0}, 1)

    assert report.step == 0.3
    assert m.weights() == {"x": pytest.approx(0.5)}
    assert report.margin_after == pytest.approx(0.5)
    assert report.loss_after == pytest.approx(0.5)


@pytest.mark.parametrize(("kind", "weight"), [("pa", 1.0), ("pa1", 1.0), ("pa2", 2 / 3)])
def test_a_zero_vector_teaches_nothing_and_the_next_row_everything(kind: str, weight: float) -> None:
    m = learner(kind)

    nothing = m.learn({"x": 0, "y": 0}, "a")
    m.learn({"x": 1}, "a")

    assert (nothing.score, nothing.loss, nothing.updated, nothing.skip_reason) == (0.0, 1.0, False, "zero_norm")
    assert m.weights() == {"x": pytest.approx(weight, abs=1e-9), "y": 0.0}


@pytest.mark.parametrize(("C", "weight"), [(0.1, 0.1666667), (10, 0.9523810)])
def test_pa2_has_one_over_two_c_in_the_denominator(C: float, weight: float) -> None:
    m = learner("pa2", C=C)

    m.learn({"x": 1}, 1)

    assert m.weights()["x"] == pytest.approx(weight, abs=1e-7)


def test_pa2_regression_step_by_hand() -> None:
    m = learner("pa2", "regression", C=0.5, eps=0.5)

    report = m.learn({"x": 2.0}, 3.0)

    # loss 3 - 0 - 0.5, over 4 + 1 / (2 * 0.5): tau = 2.5 / 5, and tau / (2 C) is what remains
    assert (report.loss, report.step) == (2.5, 0.5)
    assert m.weights() == {"x": 1.0}
    assert report.score_after == 2.0
    assert report.loss_after == pytest.approx(0.5)


def test_pa_regression_ends_at_the_edge_of_the_tube() -> None:
    m = learner("pa", "regression", eps=0.0)

    m.learn({"x": 1}, 3)

    assert m.predict({"x": 1}).score == 3.0


def test_a_right_sign_with_a_small_margin_is_learnt_from() -> None:
    m = Learner("pa1", bias=False, weights={"x": 0.4})

    report = m.learn({"x": 1.0}, 1)

    assert report.score > 0
    assert report.updated


def test_a_loss_of_zero_leaves_everything_as_it_was() -> None:
    m = Learner("pa", bias=False, weights={"x": 1.5})

    report = m.learn({"x": 1.0}, 1)

    assert (report.loss, report.step, report.updated, report.skip_reason) == (0.0, 0.0, False, None)
    assert m.weights() == {"x": 1.5}


def test_the_bias_is_part_of_the_norm_so_that_the_margin_is_one() -> None:
    m = Learner("pa")

    report = m.learn({"x": 1.0, "y": 2.0}, 1)

    assert report.margin_after == pytest.approx(1.0, abs=1e-12)
    assert m.bias() == pytest.approx(1 / 6)


def test_multiclass_moves_only_the_true_class_and_the_best_wrong_one() -> None:
    m = learner("pa", "multiclass")
    for name, label in (("x", "a"), ("y", "b"), ("z", "c")):
        m.learn({name: 1.0}, label)
    before = m.weights()

    report = m.learn({"x": 1.0}, "c")

    after = m.weights()
    assert report.margin == pytest.approx(before["c"]["x"] - before["a"]["x"])
    assert report.step == pytest.approx((report.loss or 0.0) / 2)
    assert after["b"] == before["b"]
    assert after["c"]["x"] - after["a"]["x"] == pytest.approx(1.0)
    assert sum(after[k]["x"] for k in "abc") == pytest.approx(0.0)


def test_the_first_class_is_only_registered_and_the_second_competes() -> None:
    m = learner("pa1", "multiclass")

    first = m.learn({"x": 1.0}, "a")
    second = m.learn({"x": 1.0}, "b")

    assert (first.loss, first.updated, first.margin) == (0.0, False, None)
    assert (second.loss, second.margin, second.updated) == (1.0, 0.0, True)
    assert m.classes == ["a", "b"]


def test_equal_scores_go_to_the_class_that_was_seen_first() -> None:
    m = learner("pa1", "multiclass")
    for label in ("b", "a", "c"):
        m.learn({}, label)

    assert m.predict({"x": 1.0}).label == "b"


SLOW: dict[Task, Any] = {
    "binary": PassiveAggressive,
    "multiclass": PassiveAggressiveSingle,
    "regression": PassiveAggressiveRegression,
}


@pytest.mark.parametrize("kind", VARIANTS)
@pytest.mark.parametrize("task", TASKS)
def test_one_call_for_many_rows_agrees_with_the_paper_row_by_row(kind: Kind, task: Task) -> None:
    rng = np.random.default_rng(4)
    X, y, h = sparse_rows(80, 4, 4), labels_for(task, 80, 4), rng.uniform(0.2, 3.0, 80)
    params: dict[str, float] = {} if kind == "pa" else {"C": 0.4}
    m, slow = learner(kind, task, **params), SLOW[task](4, kind, 0.4)
    order = list(dict.fromkeys(y))

    reports = m.learn_many(X, y, h)

    for i, report in enumerate(reports):
        expected = slow.learn(X[i], order.index(y[i]) if task == "multiclass" else y[i], h[i])
        if expected["margin"] is None:  # one class known, or a regression
            del expected["margin"], expected["margin_after"]
        assert {key: getattr(report, key) for key in expected} == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("kind", VARIANTS)
def test_what_is_left_of_the_loss_is_what_the_paper_says(kind: Kind) -> None:
    C = 0.3
    m = learner(kind, "binary", **({} if kind == "pa" else {"C": C}))

    for x, label in zip(sparse_rows(60, 4, 5), labels_for("binary", 60, 5), strict=True):
        before = np.array([*m.weights().values()] or [0.0] * 4)
        report = m.learn(x, label)
        moved, n2 = np.array([*m.weights().values()]) - before, float(x @ x)

        loss, margin = report.loss or 0.0, report.margin or 0.0
        assert moved == pytest.approx(report.step * label * x, abs=1e-12)
        assert report.updated == (loss > 0.0) == (report.step > 0.0)
        if not report.updated:
            continue
        if kind == "pa":
            assert report.margin_after == pytest.approx(1.0, abs=1e-12)
            assert m.learn(x, label).step == pytest.approx(0.0, abs=1e-12)
        elif kind == "pa1":
            assert report.step <= C
            assert report.margin_after == pytest.approx(min(1.0, margin + C * n2), abs=1e-12)
        else:
            assert report.loss_after == pytest.approx(report.step / (2.0 * C), abs=1e-12)
            assert report.loss_after == pytest.approx(loss / (1.0 + 2.0 * C * n2), abs=1e-12)


@pytest.mark.parametrize("kind", ["pa1", "pa2"])
@pytest.mark.parametrize("task", TASKS)
def test_with_no_bound_it_is_pa_and_without_aggressiveness_it_learns_nothing(kind: str, task: Task) -> None:
    X, y = sparse_rows(40, 4, 6), labels_for(task, 40, 6)
    bold, shy, pa = learner(kind, task, C=1e12), learner(kind, task, C=1e-12), learner("pa", task)

    for m in (bold, shy, pa):
        m.learn_many(X, y)

    assert numbers(bold) == pytest.approx(numbers(pa), abs=1e-8)
    assert numbers(shy) == pytest.approx(np.zeros(numbers(pa).shape), abs=1e-9)


def numbers(m: Learner) -> Any:
    """The weights (d,), of several classes (K, d)."""
    weights = m.weights()
    if any(isinstance(vector, dict) for vector in weights.values()):
        return np.array([list(vector.values()) for vector in weights.values()])
    return np.array(list(weights.values()))


@pytest.mark.parametrize("kind", VARIANTS)
def test_a_regression_step_ends_at_the_edge_of_the_tube_or_as_near_as_it_may(kind: Kind) -> None:
    C, eps = 0.3, 0.2
    m = learner(kind, "regression", eps=eps, **({} if kind == "pa" else {"C": C}))

    for x, target in zip(sparse_rows(60, 4, 7), labels_for("regression", 60, 7), strict=True):
        report = m.learn(x, target)

        assert report.loss == pytest.approx(max(0.0, abs(target - report.score) - eps), abs=1e-12)
        assert report.updated == ((report.loss or 0.0) > 0.0)
        if not report.updated:
            assert report.score_after == report.score
        elif kind == "pa":
            assert abs(target - report.score_after) == pytest.approx(eps, abs=1e-12)
        elif kind == "pa1":
            assert report.step <= C
        else:
            assert report.loss_after == pytest.approx(report.step / (2.0 * C), abs=1e-12)


@pytest.mark.parametrize("params", [{"C": 0}, {"C": -1}, {"C": float("nan")}, {"C": float("inf")}, {"C": "0.5"},
                                    {"C": True}, {"c": 1.0}, {"constraint": "most"}, {"eps": 0.1}])  # fmt: skip
def test_a_parameter_out_of_range_is_refused_by_name(params: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=rf"params\.{next(iter(params))}"):
        Learner("pa1", task="multiclass", params=params)


def test_pa_has_no_aggressiveness() -> None:
    with pytest.raises(ConfigError, match=r"params\.C: pa \(binary\) has no such parameter"):
        Learner("pa", params={"C": 1.0})
