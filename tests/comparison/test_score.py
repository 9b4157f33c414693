"""Errors counted along a stream, and a curve of them that stays short."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olstream.comparison.score import POINTS_MAX, Curve, Score
from olstream.evaluate import Tally


def test_errors_and_distances_are_counted() -> None:
    score = Score(1.0)

    score.add(np.array([3.0, 0.0]))
    score.add(np.array([4.0, 1.0]))
    score.learnt(2, 5.0)

    assert (score.labelled, score.error_mean, score.loss_mean, score.updates) == (4, 2.0, 1.25, 2)
    assert score.root_mean_squared_error == pytest.approx(np.sqrt(26 / 4))


def test_nothing_is_known_of_no_rows() -> None:
    score = Score(0.9)

    assert (score.error_mean, score.root_mean_squared_error, score.loss_mean, score.rows_per_s) == (None,) * 4
    assert score.curve.to_the_end() == []


def test_the_largest_distances_stay_finite() -> None:
    score = Score(0.9)

    score.add(np.full(3, 1.7e308))

    means = (score.error_mean, score.root_mean_squared_error, *(y for _, y in score.curve.points))
    assert all(mean is not None and np.isfinite(mean) for mean in means)


@given(st.lists(st.booleans(), min_size=1, max_size=300))
def test_the_curve_is_the_fading_average_of_the_evaluation(wrong: list[bool]) -> None:
    n = len(wrong)
    truth = np.zeros(n, np.int64)
    tally, curve = Tally(True, 10, 0.97), Curve(0.97)

    tally.add(np.ones(n, np.uint8), truth, truth + np.array(wrong), np.zeros(n), np.zeros(0), truth, 2)
    for error in wrong:
        curve.add(float(error))

    assert curve.to_the_end()[-1] == (n, tally.error_rate("fading"))


@pytest.mark.parametrize("rows", [1, POINTS_MAX, POINTS_MAX + 1, 12_345])
def test_a_curve_keeps_so_many_points_evenly_spaced(rows: int) -> None:
    curve, whole = Curve(0.5), []
    for i in range(rows):
        curve.add(i % 7)
        whole.append(curve._sum / curve._weight)

    points = curve.to_the_end()

    assert min(rows, POINTS_MAX / 2) <= len(points) <= POINTS_MAX + 1
    assert points[-1][0] == rows
    assert len({b - a for (a, _), (b, _) in pairwise(points[:-1])}) <= 1
    assert all(error == whole[row - 1] for row, error in points)
