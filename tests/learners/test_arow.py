"""AROW against the paper: by hand, and against the slow reference."""

from __future__ import annotations

import math

import numpy as np
import pytest

from olstream import Learner
from olstream.errors import ConfigError
from tests.learners.beliefs import beliefs, labels_for, sparse_rows
from tests.references.gaussian import Arow, Gaussian


@pytest.mark.parametrize(("r", "weight", "variance"), [(0.1, 0.9090909, 0.0909091), (1, 0.5, 0.5),
                                                       (10, 0.0909091, 0.9090909)])  # fmt: skip
def test_a_larger_r_is_a_smaller_step(r: float, weight: float, variance: float) -> None:
    m = Learner("arow", params={"r": r}, bias=False)

    m.learn({"x": 1}, 1)

    assert m.weights()["x"] == pytest.approx(weight, abs=1e-7)
    assert m.variances()["x"] == pytest.approx(variance, abs=1e-7)


def test_an_arow_step_by_hand() -> None:
    m = Learner("arow", params={"r": 1.0, "a": 2.0}, bias=False)

    report = m.learn({"x": 1.0, "y": 2.0}, 0)

    # v = 2 + 8 = 10, beta = 1 / 11; w -= (2, 4) / 11; s = 2 - 4 / 11, 2 - 16 / 11
    assert report.variance == 10.0
    assert report.step == pytest.approx(1 / 11)
    assert m.weights() == pytest.approx({"x": -2 / 11, "y": -4 / 11})
    assert m.variances() == pytest.approx({"x": 18 / 11, "y": 6 / 11})
    assert report.margin_after == pytest.approx(10 / 11)
    assert report.loss_after == pytest.approx(1 / 11)


@pytest.mark.parametrize("seed", range(5))
def test_arow_agrees_with_the_paper_row_by_row(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(80, 6)), rng.choice([-1.0, 1.0], 80)
    X[rng.random(X.shape) < 0.4] = 0.0
    h = rng.uniform(0.2, 3.0, 80)
    m, slow = Learner("arow", params={"r": 0.7, "a": 1.5}, bias=False), Gaussian(6, Arow(0.7), "drop", 1.5)

    reports = m.learn_many(X, y.astype(int), h)

    for i, report in enumerate(reports):
        expected = slow.learn(X[i], y[i], h[i])
        assert {key: getattr(report, key) for key in expected} == pytest.approx(expected, abs=1e-9)
    assert list(m.weights().values()) == pytest.approx(slow.mu.tolist(), abs=1e-9)
    assert list(m.variances().values()) == pytest.approx(np.diag(slow.S).tolist(), abs=1e-9)


def test_variances_only_shrink_and_stay_positive_whatever_the_size_of_the_numbers() -> None:
    rng = np.random.default_rng(7)
    m = Learner("arow", params={"r": 0.01})
    last = math.inf
    for exponent in (150, 0, -150, 150, 150, 100, 150, -100):
        row = {name: float(x) * 10.0**exponent for name, x in zip("xyz", rng.normal(size=3), strict=True)}
        m.learn(row, int(rng.integers(2)))

        variances = [*m.variances().values(), m.bias_variance()]

        assert all(0.0 < s <= 1.0 for s in variances)
        assert sum(variances) <= last
        last = sum(variances)


def test_a_huge_row_does_not_make_certain_of_anything() -> None:
    m = Learner("arow", bias=False)

    m.learn({"x": 1e150}, 1)

    assert m.weights()["x"] == pytest.approx(1e-150)
    assert m.variances()["x"] == pytest.approx(1e-300)


def test_the_probability_is_that_of_the_predicted_class() -> None:
    m = Learner("arow", bias=False)
    m.learn({"x": 1.0}, 1)
    m.learn({"y": 1.0}, 0)

    p = m.predict({"x": 1.0})
    n = m.predict({"x": -1.0})

    # score 1/2, variance 1/2: Phi(0.5 / sqrt(1.5))
    assert p.probability == pytest.approx(0.5 * math.erfc(-0.5 / math.sqrt(3.0)))
    assert (p.label, n.label) == (1, 0)
    assert n.probability == p.probability


def test_forms_that_do_not_go_together_are_refused_by_name() -> None:
    for params, wrong in (
        ({"covariance": "round"}, r"params\.covariance takes diagonal \| full \| shared, not 'round'"),
        ({"covariance": "shared"}, r"params\.covariance: shared is for several classes"),
        ({"covariance": "full", "forget": 1.1}, r"params\.forget is for covariance: diagonal"),
        ({"a": 0.5, "variance_floor": 0.6}, r"params\.variance_floor must not be above a"),
        ({"forget": 0.9}, r"params\.forget must be a finite number >= 1, not 0\.9"),
    ):
        with pytest.raises(ConfigError, match=wrong):
            Learner("arow", params=params)


def test_a_feature_of_value_0_keeps_its_weight_and_its_variance_to_the_last_bit() -> None:
    rng = np.random.default_rng(2)
    m = Learner("arow", bias=False)
    m.learn([0.7, 0.3, 0.9], 1)

    for y in (0, 1) * 50:
        before = m.weights()["1"], m.variances()["1"]
        m.learn([float(rng.normal()), 0.0, float(rng.normal())], y)

        assert (m.weights()["1"], m.variances()["1"]) == before


def test_the_full_form_is_ridge_regression_on_the_rows_that_it_learnt() -> None:
    X, y = sparse_rows(80, 5, 0), labels_for("binary", 80, 0)
    h = np.random.default_rng(0).uniform(0.2, 3.0, 80)
    m = Learner("arow", params={"r": 0.7, "a": 2.0, "covariance": "full"}, bias=False)

    reports = m.learn_many(X, y, h)

    learnt = np.array([report.updated for report in reports])
    A, b, weight = X[learnt], y[learnt], h[learnt] / 0.7
    precision = np.eye(5) / 2.0 + (A.T * weight) @ A
    assert 20 < learnt.sum() < 80
    mu, S = beliefs(m)[None]
    assert mu == pytest.approx(np.linalg.solve(precision, A.T @ (weight * b)), abs=1e-8)
    assert pytest.approx(np.linalg.inv(precision), abs=1e-8) == S


def test_a_regression_is_ridge_regression_on_all_rows() -> None:
    X, y = sparse_rows(80, 5, 1), labels_for("regression", 80, 1)
    X[5], y[5] = X[4], 0.0  # met, then asked for again exactly as it is
    m = Learner("arow", "regression", {"r": 0.7, "a": 2.0, "covariance": "full"}, bias=False)

    reports = m.learn_many(X, y)

    precision = np.eye(5) / 2.0 + X.T @ X / 0.7
    mu, S = beliefs(m)[None]
    assert mu == pytest.approx(np.linalg.solve(precision, X.T @ y / 0.7), abs=1e-8)
    assert pytest.approx(np.linalg.inv(precision), abs=1e-8) == S
    assert all(report.updated for report in reports)


def test_a_regression_without_a_tube_grows_certain_also_of_what_it_met_exactly() -> None:
    m = Learner("arow", "regression", bias=False)

    report = m.learn({"x": 1.0}, 0.0)

    assert (report.loss, report.step, report.updated) == (0.0, 0.0, True)
    assert m.weights() == {"x": 0.0}
    assert m.variances() == {"x": pytest.approx(0.5)}


@pytest.mark.parametrize("params", [{}, {"covariance": "full"}])
def test_a_regression_with_a_tube_learns_from_what_is_outside_alone(params: dict[str, str]) -> None:
    m = Learner("arow", "regression", {"eps": 0.5, "r": 0.7, **params}, bias=False)
    m.learn(np.ones(4), 0.0)
    updates = 0

    for x, target in zip(sparse_rows(60, 4, 2), labels_for("regression", 60, 2), strict=True):
        before = beliefs(m)[None]
        report = m.learn(x, target)

        loss, v = report.loss or 0.0, report.variance or 0.0
        assert loss == pytest.approx(max(0.0, abs(target - report.score) - 0.5))
        assert report.updated == (loss > 0.0)
        assert report.loss_after == pytest.approx(loss * 0.7 / (v + 0.7), abs=1e-12)
        if not report.updated:
            assert beliefs(m)[None].S.tolist() == before.S.tolist()
        updates += report.updated
    assert 0 < updates < 60


@pytest.mark.parametrize("params", [{}, {"covariance": "full"}, {"diagonal": "project"}])
def test_what_is_left_of_the_loss_is_what_the_paper_says(params: dict[str, str]) -> None:
    m = Learner("arow", params={"r": 0.7, **params}, bias=False)
    updates = 0

    for x, label in zip(sparse_rows(60, 4, 3), labels_for("binary", 60, 3), strict=True):
        before = m.variances()
        report = m.learn(x, label)

        loss, v = report.loss or 0.0, report.variance or 0.0
        assert report.loss_after == pytest.approx(loss * 0.7 / (v + 0.7), abs=1e-12)
        assert report.step == pytest.approx(loss / (v + 0.7))
        assert report.updated or m.variances() == before
        updates += report.updated
    assert 0 < updates < 60


@pytest.mark.parametrize(("covariance", "variance"), [("diagonal", 2 / 3), ("full", 2 / 3), ("shared", 1 / 2)])
def test_a_step_for_two_classes_by_hand(covariance: str, variance: float) -> None:
    m = Learner("arow", "multiclass", {"covariance": covariance}, bias=False, classes=["a", "b", "c"])

    report = m.learn({"x": 1.0}, "b")

    # Each class has variance 1, the margin 2: alpha = 1 / (2 + r); beta is the same, of a shared S it is 1 / (1 + r)
    assert (report.margin, report.loss, report.variance) == (0.0, 1.0, 2.0)
    assert report.step == pytest.approx(1 / 3)
    assert m.weights() == {"a": {"x": pytest.approx(-1 / 3)}, "b": {"x": pytest.approx(1 / 3)}, "c": {"x": 0.0}}
    assert m.variances()["b"] == {"x": pytest.approx(variance)}
    assert m.variances()["c"] == {"x": 1.0 if covariance != "shared" else pytest.approx(variance)}
