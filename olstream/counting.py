"""Rows of a batch into the counts that metrics show, in one pass each."""

from __future__ import annotations

import math

from olstream.learners._jit import F64, I64, U8, kernel


@kernel
def fill(edges: F64, counts: I64, values: F64) -> float:
    """Count each value where it belongs; the sum of those that are finite."""
    total = 0.0
    for value in values:
        if math.isfinite(value):
            place = 0
            while place < edges.size and edges[place] < value:
                place += 1
            counts[place] += 1
            total += value
    return total


@kernel
def pair(measured: U8, truth: I64, predicted: I64, counts: I64) -> None:
    """Measured rows by (label, prediction); classes past the last of the table share it."""
    other = counts.shape[0] - 1
    for row in range(measured.size):
        if measured[row] != 0 and truth[row] >= 0 and predicted[row] >= 0:
            counts[min(truth[row], other), min(predicted[row], other)] += 1


@kernel
def implausible(times: F64, earliest: float, latest: float) -> tuple[int, float]:
    """How many of these times lie outside, and the last one that does not; nan is no time."""
    strange, last = 0, math.nan
    for time in times:
        if earliest <= time <= latest:
            last = time
        elif not math.isnan(time):
            strange += 1
    return strange, last
