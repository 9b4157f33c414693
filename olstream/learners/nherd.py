"""NHERD: normal herding, a linear map that carries the Gaussian belief to the example.

Crammer, Lee. Learning via Gaussian Herding. NIPS 2010.

    m = y w·x                    margin                 w (d,) weights, from 0
    v = x·S x                    its variance           S (d, d) covariance, from a I
    ℓ = max(0, 1 - m)            hinge loss             C  > 0: the larger, the larger the step
    α = ℓ / (v + 1 / (C h))                             h  importance weight
    β = (C² h² v + 2 C h) / (1 + C h v)²
    w ← w + α y S x              S ← S - β (S x)(S x)ᵀ

Of S we keep the diagonal by default: `project` (of the full precision), `drop` (of the full result) or the paper's
own `exact` diagonal map, s ← s / (1 + C h s x²)².
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from olstream.learners import _gaussian
from olstream.learners._covariance import DIAGONALS
from olstream.learners._jit import F64, kernel
from olstream.learners._linear import Rule, hinge
from olstream.learners.base import CLASSIFICATION, Algorithm, Number

PAPER: Final = "Crammer, Lee. Learning via Gaussian Herding. NIPS 2010"


@kernel
def _nherd(l: float, m: float, v: float, h: float, p: F64) -> tuple[float, float, float]:  # noqa: E741
    c = p[0] * h
    n = v + 1.0 / c
    rho = 1.0 / (1.0 + min(c * v, 1e300))
    return l / n, (1.0 + rho) / n, rho  # β as above: 1 + ρ = (2 + C h v) / (1 + C h v)


def _own(given: Mapping[str, Any]) -> tuple[Rule, list[float]]:
    return Rule(hinge, _nherd), [given["C"]]


ALGORITHMS: Final = (
    Algorithm(
        name="nherd",
        title="Normal Herding",
        paper=PAPER,
        formulas=__doc__,
        tasks=CLASSIFICATION,
        build=_gaussian.build(_own),
        params=_gaussian.params(
            Number("C", 1.0, "weight of the example: the larger, the larger the step", above=0.0),
            has_shared=False,
            diagonals=DIAGONALS,
            diagonal="project",
        ),
        build_rest=_gaussian.build_rest(_own),
    ),
)
