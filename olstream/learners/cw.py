"""Confidence-weighted learning: the example shall be right with a probability of at least η.

    stdev      Crammer, Dredze, Pereira. Exact Convex Confidence-Weighted Learning. NIPS 2008
    variance   Dredze, Crammer, Pereira. Confidence-Weighted Linear Classification. ICML 2008

    min KL( N(w', S') ‖ N(w, S) )   with   Pr[y w'·x ≥ 0] ≥ η,   that is   m ≥ φ √v,   φ = Φ⁻¹(η)

    m = y w·x                          margin           w (d,) weights, from 0
    v = x·S x                          its variance     S (d, d) covariance, from a I
    stdev:     ℓ = max(0, φ √v - m)    ψ = 1 + φ²/2     ζ = 1 + φ²
               α = (√(m² φ⁴/4 + v φ² ζ) - m ψ) / (v ζ)
               √u = (√(α² v² φ² + 4 v) - α v φ) / 2     β = α φ / (√u + v α φ)
    variance:  ℓ = max(0, φ v - m)     b = 1 + 2 φ m    (the constraint without the root)
               α = (√(b² - 8 φ (m - φ v)) - b) / (4 φ v)
               S⁻¹ ← S⁻¹ + 2 α φ x xᵀ
    w ← w + α y S x                    S ← S - β (S x)(S x)ᵀ

It fits every example, whatever its importance weight h > 0: on noisy labels SCW or AROW do better.
Of S we keep the diagonal by default: of the full step (drop, stdev) or of the full precision (project, variance).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from statistics import NormalDist
from typing import Any, Final

from olstream.errors import ConfigError
from olstream.learners import _gaussian
from olstream.learners._jit import F64, kernel
from olstream.learners._linear import Rule
from olstream.learners._score import clamp
from olstream.learners.base import CLASSIFICATION, Algorithm, Choice, Number

PAPER: Final = (
    "Crammer, Dredze, Pereira. Exact Convex Confidence-Weighted Learning. NIPS 2008; "
    "Dredze, Crammer, Pereira. Confidence-Weighted Linear Classification. ICML 2008"
)
ETA: Final = 0.9
HUGE: Final = 1e150  # its square is finite


def eta(default: float) -> Number:
    return Number("eta", default, "probability that an example shall be right", above=0.5, below=1.0)


def phi_of(eta: float) -> float:
    """The quantile of the standard normal distribution."""
    return NormalDist().inv_cdf(eta)


@kernel
def lacking(m: float, v: float, p: F64) -> float:
    """How far the margin is from φ standard deviations. φ is the first parameter."""
    return clamp(max(0.0, p[0] * math.sqrt(v) - m))


@kernel
def confident(m: float, v: float, phi: float, k: float, pairs: float) -> float:
    """α of all forms with √v, in units that overflow nowhere: k = 1 / pairs is CW, less is SCW-II.

    pairs: 1, or 2 where v is that of one of two weight vectors.
    """
    root = math.sqrt(v)
    mr = m / root
    Q = 1.0 + k * phi * phi
    half = k * phi * abs(mr)
    G = phi * (half if half > HUGE else math.sqrt(half * half + 4.0 * pairs * Q))
    L = mr * (2.0 + k * phi * phi)
    gap = 4.0 * Q * (pairs * phi * phi - mr * mr) / (L + G) if mr > 0.0 else G - L
    return max(0.0, k * gap / (2.0 * Q)) / root


@kernel
def certain(alpha: float, v: float, phi: float, pairs: float) -> tuple[float, float, float]:
    """α with its β and ρ."""
    t = min(alpha * phi * math.sqrt(v / pairs), HUGE)
    rho = 2.0 / (t + math.sqrt(t * t + 4.0))
    return alpha, t * rho / v, rho


@kernel
def _stdev(l: float, m: float, v: float, h: float, p: F64) -> tuple[float, float, float]:  # noqa: E741
    return certain(confident(m, v, p[0], 1.0, 1.0), v, p[0], 1.0)


@kernel
def _stdev_shared(l: float, m: float, q: float, h: float, p: F64) -> tuple[float, float, float]:  # noqa: E741
    return certain(confident(m, q, p[0], 0.5, 2.0), q, p[0], 2.0)


@kernel
def _variance_loss(m: float, v: float, p: F64) -> float:
    return clamp(max(0.0, p[0] * v - m))


@kernel
def _variance(l: float, m: float, v: float, h: float, p: F64) -> tuple[float, float, float]:  # noqa: E741
    phi = p[0]
    b = 1.0 + 2.0 * phi * m
    c = 8.0 * phi * (phi * v - m)
    root = abs(b) if abs(b) > HUGE else math.sqrt(b * b + c)
    alpha = max(0.0, (c / (b + root) if b > 0.0 else root - b) / (4.0 * phi * v))
    kappa = 2.0 * alpha * phi
    grown = 1.0 + min(kappa * v, HUGE * HUGE)
    return alpha, min(kappa / grown, 1.0 / v), 1.0 / math.sqrt(grown)


def _own(given: Mapping[str, Any]) -> tuple[Rule, list[float]]:
    numbers = [_phi(given)]
    return (Rule(lacking, _stdev) if given["form"] == "stdev" else Rule(_variance_loss, _variance)), numbers


def _shared(given: Mapping[str, Any]) -> tuple[Rule, list[float]]:
    if given["form"] == "variance":
        raise ConfigError("params.covariance: shared is for form: stdev")
    return Rule(lacking, _stdev_shared), [_phi(given)]


def _phi(given: Mapping[str, Any]) -> float:
    if given["phi"] is None:
        return phi_of(given["eta"])
    if given["eta"] != ETA:
        raise ConfigError("params: give eta or phi, not both")
    return float(given["phi"])


def _with_diagonal(build: Callable[..., Any]) -> Callable[..., Any]:
    """Each form has been published with a diagonal of its own."""

    def built(*args: Any) -> Any:
        *task, given = args
        usual = "drop" if given["form"] == "stdev" else "project"
        return build(*task, {**given, "diagonal": given["diagonal"] or usual})

    return built


ALGORITHMS: Final = (
    Algorithm(
        name="cw",
        title="Confidence-Weighted",
        paper=PAPER,
        formulas=__doc__,
        tasks=CLASSIFICATION,
        build=_with_diagonal(_gaussian.build(_own, _shared)),
        params=_gaussian.params(
            eta(ETA),
            Number("phi", None, "the same as φ = Φ⁻¹(η), instead of eta", above=0.0, at_most=1e6),
            Choice("form", "stdev", "stdev: m ≥ φ √v; variance: m ≥ φ v", ("stdev", "variance")),
            diagonal=None,
        ),
        build_rest=_with_diagonal(_gaussian.build_rest(_own)),
    ),
)
