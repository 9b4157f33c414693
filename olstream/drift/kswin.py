"""KSWIN: the newest values do not look as if drawn from the same distribution as those before them.

Raab, Heusinger, Schleif. Reactive Soft Prototype Computing for Concept Drift Streams. Neurocomputing 416, 2020.

    window     the newest `window` values; nothing is told before it is full
    D          the largest distance between the distribution functions of two samples of r = `stat` values:
               the newest r, and r drawn without replacement from those before them (Kolmogorov-Smirnov)
    threshold: river    p ≤ alpha and D > 0.1    →  drift        p  chance of such a D or a larger, exact for no ties:
               p = 2 Σ_{j ≥ 1} (-1)^{j - 1} C(2 r, r - j h) / C(2 r, r),  h = r D
    threshold: paper    D > √(-ln(alpha) / r)    →  drift
    after a drift the newest r are kept

D is a whole number of steps 1 / r; the threshold shown is the smallest that is a drift. Of every change the newest r
are kept; `mode` says which are told: those where the newest have the greater sum (up), where they have not (down), or
both. Each value is a test of its own, at level alpha: expect false alarms. It knows no warning.
Drawing: the k-th of the sample changes places with one of itself and those after it, chosen by the k-th number of
SplitMix64 from `seed` on (Steele, Lea, Flood. Fast Splittable Pseudorandom Number Generators. OOPSLA 2014), modulo
their count.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from fractions import Fraction
from typing import Any, Final

import numpy as np

from olstream.drift.base import COUNTS, DRIFT, EVENTS, KNOWN, MODES, STABLE, Method, Params, Plan, tell
from olstream.errors import ConfigError
from olstream.learners._jit import F64, I64, kernel
from olstream.learners._params import Choice, Number

PAPER: Final = (
    "Raab, Heusinger, Schleif. Reactive Soft Prototype Computing for Concept Drift Streams. Neurocomputing 416, 2020"
)
LEAST_D: Final = 0.1  # of `river`: a smaller distance is none, however sure

HEAD, DRAWN = COUNTS, COUNTS + 1  # where the next value goes, which is the oldest's place; numbers drawn so far

# All operands of the generator are unsigned: with a signed one numba goes over to floating point
_GAMMA: Any = np.uint64(0x9E3779B97F4A7C15)
_MIX_1: Any = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2: Any = np.uint64(0x94D049BB133111EB)


@kernel
def _step(p: F64, f: F64, n: I64, w: F64, x: float) -> int:
    r, least, size = int(p[1]), int(p[2]), w.shape[1]
    w[0, n[HEAD]] = x
    n[HEAD] = (n[HEAD] + 1) % size
    n[EVENTS] = min(n[EVENTS] + 1, size)
    if n[EVENTS] < size:
        return STABLE
    older, newest = _drawn(p, n, w, r), np.empty(r)
    for k in range(r):
        newest[k] = w[0, (n[HEAD] + size - r + k) % size]
    h = _distance(_sorted(older), _sorted(newest))
    risen = _sum(newest) > _sum(older)
    counts = p[3] == 0.0 or risen == (p[3] > 0.0)
    tell(f, n, h / r if counts else 0.0, least / r)
    if h >= least and not counts:
        n[EVENTS] = r  # a change all the same: what was before it is gone
    return DRIFT if h >= least and counts else STABLE


@kernel
def _newest_kept(p: F64, f: F64, n: I64, w: F64) -> None:
    n[EVENTS] = int(p[1])
    n[KNOWN] = 0


@kernel
def _drawn(p: F64, n: I64, w: F64, r: int) -> F64:
    size = w.shape[1]
    places, chosen = np.arange(size - r), np.empty(r)
    for k in range(r):
        n[DRAWN] += 1
        other = k + int(random_bits(p[0], n[DRAWN]) % np.uint64(size - r - k))
        place = places[other]
        places[other] = places[k]
        chosen[k] = w[0, (n[HEAD] + place) % size]
    return chosen


@kernel
def random_bits(seed: float, k: int) -> Any:
    """The k-th number of SplitMix64, counted from 1: 64 bits."""
    z = np.uint64(seed) + np.uint64(k) * _GAMMA
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


@kernel
def _sorted(a: F64) -> F64:
    """In place, by insertion: for so few the fastest, and the fastest to compile."""
    for i in range(1, a.size):
        x, j = a[i], i
        while j > 0 and a[j - 1] > x:
            a[j] = a[j - 1]
            j -= 1
        a[j] = x
    return a


@kernel
def _sum(a: F64) -> float:
    """From left to right: NumPy's order is another, compiled or not."""
    total = 0.0
    for x in a:
        total += x
    return total


@kernel
def _distance(a: F64, b: F64) -> int:
    """r D of two sorted samples of r values."""
    i, j, h = 0, 0, 0
    while i < a.size and j < b.size:
        value = min(a[i], b[j])
        while i < a.size and a[i] <= value:
            i += 1
        while j < b.size and b[j] <= value:
            j += 1
        h = max(h, abs(i - j))
    return h


def p_value(h: int, r: int) -> Fraction:
    """The chance that two samples of r values from one continuous distribution have r D ≥ h ≥ 1."""
    paths = sum((-1) ** (j - 1) * math.comb(2 * r, r - j * h) for j in range(1, r // h + 1))
    return Fraction(2 * paths, math.comb(2 * r, r))


def least_distance(given: Params) -> int:
    """The smallest r D that is a drift; r + 1 where none is."""
    r, alpha = int(given["stat"]), given["alpha"]

    def is_drift(h: int) -> bool:
        if given["threshold"] == "paper":
            return h / r > math.sqrt(-math.log(alpha) / r)
        return h / r > LEAST_D and p_value(h, r) <= alpha

    return 1 + bisect_left(range(1, r + 1), True, key=is_drift)


def _build(given: Params) -> Plan:
    p = np.array([given["seed"], given["stat"], least_distance(given), MODES[str(given["mode"])]], np.float64)
    return Plan(_step, p, counts=2, table=(1, int(given["window"])), reset=_newest_kept, possible=_possible)


def _possible(n: I64, w: F64) -> bool:
    return bool(n[HEAD] < w.shape[1] and n[EVENTS] <= w.shape[1])


def _together(given: Params) -> None:
    r = given["stat"]
    if given["window"] < 2 * r:
        raise ConfigError(f"kswin.window ({given['window']}) must be at least twice stat ({r})")
    if least_distance(given) > r:
        raise ConfigError(f"kswin.stat ({r}) is too small for alpha {given['alpha']:g}: nothing would be a drift")


METHOD: Final = Method(
    name="kswin",
    title="KSWIN",
    paper=PAPER,
    formulas=__doc__,
    params=(
        Number("alpha", 0.005, "level of each test: the smaller, the fewer alarms", above=0.0, below=1.0),
        Number("window", 100, "values looked at", at_least=2, at_most=100_000, whole=True),
        Number("stat", 30, "of them the newest, and as many of the others", at_least=1, at_most=500, whole=True),
        Number("seed", 0, "of the drawing", at_least=0, at_most=2**53, whole=True),
        Choice("threshold", "river", "by the exact chance, or by the paper's bound", ("river", "paper")),
        Choice("mode", "both", "which changes are told: a rise, a fall, or both", tuple(MODES)),
    ),
    build=_build,
    together=_together,
)
