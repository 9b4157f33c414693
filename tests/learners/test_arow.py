"""AROW against the paper: by hand, and against the slow reference."""

from __future__ import annotations

import math

import numpy as np
import pytest

from olstream import Learner
from olstream.errors import ConfigError
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
