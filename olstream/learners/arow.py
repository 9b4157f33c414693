"""AROW: adaptive regularisation of weights, with a diagonal covariance.

Crammer, Kulesza, Dredze. Adaptive Regularization of Weight Vectors. NIPS 2009, figure 1.

    m = y w·x                    margin                 w (d,) weights, from 0
    v = Σ_j s_j x_j²             its variance           s (d,) variances, from a
    ℓ = max(0, 1 - m)            hinge loss             y  +1 or -1
    β = 1 / (v + r / h)   α = ℓ β                       r  > 0: the larger, the smaller the step
    w ← w + α y s∘x                                     h  importance weight
    s ← s - β (s∘x)²             so 0 < s ≤ a, always

Probability of the positive class: Φ(w·x / √(1 + v)).
One departure from the paper: of Σ we keep the diagonal (`diagonal: drop`, the diagonal of the
full step), so a row costs O(nnz), not O(d²).
"""

from __future__ import annotations

from typing import Final

from olstream.learners._jit import F64, kernel
from olstream.learners._linear import LARGEST, hinge, single
from olstream.learners.base import Algorithm, Choice, Number

PAPER: Final = "Crammer, Kulesza, Dredze. Adaptive Regularization of Weight Vectors. NIPS 2009"


@kernel
def _arow(l: float, m: float, v: float, h: float, p: F64) -> tuple[float, float, float]:  # noqa: E741
    r = min(p[0] / h, LARGEST)
    beta = 1.0 / (v + r)
    return l * beta, beta, r / (v + r)


ALGORITHMS: Final = (
    Algorithm(
        name="arow",
        title="Adaptive Regularization of Weights",
        paper=PAPER,
        formulas=__doc__,
        passes={"binary": single(hinge, _arow)},
        params=(
            Number("r", 1.0, "noise of a label: the larger, the smaller the step", above=0.0),
            Number("a", 1.0, "variance of every weight at the start", above=0.0),
            Choice("covariance", "diagonal", "diagonal: one variance for each weight", ("diagonal",)),
            Choice("diagonal", "drop", "drop: the diagonal of the full step", ("drop",)),
        ),
        prior="a",
        probability="probit",
    ),
)
