"""Learners that go down a gradient: OGD, Pegasos, logistic and softmax regression."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
import pytest

from olstream import Learner
from olstream.errors import ConfigError
from olstream.learners.base import Task
from tests.learners.beliefs import labels_for, sparse_rows
from tests.references.descent import GradientDescent, LossName, Schedule

LOSSES: list[tuple[Task, LossName]] = [
    ("binary", "hinge"), ("binary", "perceptron"), ("binary", "logistic"), ("regression", "squared"),
    ("regression", "eps_insensitive"), ("regression", "squared_eps_insensitive"),
]  # fmt: skip


@pytest.mark.parametrize(("task", "loss"), LOSSES)
@pytest.mark.parametrize(("schedule", "l2"), [("constant", 0.0), ("sqrt", 0.1), ("power", 0.0), ("l2", 0.1)])
def test_every_loss_and_schedule_agrees_with_the_paper_row_by_row(
    task: Task, loss: LossName, schedule: Schedule, l2: float
) -> None:
    X, y = sparse_rows(50, 4, 0), labels_for(task, 50, 0)
    X[7] = 0.0  # a round all the same
    h = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], 50)
    params = {"loss": loss, "schedule": schedule, "l2": l2, "eta": 0.3, "eps": 0.2, "p": 0.7}
    m, slow = Learner("ogd", task, params, bias=False), GradientDescent(4, loss, 0.3, schedule, l2, 0.2, 0.7)

    for i, report in enumerate(m.learn_many(X, y, h)):
        expected = slow.learn(X[i], float(y[i]), h[i])
        left_out = {"updated"} | ({"margin", "margin_after"} if expected["margin"] is None else set())
        expected = {key: value for key, value in expected.items() if key not in left_out}
        assert {key: getattr(report, key) for key in expected} == pytest.approx(expected, abs=1e-9)
    assert list(m.weights().values()) == pytest.approx(slow.w.tolist(), abs=1e-9)


@pytest.mark.parametrize(("schedule", "rates"), [
    ("constant", [0.8] * 4), ("sqrt", [0.8, 0.8 / math.sqrt(2), 0.8 / math.sqrt(3), 0.4]),
    ("power", [0.8, 0.4, 0.8 / 3, 0.2]), ("l2", [0.8 / (1 + 0.08 * t) for t in (1, 2, 3, 4)]),
])  # fmt: skip
def test_the_rate_falls_with_every_round_also_with_one_that_has_nothing_to_teach(
    schedule: str, rates: list[float]
) -> None:
    params = {"schedule": schedule, "eta": 0.8, "p": 1.0, "l2": 0.1 if schedule == "l2" else 0.0}
    m = Learner("ogd", params=params, bias=False)

    first = m.learn({"x": 1.0}, 1)
    m.learn({}, 1)  # the zero vector
    m.learn({"x": 100.0}, 1)  # no loss
    fourth = m.learn({"y": 1.0}, 0)

    assert first.step == pytest.approx(rates[0])
    assert fourth.step == pytest.approx(rates[3])


def test_l2_draws_all_weights_to_zero_those_of_absent_features_and_the_bias_too() -> None:
    start = {"weights": {"x": 1.0, "absent": -2.0}, "bias": 0.5}
    m = Learner("ogd", params={"l2": 0.5, "eta": 0.2, "schedule": "constant"}, weights=start)

    report = m.learn({"x": 10.0}, 1)

    assert (report.loss, report.step, report.updated) == (0.0, 0.0, True)
    assert m.weights() == {"x": pytest.approx(0.9), "absent": pytest.approx(-1.8)}
    assert m.bias() == pytest.approx(0.45)


def test_weights_that_would_change_their_sign_in_every_round_are_refused() -> None:
    for name in ("ogd", "logistic"):
        with pytest.raises(ConfigError, match="eta l2 must not be above 1"):
            Learner(name, params={"eta": 2.0, "l2": 0.6})


def test_a_regression_has_no_loss_of_classes() -> None:
    with pytest.raises(ConfigError, match=r"params\.loss of a regression is one of squared"):
        Learner("ogd", "regression", {"loss": "hinge"})


@pytest.mark.parametrize(("score", "label", "loss"), [(1000.0, 1, 0.0), (1000.0, 0, 1000.0), (-1000.0, 1, 1000.0)])
def test_the_log_loss_of_extreme_scores_overflows_nowhere(score: float, label: int, loss: float) -> None:
    m = Learner("logistic", bias=False, weights={"x": score}, classes=[0, 1])

    report = m.learn({"x": 1.0}, label)

    assert report.loss == loss
    assert m.weights()["x"] == pytest.approx(score + (0.1 if label else -0.1) * (loss > 0.0))


def test_logistic_regression_by_hand() -> None:
    m = Learner("logistic", bias=False, weights={"x": 1.0}, classes=[0, 1])

    p = m.predict({"x": 2.0}).probability
    report = m.learn({"x": 2.0}, 0)

    assert p == pytest.approx(1.0 / (1.0 + math.exp(-2.0)))
    assert report.loss == pytest.approx(math.log1p(math.exp(2.0)))
    assert m.weights()["x"] == pytest.approx(1.0 - 0.1 * cast(float, p) * 2.0)


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_l2_draws_the_weights_of_logistic_regression_to_zero_in_every_round(task: Task) -> None:
    by_class = {"a": {"x": 1.0, "absent": -2.0}, "b": {"x": -1.0, "absent": 4.0}}
    start = by_class if task == "multiclass" else by_class["a"]
    plain, shrunk = (
        Learner("logistic", task, {"eta": 0.2, "l2": l2}, bias=False, classes=["b", "a"], weights=start)
        for l2 in (0.0, 0.5)
    )

    for m in (plain, shrunk):
        m.learn({"x": 3.0}, "a")

    for k, vector in by_class.items():
        before, after = (m.weights()[k] if task == "multiclass" else m.weights() for m in (plain, shrunk))
        expected = {name: w - 0.1 * vector[name] for name, w in before.items()}
        if task == "multiclass" or k == "a":
            assert after == pytest.approx(expected)


def test_pegasos_is_the_sum_of_its_hits() -> None:
    X, y = sparse_rows(60, 4, 2), labels_for("binary", 60, 2)
    h = np.random.default_rng(2).uniform(0.2, 2.0, 60)
    m, hits = Learner("pegasos", params={"lambda": 0.1}, bias=False), np.zeros(4)

    for t in range(60):
        report = m.learn(X[t], y[t], h[t])
        hits += (report.margin or 0.0) < 1.0 and h[t] * y[t] * X[t]

        assert list(m.weights().values()) == pytest.approx((hits / (0.1 * (t + 1))).tolist(), abs=1e-12)


def test_the_first_row_of_pegasos_erases_what_was_there() -> None:
    for row, expected in (({"y": 1.0}, {"x": 0.0, "y": 2.0}), ({"x": 1.0}, {"x": 0.0}), ({}, {"x": 0.0})):
        m = Learner("pegasos", params={"lambda": 0.5}, bias=False, weights={"x": 5.0})

        m.learn(row, 1)

        assert m.weights() == expected  # the second one is right: it only shrinks


def test_pegasos_shrinks_also_where_a_row_is_zero_or_right() -> None:
    m = Learner("pegasos", params={"lambda": 0.1}, bias=False)
    m.learn({"x": 1.0}, 1)

    m.learn({}, 1)
    m.learn({"x": 1.0}, 1)

    assert m.weights()["x"] == pytest.approx(10.0 / 3.0)


def test_projected_weights_stay_in_the_ball_the_bias_among_them() -> None:
    m, at_the_edge = Learner("pegasos", params={"lambda": 0.04, "project": True}), 0

    for x, label in zip(sparse_rows(60, 4, 3), labels_for("binary", 60, 3), strict=True):
        m.learn(x, label)

        norm = math.sqrt(sum(w * w for w in [*m.weights().values(), m.bias()]))
        assert norm <= 5.0 * (1.0 + 1e-12)
        at_the_edge += norm > 4.999
    assert at_the_edge > 0


def softmax(**settings: Any) -> Learner:
    return Learner("logistic", "multiclass", bias=False, **settings)


def test_the_gradient_of_softmax_sums_to_zero_over_the_classes() -> None:
    m = softmax()

    for x, label in zip(sparse_rows(60, 4, 4), labels_for("multiclass", 60, 4), strict=True):
        report = m.learn(x, label)

        columns = np.array([list(vector.values()) for vector in m.weights().values()])
        assert columns.sum(axis=0) == pytest.approx(np.zeros(4), abs=1e-12)
        p = m.predict(x).probability or 0.0
        assert 1.0 / len(columns) - 1e-12 <= p <= 1.0
        assert report.loss is not None and report.loss >= 0.0


def test_softmax_by_hand() -> None:
    start = {"a": {"x": 1.0}, "b": {"x": 0.0}, "c": {"x": -1.0}}
    m = softmax(weights=start)
    parts = np.exp([1.0, 0.0, -1.0])
    p = parts / parts.sum()

    report = m.learn({"x": 1.0}, "b", weight=2.0)

    assert report.loss == pytest.approx(-math.log(p[1]))
    assert [vector["x"] for vector in m.weights().values()] == pytest.approx(
        [1.0 - 0.2 * p[0], 0.2 * (1.0 - p[1]), -1.0 - 0.2 * p[2]]
    )


def test_a_number_added_to_all_scores_changes_nothing_of_softmax() -> None:
    start = {"a": {"x": 1.0, "same": 300.0}, "b": {"x": -0.5, "same": 300.0}}
    m, other = softmax(weights=start), softmax(weights=start)

    assert m.predict({"x": 1.0, "same": 1.0}).probability == pytest.approx(m.predict({"x": 1.0}).probability)
    assert m.learn({"x": 1.0, "same": 1.0}, "b").loss == pytest.approx(other.learn({"x": 1.0}, "b").loss)


def test_softmax_of_extreme_scores_is_0_or_1_and_never_nan() -> None:
    m = softmax(weights={"a": {"x": 1000.0}, "b": {"x": -1000.0}})

    sure = m.predict({"x": 1.0})
    right, wrong = m.learn({"x": 1.0}, "a"), m.learn({"x": 1.0}, "b")

    assert (sure.label, sure.probability) == ("a", 1.0)
    assert (right.loss, right.step, wrong.loss) == (0.0, 0.0, 2000.0)
    assert m.weights() == {"a": {"x": pytest.approx(999.9)}, "b": {"x": pytest.approx(-999.9)}}
