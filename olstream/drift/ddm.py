"""DDM: the error rate has risen well above the lowest that it was.

Gama, Medas, Castillo, Rodrigues. Learning with Drift Detection. SBIA 2004.

    p = errors / n,   s = √(p (1 - p) / n)         over the n values since the last drift
    for n > min_samples:
    p + s ≤ p' + s'            →  p', s' ← p, s    the lowest so far
    p + s > p' + drift s'      →  drift
    p + s > p' + warning s'    →  warning

Strictly above: a stream without errors (p = s = 0) raises nothing. But then s' = 0, and its first error is a
drift; so with `min_errors` nothing is stored or compared before so many errors. Only a rise is seen.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from olstream.drift.base import COUNTS, DRIFT, EVENTS, NUMBERS, STABLE, WARNING, Method, Params, Plan, tell
from olstream.errors import ConfigError
from olstream.learners._jit import F64, I64, kernel
from olstream.learners._params import Number

PAPER: Final = "Gama, Medas, Castillo, Rodrigues. Learning with Drift Detection. SBIA 2004"

LOWEST_P, LOWEST_S = NUMBERS, NUMBERS + 1
ERRORS, STORED = COUNTS, COUNTS + 1


@kernel
def _step(p: F64, f: F64, n: I64, w: F64, x: float) -> int:
    min_samples, min_errors, warning, drift = p[0], p[1], p[2], p[3]
    n[EVENTS] += 1
    if x > 0.0:
        n[ERRORS] += 1
    if n[EVENTS] <= min_samples or n[ERRORS] < min_errors:
        return STABLE
    rate = n[ERRORS] / n[EVENTS]
    s = math.sqrt(rate * (1.0 - rate) / n[EVENTS])
    if n[STORED] == 0 or rate + s <= f[LOWEST_P] + f[LOWEST_S]:
        n[STORED] = 1
        f[LOWEST_P] = rate
        f[LOWEST_S] = s
    tell(f, n, rate + s, f[LOWEST_P] + drift * f[LOWEST_S])
    if rate + s > f[LOWEST_P] + drift * f[LOWEST_S]:
        return DRIFT
    return WARNING if rate + s > f[LOWEST_P] + warning * f[LOWEST_S] else STABLE


def _build(given: Params) -> Plan:
    p = np.array([given["min_samples"], given["min_errors"], given["warning"], given["drift"]], np.float64)
    return Plan(_step, p, numbers=2, counts=2)


def _together(given: Params) -> None:
    if given["warning"] > given["drift"]:
        raise ConfigError(f"ddm.warning ({given['warning']:g}) must not be above drift ({given['drift']:g})")


METHOD: Final = Method(
    name="ddm",
    title="DDM",
    paper=PAPER,
    formulas=__doc__,
    params=(
        Number("min_samples", 30, "nothing is told before more values than that", at_least=1, whole=True),
        Number("warning", 2.0, "deviations above the lowest rate for a warning", above=0.0, at_most=1e6),
        Number("drift", 3.0, "deviations above the lowest rate for a drift", above=0.0, at_most=1e6),
        Number("min_errors", 0, "nothing is told before so many errors", at_least=0, whole=True),
    ),
    build=_build,
    together=_together,
    binary=True,
)
