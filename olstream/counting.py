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


@kernel
def fill_rows(
    edges: F64, counts: I64, sums: F64, confusion: I64,
    entries: I64, step: F64, updated: U8, margin: F64, margin_after: F64, measured: U8, truth: I64, predicted: I64,
) -> None:  # fmt: skip
    """All that is counted of a batch of rows at once.

    Histograms of widths, steps, margins and margins after, by `edges` (4, n): added to are `counts` (4, n + 1), `sums`
    (4,), and `confusion` (c, c), measured rows by (label, prediction); classes past the last of the table share it.
    """
    other = confusion.shape[0] - 1
    of_widths, of_steps, of_margins, of_margins_after = edges[0], edges[1], edges[2], edges[3]
    widths, steps, margins, margins_after = counts[0], counts[1], counts[2], counts[3]
    for row in range(entries.size):
        if entries[row] >= 0:
            sums[0] += _count(of_widths, widths, float(entries[row]))
        if updated[row] != 0:
            sums[1] += _count(of_steps, steps, step[row])
        if measured[row] != 0:
            sums[2] += _count(of_margins, margins, margin[row])
            sums[3] += _count(of_margins_after, margins_after, margin_after[row])
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
