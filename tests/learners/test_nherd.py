"""NHERD: its mean moves as that of AROW, its covariance by the linear map."""

from __future__ import annotations

import numpy as np
import pytest

from olstream import Learner
from tests.learners.beliefs import beliefs, labels_for, sparse_rows


@pytest.mark.parametrize("form", [{}, {"diagonal": "drop"}, {"diagonal": "exact"}, {"covariance": "full"}], ids=str)
def test_a_step_on_one_feature_by_hand(form: dict[str, str]) -> None:
    m = Learner("nherd", params={"C": 2.0, **form}, bias=False)

    report = m.learn({"x": 0.5}, 1)

    # v = 1/4: alpha = 1 / (1/4 + 1/2), w = alpha / 2; s = 1 / (1 + 2 / 4)^2
    assert report.step == pytest.approx(4 / 3)
    assert m.weights() == {"x": pytest.approx(2 / 3)}
    assert m.variances() == {"x": pytest.approx(4 / 9)}


def test_the_variance_of_what_was_learnt_falls_by_the_square_of_one_plus_cv() -> None:
    C = 0.7
    m = Learner("nherd", params={"C": C, "covariance": "full"}, bias=False)
    updates = 0

    for x, label in zip(sparse_rows(60, 5, 0), labels_for("binary", 60, 0), strict=True):
        report = m.learn(x, label)

        v = report.variance or 0.0
        assert report.updated == ((report.margin or 0.0) < 1.0)
        if report.updated:
            assert beliefs(m)[None].variance(x) == pytest.approx(v / (1.0 + C * v) ** 2, rel=1e-9)
            updates += 1
    assert updates > 20


def test_the_exact_diagonal_takes_every_weight_for_itself() -> None:
    C, x = 0.7, np.array([1.0, -2.0, 0.0, 0.5])
    m = Learner("nherd", params={"C": C, "diagonal": "exact", "a": 2.0}, bias=False)

    m.learn(x, 1)

    assert list(m.variances().values()) == pytest.approx(list(2.0 / (1.0 + C * 2.0 * x**2) ** 2))


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_its_mean_takes_the_step_of_arow_and_its_covariance_a_larger_one(covariance: str) -> None:
    x = np.array([1.0, -2.0, 0.5])
    nherd = Learner("nherd", params={"C": 0.5, "covariance": covariance}, bias=False)
    arow = Learner("arow", params={"r": 2.0, "covariance": covariance}, bias=False)

    nherd.learn(x, 1)
    arow.learn(x, 1)

    assert nherd.weights() == pytest.approx(arow.weights(), rel=1e-12)
    assert all(nherd.variances()[name] < s for name, s in arow.variances().items())


@pytest.mark.parametrize(("name", "params"), [("arow", {"r": 0.5}), ("nherd", {"C": 2.0})])
@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_a_first_step_is_that_of_pa2(name: str, params: dict[str, float], covariance: str) -> None:
    """Whose 1 / (2 C) is the r of AROW: S is still the identity."""
    second = Learner(name, params={**params, "covariance": covariance}, bias=False)
    first = Learner("pa2", params={"C": 1.0}, bias=False)

    for m in (second, first):
        m.learn([1.0, -2.0, 0.5], 0)

    assert second.weights() == pytest.approx(first.weights(), rel=1e-12)
