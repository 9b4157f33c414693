"""EDDM: errors come closer together than they were at their farthest.

Baena-García, del Campo-Ávila, Fidalgo, Bifet, Gavaldà, Morales-Bueno. Early Drift Detection Method.
Fourth International Workshop on Knowledge Discovery from Data Streams, 2006.

At each error, its distance to the error before it (the first: to the start):

    q = μ + 2 s                              mean and population deviation of the distances since the last drift
    for n > min_samples values:
    q > q'  →  q' ← q, stable                the largest so far
    else, with more than min_errors errors:
    q / q' < drift      →  drift
    q / q' < warning    →  warning           up to the next error

The statistic is 1 - q / q', the threshold 1 - drift. Made for slow drifts and few errors; it raises many false
alarms on streams that do not change, so it should not be the only detector. Only a rise of the errors is seen.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from olstream.drift.base import COUNTS, DRIFT, EVENTS, LEVEL, NUMBERS, STABLE, WARNING, Method, Params, Plan, tell
from olstream.errors import ConfigError
from olstream.learners._jit import F64, I64, kernel
from olstream.learners._params import Number

PAPER: Final = (
    "Baena-García, del Campo-Ávila, Fidalgo, Bifet, Gavaldà, Morales-Bueno. Early Drift Detection Method. "
    "Fourth International Workshop on Knowledge Discovery from Data Streams, 2006"
)

MEAN, SQUARES, LARGEST = NUMBERS, NUMBERS + 1, NUMBERS + 2  # squares: of the distances to their mean, summed
ERRORS, LAST = COUNTS, COUNTS + 1


@kernel
def _step(p: F64, f: F64, n: I64, w: F64, x: float) -> int:
    n[EVENTS] += 1
    if x == 0.0:
        return int(n[LEVEL])
    n[ERRORS] += 1
    apart = float(n[EVENTS] - n[LAST])
    n[LAST] = n[EVENTS]
    before = apart - f[MEAN]
    f[MEAN] += before / n[ERRORS]
    f[SQUARES] += before * (apart - f[MEAN])
    return _judge(p, f, n) if n[EVENTS] > p[0] else STABLE


@kernel
def _judge(p: F64, f: F64, n: I64) -> int:
    min_errors, warning, drift = p[1], p[2], p[3]
    q = f[MEAN] + 2.0 * math.sqrt(max(f[SQUARES], 0.0) / n[ERRORS])
    f[LARGEST] = max(f[LARGEST], q)
    if n[ERRORS] <= min_errors:
        return STABLE
    ratio = q / f[LARGEST]
    tell(f, n, 1.0 - ratio, 1.0 - drift)
    if ratio < drift:
        return DRIFT
    return WARNING if ratio < warning else STABLE


def _build(given: Params) -> Plan:
    p = np.array([given["min_samples"], given["min_errors"], given["warning"], given["drift"]], np.float64)
    return Plan(_step, p, numbers=3, counts=2)


def _together(given: Params) -> None:
    if given["warning"] < given["drift"]:
        raise ConfigError(f"eddm.warning ({given['warning']:g}) must not be below drift ({given['drift']:g})")


METHOD: Final = Method(
    name="eddm",
    title="EDDM",
    paper=PAPER,
    formulas=__doc__,
    params=(
        Number("min_samples", 30, "nothing is compared before more values than that", at_least=1, whole=True),
        Number("min_errors", 30, "nothing is told before more errors than that", at_least=1, whole=True),
        Number("warning", 0.95, "share of the largest below which there is a warning", above=0.0, below=1.0),
        Number("drift", 0.90, "share of the largest below which there is a drift", above=0.0, below=1.0),
    ),
    build=_build,
    together=_together,
    binary=True,
)
