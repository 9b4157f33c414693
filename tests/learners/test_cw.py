"""Confidence-weighted learning: the constraint is met, with equality, by the smallest change."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from olstream import Learner
from olstream.errors import ConfigError
from tests.learners.beliefs import beliefs, labels_for, sparse_rows

PHI = 1.2815515655446004  # of eta = 0.9
SIZES = (1e-150, 1e-20, 1.0, 1e20, 1e150)


@pytest.mark.parametrize(("eta", "phi"), [(0.7, 0.5244), (0.9, 1.2816), (0.99, 2.3263)])
@pytest.mark.parametrize("name", ["cw", "scw1", "scw2"])
def test_phi_is_the_quantile_of_eta_and_not_its_reciprocal(name: str, eta: float, phi: float) -> None:
    m = Learner(name, params={"eta": eta}, bias=False)

    assert m.learn({"x": 1.0}, 1).loss == pytest.approx(phi, abs=5e-5)  # m = 0, v = 1


def test_phi_may_be_given_instead_of_eta_and_not_beside_it() -> None:
    by_eta, by_phi = Learner("cw", params={"eta": 0.9}, bias=False), Learner("cw", params={"phi": PHI}, bias=False)

    for m in (by_eta, by_phi):
        m.learn({"x": 1.0, "y": -2.0}, 1)

    assert by_phi.weights() == pytest.approx(by_eta.weights(), rel=1e-12)
    with pytest.raises(ConfigError, match="give eta or phi, not both"):
        Learner("cw", params={"eta": 0.8, "phi": 1.0})


def test_a_step_of_the_stdev_form_by_hand() -> None:
    m = Learner("cw", params={"phi": 1.0}, bias=False)

    report = m.learn({"x": 1.0}, 1)

    # alpha = sqrt(zeta) / zeta with zeta = 2; sqrt(u) = (sqrt(1/2 + 4) - sqrt(1/2)) / 2
    assert report.step == pytest.approx(math.sqrt(0.5))
    assert m.weights()["x"] == pytest.approx(math.sqrt(0.5))
    assert m.variances()["x"] == pytest.approx(0.5)
    assert report.loss_after == pytest.approx(0.0, abs=1e-12)


def test_a_step_of_the_variance_form_by_hand() -> None:
    m = Learner("cw", params={"phi": 1.0, "form": "variance"}, bias=False)

    report = m.learn({"x": 1.0}, 1)

    # alpha = (-1 + sqrt(1 + 8)) / 4, and 1 / S grows by 2 alpha phi
    assert report.step == pytest.approx(0.5)
    assert m.weights()["x"] == pytest.approx(0.5)
    assert m.variances()["x"] == pytest.approx(0.5)


@pytest.mark.parametrize("form", ["stdev", "variance"])
def test_after_a_full_step_the_constraint_is_met_with_equality(form: str) -> None:
    X, y = sparse_rows(60, 5, 0), labels_for("binary", 60, 0)
    m = Learner("cw", params={"form": form, "covariance": "full"}, bias=False)
    updates = 0

    for x, label in zip(X, y, strict=True):
        report = m.learn(x, label)

        v, v_after = report.variance or 0.0, beliefs(m)[None].variance(x)
        asked = PHI * (math.sqrt(v) if form == "stdev" else v)
        assert report.updated == ((report.margin or 0.0) < asked)
        if report.updated:
            expected = PHI * (math.sqrt(v_after) if form == "stdev" else v_after)
            assert report.margin_after == pytest.approx(expected, rel=1e-9)
            updates += 1
    assert updates > 20


@pytest.mark.parametrize("form", ["stdev", "variance"])
def test_a_repeat_of_an_example_changes_nothing_once_it_is_right(form: str) -> None:
    m = Learner("cw", params={"form": form, "covariance": "full"}, bias=False)
    m.learn_many(sparse_rows(20, 4, 1), labels_for("binary", 20, 1))
    m.learn([1.0, -2.0, 0.5, 0.0], 1)
    (mu, S) = beliefs(m)[None]

    m.learn([1.0, -2.0, 0.5, 0.0], 1)

    (mu_after, S_after) = beliefs(m)[None]
    assert mu_after == pytest.approx(mu, rel=1e-9)
    assert S_after == pytest.approx(S, rel=1e-9)


def test_a_diagonal_is_less_certain_than_the_whole_so_that_a_repeat_is_learnt_again() -> None:
    m = Learner("cw", bias=False)

    reports = [m.learn({"x": 1.0, "y": 1.0}, 1) for _ in range(2)]

    assert [report.updated for report in reports] == [True, True]


@pytest.mark.parametrize("size", SIZES)
def test_the_constraint_is_met_at_every_size_of_x(size: float) -> None:
    m = Learner("cw", params={"covariance": "full"}, bias=False)
    m.learn({"x": 0.5 * size, "y": size}, 0)

    report = m.learn({"x": 0.6 * size, "y": -0.8 * size}, 1)

    x = np.array([0.6, -0.8])
    root = math.sqrt(beliefs(m)[None].variance(x)) * size
    assert report.margin_after == pytest.approx(PHI * root, rel=1e-9)


@pytest.mark.parametrize("form", ["stdev", "variance"])
@pytest.mark.parametrize("short", [1e-3, 1e-8, 1e-14])
def test_a_margin_that_hardly_falls_short_is_moved_by_that_little(form: str, short: float) -> None:
    """alpha is not lost in the difference of two large numbers."""
    m = Learner("cw", params={"form": form}, bias=False, weights={"x": PHI * (1.0 - short)})

    report = m.learn({"x": 1.0}, 1)

    v = m.variances()["x"]
    lack = PHI - PHI * (1.0 - short)
    slope = 1.0 + PHI**2 / 2.0 if form == "stdev" else 1.0 + 2.0 * PHI**2  # of m - phi sqrt(v), of m - phi v
    assert report.step == pytest.approx(lack / slope, rel=2.0 * short + 1e-2 * (short < 1e-13))
    assert report.margin_after == pytest.approx(PHI * (math.sqrt(v) if form == "stdev" else v), rel=1e-12)


@pytest.mark.parametrize("name", ["cw", "pa"])
@pytest.mark.parametrize("weight", [0.01, 7.0, 1e300])
def test_a_hard_constraint_knows_no_importance(name: str, weight: float) -> None:
    plain, weighted = Learner(name, bias=False), Learner(name, bias=False)

    plain.learn({"x": 1.0, "y": -2.0}, 1)
    weighted.learn({"x": 1.0, "y": -2.0}, 1, weight=weight)

    assert weighted.weights() == plain.weights()
    assert weighted.variances() == plain.variances()


def test_contradictions_drive_the_variance_to_zero_and_then_nothing_is_learnt() -> None:
    m = Learner("cw", params={"covariance": "full"}, bias=False)

    reports = m.learn_many([[1.0, 2.0]] * 4000, [0, 1] * 2000)

    variances = [report.variance or 0.0 for report in reports]
    assert all(after <= before for before, after in pairwise(variances))
    assert variances[50] < 1e-9 * variances[0]
    assert variances[-1] < 1e-300
    assert all(math.isfinite(report.score_after) for report in reports)
    assert (reports[-1].updated, reports[-1].step) == (False, 0.0)


def test_two_classes_with_one_covariance_by_hand() -> None:
    """phi = Phi^-1(0.8), m = -1, q = 1: the optimum, which is not the form of a known manual (1.072)."""
    start = {"a": {"x": 0.0}, "b": {"x": 1.0}}
    m = Learner("cw", "multiclass", {"eta": 0.8, "covariance": "shared"}, bias=False, weights=start)

    report = m.learn({"x": 1.0}, "a")

    assert (report.margin, report.variance) == (-1.0, 2.0)
    assert report.step == pytest.approx(0.950, abs=5e-4)


def test_two_classes_with_one_covariance_meet_the_constraint_of_their_difference() -> None:
    m = Learner("cw", "multiclass", {"covariance": "shared"}, bias=False)
    X, y = sparse_rows(60, 4, 3), labels_for("multiclass", 60, 3) % 2
    updates = 0

    for x, label in zip(X, y, strict=True):
        report = m.learn(x, label)

        if report.updated:
            v_after = 2.0 * beliefs(m)[str(label)].variance(x)
            assert report.margin_after == pytest.approx(PHI * math.sqrt(v_after), rel=1e-9)
            updates += 1
        elif report.margin is not None:
            assert report.margin >= PHI * math.sqrt(report.variance or 0.0)
    assert updates > 20


def test_of_two_classes_each_keeps_half_its_variance_however_wrong_they_were() -> None:
    start = {"a": {"x": -1e155}, "b": {"x": 1e155}}
    m = Learner("cw", "multiclass", {"form": "variance", "covariance": "full"}, bias=False, weights=start)

    report = m.learn({"x": 1e149}, "a")

    # beta v = 1 to the last digit, and half of v is that of each
    assert report.margin == pytest.approx(-2e304)
    assert report.updated
    assert m.variances() == {"a": {"x": pytest.approx(0.5)}, "b": {"x": pytest.approx(0.5)}}
