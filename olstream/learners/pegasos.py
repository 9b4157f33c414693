"""Pegasos: the linear support vector machine by subgradient steps.

Shalev-Shwartz, Singer, Srebro, Cotter. Pegasos: Primal Estimated sub-GrAdient SOlver for SVM.
Mathematical Programming 127, 2011.

    min λ/2 ‖w‖² + mean of ℓ            ℓ = max(0, 1 - m),  m = y w·x     w (d,) weights, from 0
    w ← (1 - 1/t) w + [m < 1] h y x / (λ t)                                  t = 1, 2, ... counts every row
    project: w ← w min(1, 1 / (√λ ‖w‖))                                      h  importance weight

So w = Σ y x / (λ t) over the rows that were learnt, and the first row erases what was there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from olstream.learners import _descent
from olstream.learners._jit import F64, kernel
from olstream.learners._linear import hinge, rest
from olstream.learners._rows import many, one
from olstream.learners.base import Algorithm, Flag, Learning, Number, Task

PAPER: Final = (
    "Shalev-Shwartz, Singer, Srebro, Cotter. Pegasos: Primal Estimated sub-GrAdient SOlver for SVM. "
    "Mathematical Programming 127, 2011"
)  # fmt: skip


@kernel
def hinge_loss(f: float, y: float, p: F64) -> float:
    return max(0.0, 1.0 - y * f)


@kernel
def hinge_slope(f: float, y: float, p: F64) -> float:
    return -y if y * f < 1.0 else 0.0


@kernel
def _rate(t: float, p: F64) -> float:
    return float(1.0 / (p[0] * t))


@kernel
def _keeps(t: float, p: F64) -> float:
    return 1.0 - 1.0 / t


@kernel
def _radius(p: F64) -> float:
    return 1.0 / math.sqrt(p[0])


def _lesson(given: Mapping[str, Any]) -> Callable[..., Any]:
    return _descent.descent(hinge_loss, hinge_slope, _rate, _keeps, _radius if given["project"] else None)


def _build(task: Task, given: Mapping[str, Any]) -> Learning:
    run = one(_lesson(given), np.array([given["lambda"]]))
    return Learning(run, _descent.ANATOMY, _descent.weights_of)


def _build_rest(given: Mapping[str, Any]) -> Learning:
    run = many(rest(_lesson(given), hinge), np.array([given["lambda"]]), score=_descent.scaled)
    return Learning(run, _descent.ANATOMY, _descent.weights_of)


ALGORITHMS: Final = (
    Algorithm(
        name="pegasos",
        title="Pegasos",
        paper=PAPER,
        formulas=__doc__,
        tasks=("binary",),
        build=_build,
        params=(
            Number("lambda", 1e-4, "weight of the regularisation: the smaller, the larger the steps", above=0.0),
            Flag("project", False, "scale back to the ball that holds the optimum, at a cost of O(d) a row"),
        ),
        build_rest=_build_rest,
    ),
)
