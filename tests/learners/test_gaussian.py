"""What all second-order learners promise of their covariance, diagonal, full and shared."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from olstream import Learner
from tests.learners.beliefs import beliefs, labels_for, sparse_rows
from tests.learners.kinds import EVERY, Kind

SECOND_ORDER = [kind for kind in EVERY if kind.is_second_order]
NARROWING = [kind for kind in SECOND_ORDER if "forget" not in kind.params]
FULL = [kind for kind in SECOND_ORDER if kind.params.get("covariance") == "full"]
BINARY = [kind for kind in NARROWING if kind.task == "binary"]
PAIRED = [kind for kind in NARROWING if kind.multiclass == "direct"]
narrowing_kind = pytest.mark.parametrize("kind", NARROWING, ids=map(str, NARROWING))
second_order_kind = pytest.mark.parametrize("kind", SECOND_ORDER, ids=map(str, SECOND_ORDER))
full_kind = pytest.mark.parametrize("kind", FULL, ids=map(str, FULL))
paired_kind = pytest.mark.parametrize("kind", PAIRED, ids=map(str, PAIRED))


def rows_of(kind: Kind, n: int = 50, d: int = 5, seed: int = 0) -> zip[tuple[Any, Any]]:
    return zip(sparse_rows(n, d, seed), labels_for(kind.task, n, seed), strict=True)


@narrowing_kind
def test_in_no_direction_is_a_learner_less_certain_than_before(kind: Kind) -> None:
    m = kind.learner(bias=False)
    m.learn(np.ones(5), 0 if kind.task != "binary" else 1)

    for x, y in rows_of(kind):
        before = beliefs(m)
        m.learn(x, y)

        for label, (_, S) in beliefs(m).items():
            old = before[label].S if label in before else np.eye(5)
            assert pytest.approx(S.T, rel=1e-12, abs=1e-15) == S
            assert np.all(np.linalg.eigvalsh(S) > 0.0)
            assert np.all(np.linalg.eigvalsh(old - S) > -1e-12)  # x·S x falls, or stays, for every x there is
            assert np.all(np.diag(S) <= np.diag(old) * (1.0 + 1e-12))
            assert np.linalg.slogdet(S)[1] <= np.linalg.slogdet(old)[1] + 1e-9


@second_order_kind
def test_a_row_is_learnt_where_its_loss_says_so_and_then_its_step_is_above_zero(kind: Kind) -> None:
    m = kind.learner(bias=False)
    passed = 0

    for x, y in [*rows_of(kind), *rows_of(kind)]:
        report = m.learn(x, y)

        assert report.updated == (report.step > 0.0)
        if kind.multiclass == "direct":
            assert report.updated == ((report.loss or 0.0) > 0.0)
        passed += report.updated
    assert passed > 20


@paired_kind
def test_the_variance_of_what_was_learnt_falls_and_stays_above_zero(kind: Kind) -> None:
    m = kind.learner(bias=False)

    for x, y in rows_of(kind):
        report = m.learn(x, y)
        after = m.learn(x, y, weight=0.0).variance

        if report.updated and report.margin_after is not None:
            assert after is not None and report.variance is not None
            assert 0.0 < after < report.variance or kind.task == "multiclass"  # another class may be the runner-up


@second_order_kind
def test_weights_that_have_to_do_with_no_part_of_a_row_keep_mean_and_variance_to_the_last_bit(kind: Kind) -> None:
    m = kind.learner(bias=False)
    first, second = (1.0, -1.0) if kind.task == "regression" else ("a", "b")
    for y in (first, second, first):
        m.learn({"x": 0.5, "y": -0.3}, y)
    for y in (second, first, second):
        m.learn({"far": 0.7, "away": 0.2}, y)
    before = [(mu[:2].tolist(), S[:2, :2].tolist()) for mu, S in beliefs(m).values()]  # away, far

    for i in range(20):
        m.learn({"x": 1.0 + 0.1 * i, "y": -1.0, "far": 0.0}, second if i % 2 else first)

    assert [(mu[:2].tolist(), S[:2, :2].tolist()) for mu, S in beliefs(m).values()] == before


@full_kind
def test_with_one_feature_full_and_diagonal_are_the_same(kind: Kind) -> None:
    diagonals = ["drop"]
    if kind.task != "multiclass":  # of two classes the precision of one does not tell how the margin's grows
        diagonals += ["project", "exact"] if kind.name == "nherd" else ["project"]
    values = np.random.default_rng(3).normal(size=30)
    labels = labels_for(kind.task, 30, 3)
    full = kind.learner(bias=False)
    full.learn_many(values[:, None], labels)

    for diagonal in diagonals:
        m = kind.learner({"covariance": "diagonal", "diagonal": diagonal}, bias=False)
        m.learn_many(values[:, None], labels)

        for (mu, S), (mu_full, S_full) in zip(beliefs(m).values(), beliefs(full).values(), strict=True):
            assert mu == pytest.approx(mu_full, rel=1e-9)
            assert pytest.approx(S_full, rel=1e-9) == S


@full_kind
@pytest.mark.parametrize("size", [1e-150, 1e12, 1e20, 1e150])
def test_one_row_of_any_size_leaves_the_same_variance_in_a_matrix_as_in_a_diagonal(kind: Kind, size: float) -> None:
    """Where 1 - rho rounds to 1, the plain square root would come to 0, and nothing would be learnt of x again."""
    full, diagonal = (kind.learner({"covariance": form, "diagonal": "drop"}, bias=False) for form in
                      ("full", "diagonal"))  # fmt: skip

    for m in (full, diagonal):
        for row, y in (({"x": 1e-3}, 0), ({"x": size}, 1), ({"x": -size}, 1), ({"x": 0.5}, 0)):
            m.learn(row, y)

    for (_, S), (_, s) in zip(beliefs(full).values(), beliefs(diagonal).values(), strict=True):
        assert S[0, 0] == pytest.approx(s[0, 0], rel=1e-6)
        assert S[0, 0] > 0.0


@full_kind
def test_no_variance_of_a_matrix_comes_to_zero_however_often_it_is_contradicted(kind: Kind) -> None:
    for row in ({"x": 1.0}, {"x": 1e150}, {"x": 1e100, "tiny": 1e-100}, {"x": 3.0, "y": -1e10}):
        m = kind.learner(bias=False)
        for i in range(300):
            m.learn(row, float(i % 2))

        for mu, S in beliefs(m).values():
            assert np.all(np.isfinite(mu)) and np.all(np.isfinite(S))
            assert np.all(np.diag(S) > 0.0)


@pytest.mark.parametrize("name", ["arow", "nherd", "scw1", "cw"])
def test_the_diagonal_of_the_precision_is_no_larger_than_that_of_the_covariance(name: str) -> None:
    drop, project = (Learner(name, params={"diagonal": form}, bias=False) for form in ("drop", "project"))

    for m in (drop, project):
        m.learn([1.0, -2.0, 0.0, 0.5], 1)

    assert all(project.variances()[i] < drop.variances()[i] for i in "013")
    assert project.variances()["2"] == drop.variances()["2"] == 1.0
    assert project.weights() == drop.weights()


def plainly_narrowed(S: Any, x: Any, alpha: float, phi: float) -> Any:
    """S after a step of CW with one covariance for two classes, as it stands in the paper."""
    q = x @ S @ x
    u = (-alpha * q * phi + math.sqrt(alpha**2 * q**2 * phi**2 + 8.0 * q)) ** 2 / 8.0
    return S - alpha * phi / (math.sqrt(2.0 * u) + alpha * phi * q) * np.outer(S @ x, S @ x)


def test_the_square_root_stays_one_over_thousands_of_examples_where_the_plain_form_fails() -> None:
    """Rows near a space of fewer dimensions, one label of twenty wrong: soon nearly everything is certain."""
    rng = np.random.default_rng(0)
    n, d = 3000, 19
    X = rng.normal(size=(n, 8)) @ rng.normal(size=(8, d)) + 0.01 * rng.normal(size=(n, d))
    y = np.argmax(X @ rng.normal(size=(d, 4)), axis=1)
    y[::20] = rng.integers(0, 4, n // 20)
    m = Learner("cw", "multiclass", {"covariance": "shared"}, bias=False)

    reports = m.learn_many(X, y)

    S, has_failed = np.eye(d), False
    for x, report in zip(X, reports, strict=True):
        has_failed |= not x @ S @ x > 0.0
        if report.updated and not has_failed:
            S = plainly_narrowed(S, x, report.step, 1.2815515655446004)
    assert has_failed
    assert all(report.variance is None or report.variance > 0.0 for report in reports)
    assert all(math.isfinite(report.score_after) for report in reports)
    _, matrix = m.covariance()
    assert np.all(np.isfinite(matrix)) and np.all(np.diag(matrix) > 0.0)


@second_order_kind
def test_contradictions_for_one_row_stay_finite_for_thousands_of_rounds(kind: Kind) -> None:
    m = kind.learner(bias=False)
    first, second = (1.0, -1.0) if kind.task == "regression" else ("a", "b")

    reports = m.learn_many([[1.0, 2.0, -0.5]] * 3000, [first, second] * 1500)

    for report in reports[1:]:
        numbers = (report.score_after, report.loss_after, report.variance, report.step)
        assert all(number is not None and math.isfinite(number) for number in numbers)
    if "forget" not in kind.params:
        variances = [report.variance or 0.0 for report in reports[1:]]
        noise = 1e-29  # of a sum whose parts have come to cancel
        assert all(after <= before * (1.0 + 1e-12) + noise for before, after in pairwise(variances))
    for mu, S in beliefs(m).values():
        assert np.all(np.isfinite(mu))
        assert np.all(np.diag(S) > 0.0)


@second_order_kind
def test_of_what_was_never_learnt_each_weight_has_the_variance_of_the_start(kind: Kind) -> None:
    m = kind.learner({"a": 2.0}, bias=False)
    first, second = (1.0, -1.0) if kind.task == "regression" else ("a", "b")
    for y in (first, second):
        m.learn({"x": 1.0}, y)
    of_both = 2.0 if kind.task == "multiclass" else 1.0

    apart = m.learn({"new": 1.0, "other": -2.0}, first, weight=0.0)
    mixed = m.learn({"x": 1.0, "new": 1.0, "other": -2.0}, first, weight=0.0)
    known = m.learn({"x": 1.0}, first, weight=0.0)

    assert apart.variance == pytest.approx(of_both * 2.0 * (1.0 + 4.0))
    assert known.variance is not None
    assert mixed.variance == pytest.approx(known.variance + of_both * 10.0)


@second_order_kind
def test_a_is_the_variance_of_every_weight_at_the_start(kind: Kind) -> None:
    m = kind.learner({"a": 4.0})
    m.learn({"x": 1.0}, 1.0)
    one = kind.learner({"a": 4.0}, bias=False)

    report = one.learn({"x": 3.0, "y": 1.0}, 0.0)

    assert report.variance is None or report.variance == 40.0
    assert kind.task != "multiclass" or set(m.bias_variance().values()) == {4.0}
    assert kind.task == "multiclass" or 0.0 < m.bias_variance() < 4.0


@pytest.mark.parametrize("name", ["arow", "cw", "scw1", "nherd"])
def test_a_floor_holds_variances_up(name: str) -> None:
    m = Learner(name, params={"variance_floor": 0.05}, bias=False)

    m.learn_many([[1.0, 2.0, 0.0]] * 100, [0, 1] * 50)

    assert m.variances() == {"0": 0.05, "1": 0.05, "2": 1.0}


def test_what_is_learnt_again_and_again_is_forgotten_a_little_each_time_and_never_beyond_the_start() -> None:
    steady, forgetful = (Learner("arow", params={"forget": factor}, bias=False) for factor in (1.0, 1.5))

    for m in (steady, forgetful):
        m.learn_many([[1.0, 0.01]] * 50, [0, 1] * 25)

    assert steady.variances()["0"] < 0.05 < 0.2 < forgetful.variances()["0"] < 1.0
    assert forgetful.variances()["1"] == 1.0


DIRECT = [kind for kind in SECOND_ORDER if kind.task == "multiclass" and kind.multiclass == "direct"]


@pytest.mark.parametrize("kind", DIRECT, ids=map(str, DIRECT))
def test_classes_that_took_no_part_keep_mean_and_covariance_to_the_last_bit(kind: Kind) -> None:
    m = kind.learner(bias=False, classes=[0, 1, 2])
    m.learn(np.ones(5), 0)
    is_shared = kind.params.get("covariance") == "shared"

    for x, y in rows_of(kind):
        before, scores = beliefs(m), dict(m.predict(x).scores or {})
        m.learn(x, y)

        rival = max((k for k in scores if k != str(y)), key=lambda k: scores[k], default=None)
        for label, (mu, S) in before.items():
            if label not in (str(y), rival):
                assert beliefs(m)[label].mu.tolist() == mu.tolist()
                assert is_shared or beliefs(m)[label].S.tolist() == S.tolist()


@second_order_kind
def test_the_order_of_rows_matters(kind: Kind) -> None:
    if kind.name == "arow" and kind.task == "regression" and kind.params.get("covariance") == "full":
        pytest.skip("it is least squares, whose order is none")
    rows = list(rows_of(kind))
    straight, backwards = kind.learner(bias=False), kind.learner(bias=False)

    for (x, y), (other, label) in zip(rows, reversed(rows), strict=True):
        straight.learn(x, y)
        backwards.learn(other, label)

    for label, (mu, _) in beliefs(straight).items():
        assert mu != pytest.approx(beliefs(backwards)[label].mu, rel=1e-6)
