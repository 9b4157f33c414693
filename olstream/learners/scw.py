"""SCW-I and SCW-II: confidence-weighted learning that lets noisy examples be wrong, at a cost.

Wang, Zhao, Hoi. Exact Soft Confidence-Weighted Learning. ICML 2012.

    ℓ = max(0, φ √v - m)        loss, φ = Φ⁻¹(η)        m = y w·x   margin        v = x·S x   its variance
    SCW-I    min KL( N(w', S') ‖ N(w, S) ) + C ℓ        SCW-II   … + C ℓ²

    SCW-I    α = min(C h, α of CW)                      C  > 0: the most an example may cost
    SCW-II   n = v + 1 / (2 C h)                        h  importance weight
             γ = φ √(φ² m² v² + 4 n v (n + v φ²))
             α = (γ - 2 m n - φ² m v) / (2 (n² + n v φ²))
    √u = (√(α² v² φ² + 4 v) - α v φ) / 2                β = α φ / (√u + v α φ)
    w ← w + α y S x                                     S ← S - β (S x)(S x)ᵀ

An example is learnt where m < φ √v, also with m ≥ 1; where φ √v ≤ m < 1 it is not.
Of S we keep the diagonal by default (`diagonal: drop`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from olstream.learners import _gaussian
from olstream.learners._jit import F64, kernel
from olstream.learners._linear import Rule
from olstream.learners.base import CLASSIFICATION, Algorithm, Number
from olstream.learners.cw import certain, confident, eta, lacking, phi_of

PAPER: Final = "Wang, Zhao, Hoi. Exact Soft Confidence-Weighted Learning. ICML 2012"

C: Final = Number("C", 1.0, "what an example may cost: the larger, the nearer to CW", above=0.0)


@kernel
def _scw1(l: float, m: float, v: float, h: float, p: F64) -> tuple[float, float, float]:  # noqa: E741
    return certain(min(p[1] * h, confident(m, v, p[0], 1.0, 1.0)), v, p[0], 1.0)


@kernel
def _scw1_shared(l: float, m: float, q: float, h: float, p: F64) -> tuple[float, float, float]:  # noqa: E741
    return certain(min(p[1] * h, confident(m, q, p[0], 0.5, 2.0)), q, p[0], 2.0)


@kernel
def _share(C: float, v: float, pairs: float) -> float:
    """v / n, which is at most 1 / pairs."""
    doubled = 2.0 * C * v
    return doubled / (pairs * doubled + 1.0) if doubled < 1e300 else 1.0 / pairs


@kernel
def _scw2(l: float, m: float, v: float, h: float, p: F64) -> tuple[float, float, float]:  # noqa: E741
    return certain(confident(m, v, p[0], _share(p[1] * h, v, 1.0), 1.0), v, p[0], 1.0)


@kernel
def _scw2_shared(l: float, m: float, q: float, h: float, p: F64) -> tuple[float, float, float]:  # noqa: E741
    return certain(confident(m, q, p[0], _share(p[1] * h, q, 2.0), 2.0), q, p[0], 2.0)


def _own(step: Callable[..., Any]) -> _gaussian.Own:
    return lambda given: (Rule(lacking, step), [phi_of(given["eta"]), given["C"]])


def _algorithm(name: str, title: str, usual: float, step: Any, shared: Any) -> Algorithm:
    return Algorithm(
        name=name,
        title=title,
        paper=PAPER,
        formulas=__doc__ or "",
        tasks=CLASSIFICATION,
        build=_gaussian.build(_own(step), _own(shared)),
        params=_gaussian.params(C, eta(usual)),
        build_rest=_gaussian.build_rest(_own(step)),
    )


ALGORITHMS: Final = (
    _algorithm("scw1", "Soft Confidence-Weighted I", 0.75, _scw1, _scw1_shared),
    _algorithm("scw2", "Soft Confidence-Weighted II", 0.9, _scw2, _scw2_shared),
)
