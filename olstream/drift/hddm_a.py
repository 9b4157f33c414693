"""HDDM-A: the mean has risen above the lowest that it was by more than Hoeffding's bound allows.

Frías-Blanco, del Campo-Ávila, Ramos-Jiménez, Morales-Bueno, Ortiz-Díaz, Caballero-Mota. Online and Non-Parametric
Drift Detection Methods Based on Hoeffding's Bounds. IEEE Transactions on Knowledge and Data Engineering 27, 2015.

    z    mean of the n values since the last drift,      e(k) = √(ln(1 / drift) / (2 k))
    z' + e(n') ≥ z + e(n)  →  n', z' ← n, z              where the mean was lowest
    with n' < n:
    z - z' ≥ √((n - n') / (2 n n') ln(2 / drift))        →  drift
    the same with ln(2 / warning)                        →  warning
    two_sided: also falls, from where it was highest:    z" - e(n") ≤ z - e(n)  →  n", z" ← n, z

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
from olstream.errors import ConfigError
from olstream.learners._jit import F64, I64, kernel
from olstream.learners._params import Flag, Number

PAPER: Final = (
    "Frías-Blanco, del Campo-Ávila, Ramos-Jiménez, Morales-Bueno, Ortiz-Díaz, Caballero-Mota. Online and "
    "Non-Parametric Drift Detection Methods Based on Hoeffding's Bounds. IEEE Transactions on Knowledge and Data "
    "Engineering 27, 2015"
)

SUM, LOWEST, HIGHEST = NUMBERS, NUMBERS + 1, NUMBERS + 2
LOWEST_N, HIGHEST_N = COUNTS, COUNTS + 1


@kernel
def _step(p: F64, f: F64, n: I64, w: F64, x: float) -> int:
    log_cut, two_sided = p[0], p[3] > 0.0
    n[EVENTS] += 1
    n[KNOWN] = 0
    f[SUM] += x
    z = f[SUM] / n[EVENTS]
    e = math.sqrt(log_cut / (2.0 * n[EVENTS]))
    if n[LOWEST_N] == 0 or f[LOWEST] + math.sqrt(log_cut / (2.0 * n[LOWEST_N])) >= z + e:
        n[LOWEST_N] = n[EVENTS]
        f[LOWEST] = z
    if n[HIGHEST_N] == 0 or f[HIGHEST] - math.sqrt(log_cut / (2.0 * n[HIGHEST_N])) <= z - e:
        n[HIGHEST_N] = n[EVENTS]
        f[HIGHEST] = z
    level = _judge(p, f, n, z - f[LOWEST], n[LOWEST_N])
    if two_sided:
        level = max(level, _judge(p, f, n, f[HIGHEST] - z, n[HIGHEST_N]))
    return level


@kernel
def _judge(p: F64, f: F64, n: I64, apart: float, cut: int) -> int:
    log_drift, log_warning = p[1], p[2]
    if cut == n[EVENTS]:
        return STABLE
    spread = (n[EVENTS] - cut) / (2.0 * n[EVENTS] * cut)
    bound = math.sqrt(spread * log_drift)
    tell_nearer(f, n, apart, bound)
    if apart >= bound:
        return DRIFT
    return WARNING if apart >= math.sqrt(spread * log_warning) else STABLE


def _build(given: Params) -> Plan:
    drift, warning = math.log(given["drift"]), math.log(given["warning"])
    p = np.array([-drift, math.log(2.0) - drift, math.log(2.0) - warning, given["two_sided"]], np.float64)
    return Plan(_step, p, numbers=3, counts=2)


def _together(given: Params) -> None:
    if given["warning"] < given["drift"]:
        raise ConfigError(f"hddm_a.warning ({given['warning']:g}) must not be below drift ({given['drift']:g})")


METHOD: Final = Method(
    name="hddm_a",
    title="HDDM-A",
    paper=PAPER,
    formulas=__doc__,
    params=(
        Number("drift", 0.001, "confidence of a drift: the smaller, the fewer and the later", above=0.0, below=1.0),
        Number("warning", 0.005, "confidence of a warning", above=0.0, below=1.0),
        Flag("two_sided", False, "a fall of the mean is a drift too"),
    ),
    build=_build,
    together=_together,
)
