"""The curves of a tally against sums over the same rows, however many came and however they were cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from olstream.evaluate import Tally
from olstream.history import POINTS_MAX


def rows(n: int, seed: int = 5) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    measured = (rng.random(n) < 0.8).astype(np.uint8)
    truth, predicted = rng.integers(0, 3, n), rng.integers(0, 3, n)
    return measured, truth, predicted, rng.exponential(size=n), np.zeros(0), np.cumsum(rng.integers(0, 2, n)), 3


def told(columns: tuple[Any, ...], window: int = 10, size: int = 10_000, tally: Tally | None = None) -> Tally:
    tally = tally or Tally(True, window, 0.99)
    n = columns[0].size
    for start in range(0, n, size):
        part = slice(start, start + size)
        measured, truth, predicted, loss, _, updates, classes = columns
        tally.add(measured[part], truth[part], predicted[part], loss[part], np.zeros(0), updates[part], classes)
    return tally


@pytest.mark.parametrize("which", ["recent", "life"])
@pytest.mark.parametrize("n", [3, 250, 700, 5000])
def test_a_curve_has_the_means_between_its_points(which: str, n: int) -> None:
    columns = rows(n)
    of_measured = columns[0] != 0
    wrong, loss, updates = columns[1] != columns[2], columns[3], columns[5]

    curve = told(columns).history.curves(True)[which]

    assert len(curve.labelled) <= POINTS_MAX
    assert set(np.diff(curve.labelled)) <= {curve.every}
    for i, (start, end) in enumerate(zip(curve.labelled, curve.labelled[1:], strict=False)):
        assert curve.error[i] == pytest.approx(np.mean(wrong[of_measured][start:end]), abs=1e-12)
        assert curve.loss[i] == pytest.approx(np.mean(loss[of_measured][start:end]), abs=1e-9)
        before = updates[of_measured][start - 1] if start else 0
        assert curve.updated[i] * curve.every == pytest.approx(updates[of_measured][end - 1] - before, abs=1e-9)


def test_the_curve_of_a_whole_life_begins_at_the_first_row_and_the_recent_one_ends_at_the_last_step() -> None:
    tally = told(rows(20_000), window=10)

    recent, life = tally.history.curves(True)["recent"], tally.history.curves(True)["life"]

    assert life.labelled[0] == 0
    assert tally.labelled - life.labelled[-1] < life.every
    assert (len(recent.labelled), recent.every) == (POINTS_MAX, 2)
    assert recent.labelled[-1] == tally.labelled // 2 * 2


def test_the_baselines_of_a_curve_add_up_to_those_of_the_tally() -> None:
    tally = told(rows(640))

    life = tally.history.curves(True)["life"]

    errors = sum(life.no_change) * life.every
    after = tally.labelled - life.labelled[-1]
    no_change = tally.baseline("no_change")
    assert no_change is not None
    assert errors == pytest.approx(no_change * tally.labelled, abs=after + 1e-9)


@pytest.mark.parametrize("size", [1, 7, 300])
def test_splitting_the_rows_changes_no_bit_of_a_curve(size: int) -> None:
    columns = rows(2000)

    cut, whole = told(columns, size=size), told(columns)

    mine, theirs = cut.state(), whole.state()
    assert all(np.array_equal(mine[key], theirs[key]) for key in theirs)


def test_a_curve_goes_on_where_it_was_saved() -> None:
    columns = rows(3000)
    first, rest = (
        tuple(c[part] if np.size(c) > 1 else c for c in columns) for part in (slice(1500), slice(1500, None))
    )
    saved = told(first)
    back = Tally(True, 10, 0.99)

    back.restore(saved.state(), 3)
    told(rest, tally=back)

    mine, whole = back.state(), told(columns).state()
    assert all(np.array_equal(mine[key], whole[key]) for key in whole)


def test_with_another_window_the_points_that_are_there_stay() -> None:
    columns = rows(1000)
    saved = told(columns, window=10)
    wider = Tally(True, 100, 0.99)

    wider.restore(saved.state(), 3)
    told(columns, tally=wider)

    recent = wider.history.curves(True)["recent"]
    assert recent.every == 20
    assert {int(step) for step in np.diff(recent.labelled)} >= {2, 20}


def test_a_regression_has_curves_of_its_absolute_error_and_no_baselines() -> None:
    tally = Tally(False, 5, 0.99)
    nobody, distance = np.full(3, -1), np.array([1.0, 2.0, 6.0])

    tally.add(np.ones(3, np.uint8), nobody, nobody, distance, distance, np.arange(3), 0)

    life = tally.history.curves(False)["life"]
    assert (life.labelled, life.error, life.majority) == ([0, 1, 2, 3], [1.0, 2.0, 6.0], [])
