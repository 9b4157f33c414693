"""Page-Hinkley: the values have been above their mean for so long that their sum tells.

Page. Continuous Inspection Schemes. Biometrika 41, 1954. Hinkley. Inference about the Change-Point from Cumulative
Sum Tests. Biometrika 58, 1971. With fading: Gama, Sebastião, Rodrigues. On Evaluating Stream Learning Algorithms.
Machine Learning 90, 2013.

    m    mean of the n values since the last drift, the newest included
    U ← alpha U + x - m - delta         D ← alpha D + x - m + delta
    for n ≥ min_samples:
    U - min U > λ  →  drift             mode: up, both
    max D - D > λ  →  drift             mode: down, both

alpha = 1 is the classical test. λ (lambda) has to be scaled to the values: 50 is moderate where they have variance 1,
and slow for errors of 0 and 1. The mode is `up` unless told otherwise: a fall of the errors is no cause for alarm.
It knows no warning. The statistic is the larger side's.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from olstream.drift.base import DRIFT, EVENTS, KNOWN, NUMBERS, STABLE, Method, Params, Plan, tell_nearer
from olstream.learners._jit import F64, I64, kernel
from olstream.learners._params import Choice, Number

PAPER: Final = "Page. Continuous Inspection Schemes. Biometrika 41, 1954"

SUM, UP, LOWEST, DOWN, HIGHEST = range(NUMBERS, NUMBERS + 5)


@kernel
def _step(p: F64, f: F64, n: I64, w: F64, x: float) -> int:
    delta, lam, alpha, min_samples = p[0], p[1], p[2], p[3]
    n[EVENTS] += 1
    n[KNOWN] = 0
    f[SUM] += x
    apart = x - f[SUM] / n[EVENTS]
    f[UP] = alpha * f[UP] + apart - delta
    f[DOWN] = alpha * f[DOWN] + apart + delta
    f[LOWEST] = f[UP] if n[EVENTS] == 1 else min(f[LOWEST], f[UP])
    f[HIGHEST] = f[DOWN] if n[EVENTS] == 1 else max(f[HIGHEST], f[DOWN])
    if n[EVENTS] < min_samples:
        return STABLE
    level = STABLE
    if p[4] > 0.0:
        level = max(level, _judge(f, n, f[UP] - f[LOWEST], lam))
    if p[5] > 0.0:
        level = max(level, _judge(f, n, f[HIGHEST] - f[DOWN], lam))
    return level


@kernel
def _judge(f: F64, n: I64, risen: float, lam: float) -> int:
    tell_nearer(f, n, risen, lam)
    return DRIFT if risen > lam else STABLE


def _build(given: Params) -> Plan:
    numbers = [given[name] for name in ("delta", "lambda", "alpha", "min_samples")]
    sides = [given["mode"] in (side, "both") for side in ("up", "down")]
    return Plan(_step, np.array([*numbers, *sides], np.float64), numbers=5)


METHOD: Final = Method(
    name="page_hinkley",
    title="Page-Hinkley",
    paper=PAPER,
    formulas=__doc__,
    params=(
        Number("delta", 0.005, "changes of the mean up to this are none", at_least=0.0, at_most=1e100),
        Number("lambda", 50.0, "how large the sum may become", above=0.0),
        Number("alpha", 0.9999, "what each update leaves of the sum", above=0.0, at_most=1.0),
        Number("min_samples", 30, "nothing is told before so many values", at_least=1, whole=True),
        Choice("mode", "up", "which changes count: a rise, a fall, or both", ("up", "down", "both")),
    ),
    build=_build,
)
