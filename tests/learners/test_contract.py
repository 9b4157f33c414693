"""What every learner promises, for every task it has: hostile numbers, order, state, purity."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from olstream import Learner
from olstream.learners.base import Task
from tests.learners.kinds import EVERY, REGRESSORS, SEVERAL, Kind, every_kind

BINARY = [kind for kind in EVERY if kind.task == "binary"]
SIZES = (1e-150, 1e-100, 1e-10, 1.0, 1e10, 1e100, 1e150)


def labels(task: Task) -> tuple[Any, Any]:
    return (3.0, -3.0) if task == "regression" else ("yes", "no")


def numbers_of(m: Learner) -> list[float]:
    """Every number that a learner holds."""
    arrays = m._model.state()[1].values()
    return [float(x) for array in arrays for x in np.ravel(array)]


def stream(task: Task, n: int = 40, seed: int = 0) -> tuple[list[dict[str, float]], list[Any], list[float]]:
    """Sparse rows with names that come and go, classes that come late, and weights with a 0 among them."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, float]] = []
    ys: list[Any] = []
    for i in range(n):
        names = rng.choice(list("abcdefgh"[: 3 + i // 8]), 3, replace=False)
        rows.append({str(name): float(x) for name, x in zip(names, rng.normal(size=3), strict=True)})
        known = 2 if task == "binary" else 2 + i // 15
        ys.append(float(rng.normal()) if task == "regression" else f"class {rng.integers(known)}")
    return rows, ys, [float(w) for w in rng.choice([0.0, 0.5, 1.0, 2.0], n)]


@every_kind
def test_a_zero_vector_is_measured_and_teaches_nothing(kind: Kind) -> None:
    m = kind.learner(bias=False)
    m.learn({"x": 1.0}, labels(kind.task)[0])
    m.learn({"x": 1.0}, labels(kind.task)[1])
    before = m.weights(), m.variances()

    for row in ({}, {"x": 0.0}, {"x": 1e-200}, {"x": 1e-155}, {"x": -0.0, "y": 0.0}):
        report = m.learn(row, labels(kind.task)[0])

        assert (report.updated, report.skip_reason, report.step) == (False, "zero_norm", 0.0)
        assert report.loss is not None and report.loss >= 0

    assert all(weight == 0.0 for weight in _of(m.weights(), "y"))
    if not kind.shrinks and not kind.params.get("averaged"):  # whose rounds go on
        assert _of(m.weights(), "x") == _of(before[0], "x")
    assert m.variances() is None or _of(m.variances(), "x") == _of(before[1], "x")


def _of(exported: Any, feature: str) -> list[float]:
    """The numbers of one feature, whatever the task."""
    if any(isinstance(value, dict) for value in exported.values()):
        return [vector[feature] for vector in exported.values()]
    return [exported[feature]]


@every_kind
@pytest.mark.parametrize("bias", [False, True])
def test_no_size_of_numbers_makes_the_state_anything_but_finite(kind: Kind, bias: bool) -> None:
    rng = np.random.default_rng(1)
    m = kind.learner(bias=bias)
    for i in range(kind.some(60)):
        row = {key: float(rng.choice([-1, 1]) * 10.0 ** rng.uniform(-308, 308)) for key in "xyz"}
        y = float(10.0 ** rng.uniform(-300, 308)) if kind.task == "regression" else str(rng.integers(2))

        report = m.learn(row, y, weight=float(10.0 ** rng.uniform(-300, 300)))

        assert math.isfinite(report.score) and math.isfinite(report.score_after)
        shown = (report.margin, report.loss, report.variance, report.step, report.margin_after, report.loss_after)
        assert all(x is None or math.isfinite(x) for x in shown), f"row {i}: {report}"
        assert report.updated or report.step == 0
    assert all(map(math.isfinite, numbers_of(m)))


@every_kind
def test_a_row_that_is_skipped_leaves_everything_as_it_was(kind: Kind) -> None:
    rng = np.random.default_rng(3)
    m = kind.learner(bias=False, classes=None if kind.task == "regression" else ["0", "1"])
    m.learn_many([{"x": 1.0, "y": 1.0, "z": 1.0}] * 2, labels_of(kind, rng, 2))
    goes_on = kind.shrinks or kind.is_descent or "averaged" in kind.params  # a round that is zero counts
    skipped = 0
    for label in labels_of(kind, rng, kind.some(80)):
        row = {key: float(rng.choice([-1, 1]) * 10.0 ** rng.uniform(-300, 308)) for key in "xyz"}
        before = m._model.state()[1]

        report = m.learn(row, label)

        if report.skip_reason == "overflow" or (report.skip_reason is not None and not goes_on):
            skipped += 1
            after = m._model.state()[1]
            changed = [key for key in before if not np.array_equal(before[key], after[key])]
            assert all(key.startswith(("tally.", "drift.")) for key in changed)
            assert report.score_after == report.score
        assert not (report.updated and report.skip_reason)
    assert skipped > kind.some(80) // 16 or goes_on


def labels_of(kind: Kind, rng: np.random.Generator, n: int) -> list[Any]:
    if kind.task == "regression":
        return [float(10.0 ** rng.uniform(-300, 308)) for _ in range(n)]
    return [str(rng.integers(2)) for _ in range(n)]


@every_kind
def test_a_row_whose_norm_no_double_holds_is_taken_for_the_zero_vector(kind: Kind) -> None:
    m = kind.learner(bias=False)
    m.learn({"x": 1.0}, labels(kind.task)[0])

    report = m.learn({"x": 1e200, "new": 1e200}, labels(kind.task)[1])

    assert (report.skip_reason, report.updated, report.step) == ("zero_norm", False, 0.0)
    assert _of(m.weights(), "new") == [0.0] * len(_of(m.weights(), "new"))


@pytest.mark.parametrize("kind", BINARY, ids=map(str, BINARY))
def test_a_score_of_0_is_of_the_positive_class(kind: Kind) -> None:
    m = kind.learner(classes=["no", "yes"])

    assert (m.predict({"x": 1.0}).score, m.predict({"x": 1.0}).label) == (0.0, "yes")


@every_kind
@pytest.mark.parametrize("size", SIZES)
def test_a_first_step_is_right_at_every_size_of_x(kind: Kind, size: float) -> None:
    m = kind.learner(bias=False, params={"eps": 0.0} if kind.task == "regression" else {})
    right, wrong = (2.0, 2.0) if kind.task == "regression" else labels(kind.task)
    m.learn({"other": 1.0}, wrong)

    report = m.learn({"x": 0.6 * size, "y": -0.8 * size}, right)

    if kind.name == "alm_svm" and size > 1.0:  # rows of sizes so far apart have no solution in doubles
        assert report.skip_reason in (None, "overflow")
        return
    assert report.skip_reason is None
    if kind.name == "pa":
        assert (report.loss_after or 0.0) == pytest.approx(0.0, abs=1e-9)
    if kind.name == "pa" and kind.task != "regression":
        assert report.margin_after == pytest.approx(1.0, rel=1e-9)
    assert report.loss is not None and report.loss_after is not None
    assert not kind.does_each_justice or report.loss_after <= report.loss + kind.slack
    assert all(map(math.isfinite, numbers_of(m)))


@every_kind
@pytest.mark.parametrize("size", SIZES)
def test_repeats_and_contradictions_stay_finite_at_every_size(kind: Kind, size: float) -> None:
    m = kind.learner(bias=False)
    for i in range(kind.some(30)):
        report = m.learn({"x": size, "y": -size}, labels(kind.task)[i % 2 if i > 7 else 0])

        if report.updated and kind.does_each_justice:
            assert (report.loss_after or 0.0) <= (report.loss or 0.0) + kind.slack
    assert all(map(math.isfinite, numbers_of(m)))
    assert m.variances() is None or all(s > 0 for s in [*_of(m.variances(), "x"), *_of(m.variances(), "y")])


@every_kind
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 10**400], ids=["nan", "inf", "-inf", "10**400"])
def test_a_number_that_is_not_finite_skips_the_row_and_changes_nothing(kind: Kind, bad: float) -> None:
    m = kind.learner()
    m.learn({"x": 1.0}, labels(kind.task)[0])
    before = m._model.state()

    reports = [m.learn({"x": 1.0, "new": bad}, labels(kind.task)[1])]
    if kind.task == "regression" and isinstance(bad, float):
        reports.append(m.learn({"x": 1.0, "new": 1.0}, bad))

    assert {report.skip_reason for report in reports} == {"non_finite"}
    assert not any(report.updated for report in reports)
    assert all(math.isfinite(report.score) for report in reports)
    after = m._model.state()
    assert after[0] == before[0]
    changed = [key for key in before[1] if not np.array_equal(before[1][key], after[1][key])]
    assert changed == ["tally.counts"]  # it was seen
    assert m._model.tally.labelled == 1


@every_kind
def test_features_never_learnt_have_no_say_in_the_score(kind: Kind) -> None:
    m = kind.learner()
    m.learn_many(*stream(kind.task))

    assert m.predict({"a": 1.0, "never": 2.5}).score == m.predict({"a": 1.0}).score
    assert "never" not in str(m.weights())


@every_kind
def test_the_order_of_names_leaves_no_trace(kind: Kind) -> None:
    rows, ys, weights = stream(kind.task)
    m, reversed_m = kind.learner(), kind.learner()

    m.learn_many(rows, ys, weights)
    reversed_m.learn_many([dict(reversed(row.items())) for row in rows], ys, weights)

    assert m.digest() == reversed_m.digest()
    assert m.predict({"a": 1.0, "b": 2.0}) == m.predict({"b": 2.0, "a": 1.0})


@every_kind
@pytest.mark.parametrize("settings", [{}, {"scale": "standard"}, {"bias": False}])
def test_splitting_a_batch_changes_nothing(kind: Kind, settings: dict[str, Any]) -> None:
    rows, ys, weights = stream(kind.task)
    whole = kind.learner(**settings)
    reports = whole.learn_many(rows, ys, weights)

    for size in (1, 7):
        parts = kind.learner(**settings)
        found = []
        for i in range(0, len(rows), size):
            found += parts.learn_many(rows[i : i + size], ys[i : i + size], weights[i : i + size])

        assert found == reports
        assert parts.digest() == whole.digest()
        assert parts.weights() == whole.weights()


@every_kind
def test_predicting_changes_nothing(kind: Kind) -> None:
    rows, ys, _ = stream(kind.task)
    m = kind.learner(scale="standard")
    m.learn_many(rows[:20], ys[:20])
    before = m.digest()

    for row in [*rows, {}, {"never": 1e300}, {"x": math.nan}, {"color": "red"}]:
        m.predict(row)

    assert m.digest() == before


@every_kind
def test_weight_zero_only_counts_as_seen(kind: Kind) -> None:
    rows, ys, _ = stream(kind.task)
    m = kind.learner(scale="standard")
    m.learn_many(rows[:10], ys[:10])
    before = m._model.state()

    report = m.learn({"a": 5.0, "never": 1.0}, 7.0 if kind.task == "regression" else ys[0], weight=0)

    after = m._model.state()
    assert report.loss is not None
    assert not report.updated
    assert after[0] == before[0]
    assert [key for key in before[1] if not np.array_equal(before[1][key], after[1][key])] == ["tally.counts"]
    assert int(after[1]["tally.counts"].sum() - before[1]["tally.counts"].sum()) == 1


@every_kind
def test_a_saved_learner_goes_on_to_the_same_bit(kind: Kind, tmp_path: Path) -> None:
    rows, ys, weights = stream(kind.task)
    straight, first = kind.learner(scale="standard"), kind.learner(scale="standard")
    straight.learn_many(rows, ys, weights)
    first.learn_many(rows[:17], ys[:17], weights[:17])

    first.save(tmp_path / "saved")
    second = Learner.load(tmp_path / "saved")
    assert second.digest() == first.digest()
    second.learn_many(rows[17:], ys[17:], weights[17:])

    assert second.digest() == straight.digest()
    assert second.weights() == straight.weights()
    assert second.variances() == straight.variances()


@every_kind
def test_what_a_row_reports_of_itself_afterwards_is_what_is_predicted_then(kind: Kind) -> None:
    m = kind.learner()
    for features, y, weight in zip(*stream(kind.task), strict=True):
        before = m.predict(features).score

        report = m.learn(features, y, weight)

        assert report.score == before
        assert report.score_after == m.predict(features).score
        again = m.learn(features, y, 0.0)
        assert (again.margin, again.loss) == (report.margin_after, report.loss_after)


@every_kind
def test_a_repeated_row_is_learnt_from_less_each_time(kind: Kind) -> None:
    m = kind.learner(bias=False)
    y = 4.0 if kind.task == "regression" else "b"
    m.learn({"z": 1.0}, 4.0 if kind.task == "regression" else "a")

    losses = [m.learn({"x": 1.0}, y).loss for _ in range(5)]

    assert losses == sorted(losses, key=lambda loss: -(loss or 0.0))
    assert losses[0] == 0.0 or (losses[-1] or 0.0) < (losses[0] or 0.0)


@pytest.mark.parametrize("kind", SEVERAL, ids=map(str, SEVERAL))
def test_a_class_that_comes_late_is_learnt_from_its_first_row(kind: Kind) -> None:
    m = kind.learner()
    for _ in range(50):
        m.learn({"x": 1.0}, "a")
    assert m.predict({"w": 1.0}).label == "a"

    report = m.learn({"z": 1.0}, "b")

    assert report.updated
    assert m.predict({"z": 1.0}).label == "b"


@pytest.mark.parametrize("kind", REGRESSORS, ids=map(str, REGRESSORS))
def test_a_feature_of_a_million_millions_beside_a_small_one_stays_finite(kind: Kind) -> None:
    m = kind.learner()
    rng = np.random.default_rng(2)

    n = kind.some(1000)
    reports = m.learn_many([{"ms": 1764460800000, "price": 12.5}] * n, rng.uniform(9, 12, n))

    assert all(map(math.isfinite, numbers_of(m)))
    assert all(math.isfinite(report.score_after) for report in reports)


@every_kind
def test_a_fresh_learner_predicts_zero(kind: Kind) -> None:
    p = kind.learner().predict({"x": 1.0})

    assert p.score == 0.0
    assert p.label == (0.0 if kind.task == "regression" else None)
