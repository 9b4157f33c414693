"""HDDM-W: a weighted mean of the newest values has risen above the lowest that it was by more than McDiarmid's bound.

Frías-Blanco, del Campo-Ávila, Ramos-Jiménez, Morales-Bueno, Ortiz-Díaz, Caballero-Mota. Online and Non-Parametric
Drift Detection Methods Based on Hoeffding's Bounds. IEEE Transactions on Knowledge and Data Engineering 27, 2015.

    sample (e, b)    its first value: e = x, b = 1
                     then: e ← λ x + (1 - λ) e,   b ← λ² + (1 - λ)² b        b  sum of the squared weights
    all values since the last drift are the sample (e, b):
    e + √(b ln(1 / drift) / 2) below the lowest that it was   →  sample 1 ← (e, b), sample 2 is empty
    else                                                      →  sample 2 takes x
    e2 - e1 > √((b1 + b2) ln(1 / drift) / 2)                  →  drift
    the same with ln(1 / warning)                             →  warning
    two_sided: the same of -x too, which sees falls

The bounds are for values in [0, 1]; scale others. `drift` and `warning` are chances of a false alarm. Of two sides,
statistic and threshold are those of the nearer to a drift.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from olstream.drift.base import (
    COUNTS,
    DRIFT,
    EVENTS,
    KNOWN,
    NUMBERS,
    STABLE,
    WARNING,
    Method,
    Params,
    Plan,
    tell_nearer,
)
from olstream.drift.hddm_a import PAPER
from olstream.errors import ConfigError
from olstream.learners._jit import F64, I64, kernel
from olstream.learners._params import Flag, Number

# A sample is two numbers, e and b
ALL, UP, DOWN = NUMBERS, NUMBERS + 2, NUMBERS + 7
CUT, FIRST, SECOND = 0, 1, 3  # of each side: the lowest bound, and two samples
UP_FED, DOWN_FED = COUNTS, COUNTS + 1  # whether the second sample of the side has a value


@kernel
def _step(p: F64, f: F64, n: I64, w: F64, x: float) -> int:
    n[KNOWN] = 0
    _feed(p[0], f, ALL, n[EVENTS] == 0, x)
    n[EVENTS] += 1
    level = _side(p, f, n, UP, UP_FED, x, f[ALL])
    if p[3] > 0.0:
        level = max(level, _side(p, f, n, DOWN, DOWN_FED, -x, -f[ALL]))
    return level


@kernel
def _feed(lam: float, f: F64, sample: int, is_first: bool, x: float) -> None:
    if is_first:
        f[sample] = x
        f[sample + 1] = 1.0
    else:
        f[sample] = lam * x + (1.0 - lam) * f[sample]
        f[sample + 1] = lam * lam + (1.0 - lam) * (1.0 - lam) * f[sample + 1]


@kernel
def _side(p: F64, f: F64, n: I64, side: int, fed: int, x: float, e: float) -> int:
    log_drift, log_warning = p[1], p[2]
    cut = e + math.sqrt(f[ALL + 1] * log_drift / 2.0)
    first, second = side + FIRST, side + SECOND
    if n[EVENTS] == 1 or cut < f[side + CUT]:
        f[side + CUT] = cut
        f[first] = e
        f[first + 1] = f[ALL + 1]
        n[fed] = 0
        return STABLE
    _feed(p[0], f, second, n[fed] == 0, x)
    n[fed] = 1
    apart, spread = f[second] - f[first], f[first + 1] + f[second + 1]
    bound = math.sqrt(spread * log_drift / 2.0)
    tell_nearer(f, n, apart, bound)
    if apart > bound:
        return DRIFT
    return WARNING if apart > math.sqrt(spread * log_warning / 2.0) else STABLE


def _build(given: Params) -> Plan:
    logs = -math.log(given["drift"]), -math.log(given["warning"])
    return Plan(_step, np.array([given["lambda"], *logs, given["two_sided"]], np.float64), numbers=12, counts=2)


def _together(given: Params) -> None:
    if given["warning"] < given["drift"]:
        raise ConfigError(f"hddm_w.warning ({given['warning']:g}) must not be below drift ({given['drift']:g})")


METHOD: Final = Method(
    name="hddm_w",
    title="HDDM-W",
    paper=PAPER,
    formulas=__doc__,
    params=(
        Number("drift", 0.001, "confidence of a drift: the smaller, the fewer and the later", above=0.0, below=1.0),
        Number("warning", 0.005, "confidence of a warning", above=0.0, below=1.0),
        Number("lambda", 0.05, "weight of the newest value", above=0.0, below=1.0),
        Flag("two_sided", False, "a fall of the mean is a drift too"),
    ),
    build=_build,
    together=_together,
)
