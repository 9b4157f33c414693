"""AROW: adaptive regularisation of weights.

Crammer, Kulesza, Dredze. Adaptive Regularization of Weight Vectors. NIPS 2009, figure 1.

    m = y w·x                    margin                 w (d,) weights, from 0
    v = x·S x                    its variance           S (d, d) covariance, from a I
    ℓ = max(0, 1 - m)            hinge loss             y  +1 or -1
    β = 1 / (v + r / h)   α = ℓ β                       r  > 0: the larger, the smaller the step
    w ← w + α y S x                                     h  importance weight
    S ← S - β (S x)(S x)ᵀ

Regression: e = y - w·x, ℓ = max(0, |e| - ε), w ← w + sign(e) α S x; with ε = 0 that is recursive least squares.
Probability of the positive class: Φ(w·x / √(1 + v)).
One departure from the paper, by default: of S we keep the diagonal (`diagonal: drop`, that of the full step), so a
row costs O(nnz), not O(d²). `covariance: full` has no departure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from olstream.learners import _gaussian
from olstream.learners._jit import F64, kernel
from olstream.learners._linear import Rule, hinge
from olstream.learners._score import LARGEST
from olstream.learners.base import TASKS, Algorithm, Number

PAPER: Final = "Crammer, Kulesza, Dredze. Adaptive Regularization of Weight Vectors. NIPS 2009"


@kernel
def _arow(l: float, m: float, v: float, h: float, p: F64) -> tuple[float, float, float]:  # noqa: E741
    r = min(p[0] / h, LARGEST)
    beta = 1.0 / (v + r)
    return l * beta, beta, math.sqrt(r / (v + r))


@kernel
def _arow_shared(l: float, m: float, q: float, h: float, p: F64) -> tuple[float, float, float]:  # noqa: E741
    r = min(p[0] / h, LARGEST)
    return l / (2.0 * q + r), 1.0 / (q + r), math.sqrt(r / (q + r))


@kernel
def _tube(e: float, v: float, p: F64) -> float:
    return float(max(0.0, e - p[1]))


@kernel
def _outside(l: float, m: float, p: F64) -> bool:  # noqa: E741
    """Without a tube every row is learnt, also one that was met exactly: least squares counts it."""
    return l > 0.0 or p[1] == 0.0


def _own(step: Any) -> _gaussian.Own:
    return lambda given: (Rule(hinge, step), [given["r"]])


def _regression(given: Mapping[str, Any]) -> tuple[Rule, list[float]]:
    return Rule(_tube, _arow, _outside), [given["r"], given["eps"]]


ALGORITHMS: Final = (
    Algorithm(
        name="arow",
        title="Adaptive Regularization of Weights",
        paper=PAPER,
        formulas=__doc__,
        tasks=TASKS,
        build=_gaussian.build(_own(_arow), _own(_arow_shared), _regression),
        params=_gaussian.params(
            Number("r", 1.0, "noise of a label: the larger, the smaller the step", above=0.0),
            Number("eps", 0.0, "errors up to this are none", at_least=0.0, tasks=("regression",)),
        ),
        build_rest=_gaussian.build_rest(_own(_arow)),
    ),
)
