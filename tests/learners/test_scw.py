"""Soft confidence-weighted learning: when it learns, what is left of the loss, and its limit, CW."""

from __future__ import annotations

import math
from typing import Any

import pytest

from olstream import Learner
from tests.learners.beliefs import beliefs, labels_for, sparse_rows
from tests.learners.kinds import Kind

NAMES = ("scw1", "scw2")
PHI_1 = 0.8413447460685429  # eta whose phi is 1


@pytest.mark.parametrize("name", NAMES)
def test_a_margin_above_one_is_learnt_from_while_it_is_not_certain(name: str) -> None:
    m = Learner(name, params={"eta": 0.95}, bias=False, weights={"x": 1.2})

    report = m.learn({"x": 1.0}, 1)

    assert report.loss == pytest.approx(1.6449 - 1.2, abs=1e-4)
    assert report.updated


@pytest.mark.parametrize("name", NAMES)
def test_a_margin_below_one_is_left_alone_where_it_is_certain(name: str) -> None:
    m = Learner(name, params={"eta": 0.75}, bias=False, weights={"x": 0.8})

    report = m.learn({"x": 1.0}, 1)

    assert (report.loss, report.updated, report.step) == (0.0, False, 0.0)  # phi = 0.6745
    assert m.variances() == {"x": 1.0}


def test_scw1_is_capped_at_c_and_its_covariance_too() -> None:
    m = Learner("scw1", params={"C": 0.1, "eta": PHI_1}, bias=False)

    report = m.learn({"x": 1.0}, 1)

    rho = 2.0 / (0.1 + math.sqrt(0.1**2 + 4.0))  # of alpha = 0.1, where CW would take 0.7071
    assert report.step == 0.1
    assert m.weights() == {"x": pytest.approx(0.1)}
    assert m.variances() == {"x": pytest.approx(rho**2)}
    assert report.loss_after == pytest.approx(rho - 0.1)


@pytest.mark.parametrize("C", [0.05, 0.3, 10.0])
def test_scw1_meets_the_constraint_where_its_cap_lets_it(C: float) -> None:
    m = Learner("scw1", params={"C": C, "covariance": "full"}, bias=False)
    phi, capped, free = 0.6744897501960817, 0, 0

    for x, label in zip(sparse_rows(80, 4, 0), labels_for("binary", 80, 0), strict=True):
        report = m.learn(x, label)

        assert report.updated == ((report.margin or 0.0) < phi * math.sqrt(report.variance or 0.0))
        assert report.step <= C
        if report.step == C:
            assert (report.loss_after or 0.0) >= 0.0
            capped += 1
        elif report.updated:
            assert report.margin_after == pytest.approx(phi * math.sqrt(beliefs(m)[None].variance(x)), rel=1e-9)
            free += 1
    assert capped + free > 20
    assert free > 0 if C == 10.0 else capped > 0


@pytest.mark.parametrize("C", [0.05, 0.3, 10.0])
def test_scw2_leaves_a_loss_of_its_step_over_two_c(C: float) -> None:
    m = Learner("scw2", params={"C": C, "covariance": "full"}, bias=False)
    reports = [m.learn(x, y) for x, y in zip(sparse_rows(80, 4, 1), labels_for("binary", 80, 1), strict=True)]

    updated = [report for report in reports if report.updated]
    assert len(updated) > 20
    for report in updated:
        assert report.loss_after == pytest.approx(report.step / (2.0 * C), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("C", [0.05, 0.3, 10.0])
def test_two_classes_with_one_covariance_keep_to_the_same_bounds(C: float) -> None:
    X, y = sparse_rows(60, 4, 3), labels_for("binary", 60, 3)
    for name, phi in (("scw1", 0.6744897501960817), ("scw2", 1.2815515655446004)):
        m, updates = Learner(name, "multiclass", {"C": C, "covariance": "shared"}, bias=False), 0

        for x, label in zip(X, y, strict=True):
            report = m.learn(x, label)

            if report.margin is not None:
                assert report.updated == (report.margin < phi * math.sqrt(report.variance or 0.0))
                updates += report.updated
            if name == "scw1":
                assert report.step <= C
                assert report.step in (0.0, C) or report.loss_after == pytest.approx(0.0, abs=1e-9)
            elif report.updated:
                assert report.loss_after == pytest.approx(report.step / (2.0 * C), rel=1e-9, abs=1e-12)
        assert updates > 10


FORMS: list[tuple[str, dict[str, Any]]] = [
    ("binary", {}), ("binary", {"covariance": "full"}), ("multiclass", {}), ("multiclass", {"covariance": "shared"}),
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("task", "form"), FORMS, ids=str)
def test_without_a_price_on_confidence_it_is_cw(name: str, task: Any, form: dict[str, Any]) -> None:
    X, y = sparse_rows(40, 4, 2), labels_for(task, 40, 2)
    soft = Kind(name, task, form).learner({"C": 1e100, "eta": 0.9}, bias=False)
    hard = Kind("cw", task, form).learner(bias=False)

    soft.learn_many(X, y)
    hard.learn_many(X, y)

    for label, (mu, S) in beliefs(hard).items():
        soft_mu, soft_S = beliefs(soft)[label]
        assert soft_mu == pytest.approx(mu, rel=1e-6, abs=1e-9)
        assert soft_S == pytest.approx(S, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_without_aggressiveness_next_to_nothing_is_learnt(name: str) -> None:
    m = Learner(name, params={"C": 1e-12}, bias=False)

    m.learn({"x": 1.0}, 1)

    assert 0.0 < m.weights()["x"] < 1e-11
    assert m.variances()["x"] == pytest.approx(1.0)
