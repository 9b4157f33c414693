"""The perceptron, its average, and its forms for several classes: by hand, and by what they promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from olstream import Learner
from tests.learners.beliefs import labels_for, sparse_rows
from tests.learners.kinds import Kind

CONSTRAINTS = ("max", "uniform", "proportional")


@pytest.mark.parametrize(("label", "weight"), [(1, 2.0), (0, -2.0)])
def test_a_tie_is_a_mistake_whatever_the_label(label: int, weight: float) -> None:
    m = Learner("perceptron", bias=False)

    report = m.learn({"x": 2.0}, label)

    assert (report.margin, report.loss, report.step, report.updated) == (0.0, 0.0, 1.0, True)
    assert m.weights() == {"x": weight}


def test_what_is_right_however_narrowly_teaches_nothing() -> None:
    m = Learner("perceptron", bias=False, weights={"x": 1e-300})

    report = m.learn({"x": 1.0}, 1)

    assert (report.loss, report.updated, report.skip_reason) == (0.0, False, None)
    assert m.weights() == {"x": 1e-300}


def test_a_mistake_adds_the_squared_norm_to_the_margin() -> None:
    m = Learner("perceptron", bias=False, weights={"x": -1.0, "y": 0.5})

    report = m.learn({"x": 3.0, "y": 2.0}, 1)

    assert (report.margin, report.loss) == (-2.0, 2.0)
    assert report.margin_after == -2.0 + 13.0
    assert m.weights() == {"x": 2.0, "y": 2.5}


def test_weights_are_the_sum_of_the_mistakes() -> None:
    X, y = sparse_rows(80, 4, 0), labels_for("binary", 80, 0)
    m = Learner("perceptron", bias=False)

    reports = m.learn_many(X, y)

    mistakes = np.array([report.updated for report in reports])
    assert 0 < mistakes.sum() < 80
    assert list(m.weights().values()) == pytest.approx((y[mistakes, None] * X[mistakes]).sum(axis=0))


def test_an_importance_weight_multiplies_the_step() -> None:
    m = Learner("perceptron", bias=False)

    report = m.learn({"x": 2.0}, 1, weight=2.5)

    assert report.step == 2.5
    assert m.weights() == {"x": 5.0}


AVERAGED = [
    Kind("perceptron", "binary", {"averaged": True}),
    Kind("perceptron", "multiclass", {"averaged": True}),
    Kind("perceptron", "multiclass", {"averaged": True}, "one_vs_rest"),
]


@pytest.mark.parametrize("kind", AVERAGED, ids=map(str, AVERAGED))
def test_the_averaged_perceptron_predicts_with_the_mean_of_the_weights_after_every_round(kind: Kind) -> None:
    X, y = sparse_rows(60, 4, 1), labels_for(kind.task, 60, 1)
    X[20] = 0.0  # a round too
    declared = [0, 1, 2] if kind.task == "multiclass" else [-1, 1]
    averaged, plain = (m for m in (kind.learner(bias=False, classes=declared),
                                   kind.learner({"averaged": False}, bias=False, classes=declared)))  # fmt: skip
    total, learnt = np.zeros(4 if kind.task == "binary" else (3, 4)), 0

    for t, (x, label) in enumerate(zip(X, y, strict=True), start=1):
        learnt += averaged.learn(x, label).updated
        plain.learn(x, label)
        total += matrix(plain.weights())

        assert matrix(averaged.weights()) == pytest.approx(total / t, abs=1e-12)
    assert 0 < learnt < 60  # a round without an update counts as well
    expected = total / 60 @ X[0]
    assert averaged.predict(X[0]).score == pytest.approx(expected if kind.task == "binary" else max(expected))


def matrix(weights: dict[Any, Any]) -> Any:
    if any(isinstance(vector, dict) for vector in weights.values()):
        return np.array([list(vector.values()) for vector in weights.values()])
    return np.array(list(weights.values()))


def test_the_average_counts_from_the_first_round_by_hand() -> None:
    m = Learner("perceptron", params={"averaged": True}, bias=False)

    m.learn({"x": 1.0}, 1)  # w = 1
    m.learn({"x": 2.0}, 1)  # right: w = 1
    m.learn({"x": 3.0}, 0)  # w = -2

    assert m.weights() == {"x": 0.0}  # (1 + 1 - 2) / 3, and not over 4


@pytest.mark.parametrize(("constraint", "shares"), [("max", [0, 1, 0]), ("uniform", [1 / 3, 1 / 3, 1 / 3]),
                                                    ("proportional", [1 / 4, 3 / 4, 0])])  # fmt: skip
def test_the_classes_in_error_share_one_step(constraint: str, shares: list[float]) -> None:
    start = {"a": {"x": 2.0}, "b": {"x": 4.0}, "c": {"x": 1.0}, "d": {"x": 1.0}, "e": {"x": 0.0}}
    m = Learner("perceptron", task="multiclass", params={"constraint": constraint}, bias=False, weights=start)

    report = m.learn({"x": 1.0}, "d")

    assert (report.margin, report.loss, report.step) == (-3.0, 3.0, 1.0)
    expected = [2 - shares[0], 4 - shares[1], 1 - shares[2], 2.0, 0.0]  # c ties with d, which is an error too
    assert [vector["x"] for vector in m.weights().values()] == pytest.approx(expected)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_a_model_of_zeros_takes_off_as_much_as_it_adds(constraint: str) -> None:
    m = Learner("perceptron", "multiclass", {"constraint": constraint}, bias=False, classes=["a", "b", "c"])

    m.learn({"x": 1.0}, "b")

    down = {"max": [-1.0, 0.0]}.get(constraint, [-0.5, -0.5])
    assert m.weights() == {"a": {"x": down[0]}, "b": {"x": 1.0}, "c": {"x": down[1]}}


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_the_weights_of_all_classes_sum_to_zero(constraint: str) -> None:
    m = Learner("perceptron", "multiclass", {"constraint": constraint}, bias=False)

    for x, label in zip(sparse_rows(60, 4, 2), labels_for("multiclass", 60, 2), strict=True):
        report = m.learn(x, label)

        assert matrix(m.weights()).sum(axis=0) == pytest.approx(np.zeros(4), abs=1e-12)
        assert report.updated == (report.margin is not None and report.margin <= 0.0)
