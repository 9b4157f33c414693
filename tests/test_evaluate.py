"""The tally against the definitions, over everything that came."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from olstream import evaluate
from olstream.evaluate import CONFUSION_MAX
from tests.references.tally import Tally as SlowTally


def rows(n: int, classes: int = 3, seed: int = 0) -> tuple[Any, ...]:
    """measured, truth, predicted, loss."""
    rng = np.random.default_rng(seed)
    measured = (rng.random(n) < 0.8).astype(np.uint8)
    truth, predicted = rng.integers(0, classes, n), rng.integers(-1, classes, n)
    return measured, truth, predicted, rng.exponential(size=n)


def tally_of(parts: list[slice], columns: tuple[Any, ...], window: int = 20, declared: int = 0) -> evaluate.Tally:
    tally = evaluate.Tally(True, window, 0.97, declared)
    for part in parts:
        feed(tally, columns, part)
    return tally


def feed(tally: evaluate.Tally, columns: tuple[Any, ...], part: slice) -> None:
    measured, truth, predicted, loss = (column[part] for column in columns)
    updates = np.arange(columns[0].size)[part]
    tally.add(measured, truth, predicted, loss, np.zeros(0), updates, int(columns[1].max()) + 1)


@pytest.mark.parametrize("n", [1, 19, 20, 21, 300])
def test_every_measure_follows_its_definition(n: int) -> None:
    columns = rows(n)
    columns[0][0] = 1

    tally = tally_of([slice(0, n)], columns)

    slow = SlowTally()
    for measured, truth, predicted, loss in zip(*columns, strict=True):
        if measured:
            slow.add(int(truth), int(predicted), float(loss))
    count = len(slow.labels)
    assert (tally.labelled, tally.errors) == (count, sum(slow.errors))
    assert tally.error_rate() == pytest.approx(sum(slow.errors) / count, abs=1e-12)
    assert tally.error_rate("sliding") == pytest.approx(slow.sliding(slow.errors, 20), abs=1e-12)
    assert tally.error_rate("fading") == pytest.approx(slow.fading(slow.errors, 0.97), abs=1e-9)
    assert tally.loss_mean() == pytest.approx(sum(slow.losses) / count, abs=1e-9)
    assert tally.loss_mean("sliding") == pytest.approx(slow.sliding(slow.losses, 20), abs=1e-9)
    assert tally.loss_mean("fading") == pytest.approx(slow.fading(slow.losses, 0.97), abs=1e-9)
    assert tally.baseline("majority") == pytest.approx(slow.majority_errors / count, abs=1e-12)
    assert tally.baseline("no_change") == pytest.approx(slow.no_change_errors / count, abs=1e-12)


def test_nothing_is_known_before_the_first_label() -> None:
    tally = evaluate.Tally(True, 10, 0.99)

    none = np.zeros(3, np.int64)
    tally.add(np.zeros(3, np.uint8), none, none, np.zeros(3), np.zeros(0), none, 1)

    assert tally.error_rate() is None
    assert tally.error_rate("fading") is None
    assert tally.loss_mean("sliding") is None
    assert tally.baseline("majority") is None


@pytest.mark.parametrize("size", [1, 7, 64])
def test_splitting_the_rows_changes_no_bit(size: int) -> None:
    columns = rows(200)

    whole = tally_of([slice(0, 200)], columns, declared=3)
    parts = tally_of([slice(i, i + size) for i in range(0, 200, size)], columns, declared=3)

    for key, array in whole.state().items():
        assert np.array_equal(parts.state()[key], array), key


@pytest.mark.parametrize("cut", [5, 20, 133])
def test_a_saved_tally_goes_on_as_if_nothing_had_been(cut: int) -> None:
    columns = rows(200)
    straight = tally_of([slice(0, 200)], columns, declared=3)
    first = tally_of([slice(0, cut)], columns, declared=3)

    second = evaluate.Tally(True, 20, 0.97, 3)
    second.restore(first.state(), 3)
    feed(second, columns, slice(cut, None))

    for key, array in straight.state().items():
        assert np.array_equal(second.state()[key], array), key


def test_a_smaller_window_keeps_the_newest_rows() -> None:
    columns = rows(100)
    wide = tally_of([slice(0, 90)], columns, window=50)
    narrow = evaluate.Tally(True, 8, 0.97)
    narrow.restore(wide.state(), 3)
    feed(narrow, columns, slice(90, None))

    always_narrow = tally_of([slice(0, 100)], columns, window=8)
    assert narrow.error_rate("sliding") == always_narrow.error_rate("sliding")
    assert narrow.loss_mean("sliding") == always_narrow.loss_mean("sliding")


def test_a_state_is_a_copy() -> None:
    columns = rows(50)
    tally = tally_of([slice(0, 40)], columns, declared=3)
    state = tally.state()
    before = {key: array.copy() for key, array in state.items()}

    feed(tally, columns, slice(40, None))

    assert all(np.array_equal(state[key], before[key]) for key in before)


def test_regression_adds_up_absolute_and_squared_errors_and_has_no_error_rate() -> None:
    tally = evaluate.Tally(False, 10, 0.9)
    nobody = np.full(3, -1)

    measured, loss, absolute = np.array([1, 0, 1], np.uint8), np.array([1.0, 9.0, 3.0]), np.array([1.5, 9.0, 3.5])
    tally.add(measured, nobody, nobody, loss, absolute, np.zeros(3, np.int64), 0)

    assert (tally.absolute_sum, tally.squared_sum, tally.loss_sum) == (5.0, 14.5, 4.0)
    assert tally.mean_absolute_error() == 2.5
    assert tally.error_rate() is None
    assert tally.baseline("majority") is None
    assert tally.loss_mean("sliding") == 2.0


def test_sums_stay_finite() -> None:
    tally = evaluate.Tally(False, 10, 0.9)
    huge, nobody = np.full(4, 1.7e308), np.full(4, -1)

    tally.add(np.ones(4, np.uint8), nobody, nobody, huge, huge, np.zeros(4, np.int64), 0)

    assert all(np.isfinite(array).all() for array in tally.state().values())
    assert np.isfinite(tally.loss_mean() or 0.0)
    assert np.isfinite(tally.loss_mean("sliding") or 0.0)
    assert np.isfinite(tally.loss_mean("fading") or 0.0)


@pytest.mark.parametrize("declared", [2, 8, 9, 12])
def test_past_the_eighth_declared_class_the_confusion_table_says_other(declared: int) -> None:
    n = 400
    measured, truth, predicted, loss = rows(n, declared)
    predicted = np.maximum(predicted, 0)

    tally = tally_of([slice(0, n)], (measured, truth, predicted, loss), declared=declared)

    side = min(declared, CONFUSION_MAX + 1)
    expected = np.zeros((side, side), np.int64)
    for i in np.flatnonzero(measured):
        expected[min(truth[i], CONFUSION_MAX), min(predicted[i], CONFUSION_MAX)] += 1
    assert np.array_equal(tally.confusion, expected)


def test_a_label_of_no_known_class_is_an_error_for_everybody() -> None:
    tally = evaluate.Tally(True, 10, 0.9)
    strange = np.full(2, -1)

    tally.add(np.ones(2, np.uint8), strange, strange, np.ones(2), np.zeros(0), strange, 0)

    assert tally.error_rate() == tally.baseline("majority") == tally.baseline("no_change") == 1.0


def test_equally_frequent_classes_are_led_by_the_first_seen() -> None:
    tally = evaluate.Tally(True, 10, 0.9)
    truth = np.array([1, 0, 0, 1, 0])

    tally.add(np.ones(5, np.uint8), truth, truth, np.zeros(5), np.zeros(0), truth, 2)

    # majority before each row: none, 1, 0 (a tie), 0, 0
    assert tally.baseline("majority") == 3 / 5
