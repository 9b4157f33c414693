"""Rows of a batch into the counts that metrics show, in one pass each."""

from __future__ import annotations

import math

from olstream.learners._jit import F64, I64, U8, kernel


@kernel
def fill(edges: F64, counts: I64, values: F64) -> float:
    """Count each value where it belongs; the sum of those that are finite."""
    total = 0.0
    for value in values:
        total += _count(edges, counts, value)
    return total


@kernel
def _count(edges: F64, counts: I64, value: float) -> float:
    if not math.isfinite(value):
        return 0.0
    place = 0
    while place < edges.size and edges[place] < value:
        place += 1
    counts[place] += 1
    return value


WIDTHS, STEPS, MARGINS, MARGINS_AFTER = range(4)  # rows of what `fill_rows` fills


@kernel
def fill_rows(
    edges: F64, counts: I64, sums: F64, confusion: I64,
    entries: I64, step: F64, updated: U8, margin: F64, margin_after: F64, measured: U8, truth: I64, predicted: I64,
) -> None:  # fmt: skip
    """All that is counted of a batch of rows at once.

    `edges` (4, n); `counts` (4, n + 1), `sums` (4,) and `confusion` (c, c) are added to: measured rows by (label,
    prediction), classes past the last of the table share it.
    """
    other = confusion.shape[0] - 1
    for row in range(entries.size):
        if entries[row] >= 0:
            sums[WIDTHS] += _count(edges[WIDTHS], counts[WIDTHS], float(entries[row]))
        if updated[row] != 0:
            sums[STEPS] += _count(edges[STEPS], counts[STEPS], step[row])
        if measured[row] != 0:
            sums[MARGINS] += _count(edges[MARGINS], counts[MARGINS], margin[row])
            sums[MARGINS_AFTER] += _count(edges[MARGINS_AFTER], counts[MARGINS_AFTER], margin_after[row])
            if other >= 0 and truth[row] >= 0 and predicted[row] >= 0:
                confusion[min(truth[row], other), min(predicted[row], other)] += 1


@kernel
def fill_waits(edges: F64, counts: I64, times_ms: F64, now_s: float, earliest_ms: float, latest_ms: float) -> float:
    """Count how long ago each plausible time is, in seconds; their sum. A clock may be ahead of ours: then it is 0."""
    total = 0.0
    for time_ms in times_ms:
        if earliest_ms <= time_ms <= latest_ms:
            total += _count(edges, counts, max(now_s - time_ms / 1000.0, 0.0))
    return total


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
