"""ADWIN: the longest window of the newest values in which no two parts differ; it shrinks when two do.

Bifet, Gavaldà. Learning from Time-Changing Data with Adaptive Windowing. SDM 2007 (ADWIN2).

    window     rows i = 0, 1, ... of at most `max_buckets` buckets of 2^i values each, kept as their sum and
               squared deviation; one more, and the two oldest of the row become one of the next:
               sums add, deviations add plus n1 n2 (u1 - u2)² / (n1 + n2)      u  means
    every `clock` values, with W > min_samples values in the window of squared deviation V,
    for every cut between buckets with n0, n1 > min_window + 1 values before and after it:
    D = ln(2 ln(W) / delta),   h = 1 / (n0 - min_window + 1) + 1 / (n1 - min_window + 1)
    |u0 - u1| > √(2 h D V / W) + (2/3) h D     →  the oldest bucket is dropped, and all cuts are tried again
    drift where a bucket was dropped           the rest of the window is kept: its newest values

The bound is for values in [0, 1]; scale others. The statistic is the largest |u0 - u1| of the last look at the
cuts as a share of its bound, so the threshold is 1. Every difference cuts the window; `mode` says which are told, by
drift and statistic. It knows no warning. O(log W) numbers, in a table of fixed size.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from olstream.drift.base import COUNTS, DRIFT, EVENTS, KNOWN, MODES, NUMBERS, STABLE, Method, Params, Plan, tell
from olstream.learners._jit import F64, I64, kernel
from olstream.learners._params import Choice, Number

PAPER: Final = "Bifet, Gavaldà. Learning from Time-Changing Data with Adaptive Windowing. SDM 2007"

ROWS: Final = 48  # of the table: room for 2^49 values, more than ever come
TOTAL, DEVIATION, LAST_LOOK = NUMBERS, NUMBERS + 1, NUMBERS + 2
CLOCK, USED, FILLED = COUNTS, COUNTS + 1, COUNTS + 2  # used rows; from FILLED on, the buckets in each row


@kernel
def _step(p: F64, f: F64, n: I64, w: F64, x: float) -> int:
    clock, min_samples = p[1], p[3]
    _insert(f, n, w, x)
    n[CLOCK] += 1
    if n[CLOCK] < clock:
        return STABLE
    n[CLOCK] = 0
    if n[EVENTS] <= min_samples:
        return STABLE
    apart, told = _look(p, f, n, w)
    largest = told
    while apart > 1.0:
        _drop_oldest(f, n, w)
        apart, told = _look(p, f, n, w)
        largest = max(largest, told)
    f[LAST_LOOK] = told
    _report(f, n, largest)
    return DRIFT if largest > 1.0 else STABLE


@kernel
def _report(f: F64, n: I64, largest: float) -> None:
    tell(f, n, max(largest, 0.0), 1.0)
    if largest < 0.0:
        n[KNOWN] = 0


@kernel
def _kept(p: F64, f: F64, n: I64, w: F64) -> None:
    """After a drift the window goes on; what was too far apart is no longer in it."""
    _report(f, n, f[LAST_LOOK])


# Bucket j of row i, the oldest first: its sum is w[2 i, j], its squared deviation w[2 i + 1, j]


@kernel
def _insert(f: F64, n: I64, w: F64, x: float) -> None:
    size = n[EVENTS]
    if size > 0:
        apart = x - f[TOTAL] / size
        f[DEVIATION] += apart * apart * size / (size + 1.0)
    f[TOTAL] += x
    n[EVENTS] += 1
    n[USED] = max(n[USED], 1)
    _append(n, w, 0, x, 0.0)
    i = 0
    while n[FILLED + i] == w.shape[1]:
        width = 2.0**i
        apart = (w[2 * i, 0] - w[2 * i, 1]) / width
        deviation = w[2 * i + 1, 0] + w[2 * i + 1, 1] + apart * apart * width / 2.0
        _append(n, w, i + 1, w[2 * i, 0] + w[2 * i, 1], deviation)
        _forget(n, w, i, 2)
        i += 1
        n[USED] = max(n[USED], i + 1)


@kernel
def _append(n: I64, w: F64, i: int, total: float, deviation: float) -> None:
    j = n[FILLED + i]
    w[2 * i, j] = total
    w[2 * i + 1, j] = deviation
    n[FILLED + i] += 1


@kernel
def _forget(n: I64, w: F64, i: int, count: int) -> None:
    """The oldest buckets of a row."""
    left = n[FILLED + i] - count
    for row in (2 * i, 2 * i + 1):
        for j in range(w.shape[1]):
            w[row, j] = w[row, j + count] if j < left else 0.0
    n[FILLED + i] = left


@kernel
def _look(p: F64, f: F64, n: I64, w: F64) -> tuple[float, float]:
    """The largest share of its bound that a cut has, from the oldest to the first above 1; -1 where no cut is.

    Of all changes, and of those that count.
    """
    delta, least, mode = p[0], p[2], p[4]
    size, largest, told = float(n[EVENTS]), -1.0, -1.0
    d = math.log(2.0 * math.log(size)) - math.log(delta)
    variance = f[DEVIATION] / size
    before, sum_before = 0.0, 0.0
    for i in range(n[USED] - 1, -1, -1):
        for j in range(n[FILLED + i]):
            before += 2.0**i
            sum_before += w[2 * i, j]
            after = size - before
            if before > least + 1.0 and after > least + 1.0:
                h = 1.0 / (before - least + 1.0) + 1.0 / (after - least + 1.0)
                bound = math.sqrt(2.0 * h * variance * d) + 2.0 / 3.0 * h * d
                share = ((f[TOTAL] - sum_before) / after - sum_before / before) / bound
                largest = max(largest, abs(share))
                told = max(told, abs(share) if mode == 0.0 else max(mode * share, 0.0))
                if largest > 1.0:
                    return float(largest), float(told)
    return float(largest), float(told)


@kernel
def _drop_oldest(f: F64, n: I64, w: F64) -> None:
    _forget(n, w, n[USED] - 1, 1)
    while n[USED] > 1 and n[FILLED + n[USED] - 1] == 0:
        n[USED] -= 1
    # from the buckets, not by subtraction: what is left may be far smaller than what went
    size, total, deviation = 0.0, 0.0, 0.0
    for i in range(n[USED] - 1, -1, -1):
        width = 2.0**i
        for j in range(n[FILLED + i]):
            if size > 0.0:
                apart = total / size - w[2 * i, j] / width
                deviation += apart * apart * size * width / (size + width)
            size += width
            total += w[2 * i, j]
            deviation += w[2 * i + 1, j]
    n[EVENTS] = int(size)
    f[TOTAL] = total
    f[DEVIATION] = deviation


def _build(given: Params) -> Plan:
    numbers = (given[name] for name in ("delta", "clock", "min_window", "min_samples"))
    p = np.array([*numbers, MODES[str(given["mode"])]], np.float64)
    table = (2 * ROWS, int(given["max_buckets"]) + 1)
    return Plan(_step, p, numbers=3, counts=2 + ROWS, table=table, reset=_kept, possible=_possible)


def _possible(n: I64, w: F64) -> bool:
    """Buckets in the rows in use alone, none of them full, the oldest not empty; together they hold the window."""
    used, filled = int(n[USED]), n[FILLED:].tolist()
    if not 0 <= used < ROWS or any(filled[used:]) or max(filled) >= w.shape[1] or (used and not filled[used - 1]):
        return False
    return bool(n[EVENTS] == sum(count << i for i, count in enumerate(filled)))


METHOD: Final = Method(
    name="adwin",
    title="ADWIN",
    paper=PAPER,
    formulas=__doc__,
    params=(
        Number("delta", 0.002, "confidence: the smaller, the fewer and the later alarms", above=0.0, below=1.0),
        Number("clock", 32, "values between two looks at the cuts", at_least=1, whole=True),
        Number("max_buckets", 5, "buckets of one size: the more, the finer", at_least=2, at_most=100, whole=True),
        Number("min_window", 5, "values on each side of a cut: more than one more", at_least=1, whole=True),
        Number("min_samples", 10, "no look before the window has more values than that", at_least=1, whole=True),
        Choice("mode", "both", "which changes are told: a rise, a fall, or both", tuple(MODES)),
    ),
    build=_build,
)  # fmt: skip
