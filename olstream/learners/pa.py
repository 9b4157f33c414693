"""PA, PA-I and PA-II: the smallest change of the weights that does justice to the example.

Crammer, Dekel, Keshet, Shalev-Shwartz, Singer. Online Passive-Aggressive Algorithms.
Journal of Machine Learning Research 7, 2006.

    m = y w·x                       margin              w (d,) weights, from 0
    ℓ = max(0, 1 - m)               hinge loss          y  +1 or -1
    τ = ℓ / ‖x‖²                    PA
    τ = min(C h, ℓ / ‖x‖²)          PA-I                C  > 0, aggressiveness
    τ = ℓ / (‖x‖² + 1 / (2 C h))    PA-II               h  importance weight; PA knows only h > 0
    w ← w + τ y x

Regression: e = y - w·x, ℓ = max(0, |e| - ε), w ← w + sign(e) τ x.
Multiclass, constraint `single`: m = w_y·x - max over r ≠ y of w_r·x, 2 ‖x‖² instead of ‖x‖²,
w_y ← w_y + τ x, w_r ← w_r - τ x. A correct sign with m < 1 still has a loss, and still updates.
"""

from __future__ import annotations

from typing import Final

from olstream.learners._jit import F64, kernel
from olstream.learners._linear import Step, hinge, pair, single, tube
from olstream.learners.base import Algorithm, Choice, Number, RowPass, Task

PAPER: Final = (
    "Crammer, Dekel, Keshet, Shalev-Shwartz, Singer. Online Passive-Aggressive Algorithms. "
    "Journal of Machine Learning Research 7, 2006"
)  # fmt: skip

C: Final = Number("C", 1.0, "the most a single example may move (aggressiveness)", above=0.0)
EPS: Final = Number("eps", 0.1, "errors up to this are none", at_least=0.0, tasks=("regression",))
CONSTRAINT: Final = Choice(
    "constraint", "single", "single: the true class against the best wrong one", ("single",), tasks=("multiclass",)
)


@kernel
def _pa(l: float, m: float, n2: float, h: float, p: F64) -> tuple[float, float, float]:  # noqa: E741
    return l / n2, 0.0, 1.0


@kernel
def _pa1(l: float, m: float, n2: float, h: float, p: F64) -> tuple[float, float, float]:  # noqa: E741
    return min(p[0] * h, l / n2), 0.0, 1.0


@kernel
def _pa2(l: float, m: float, n2: float, h: float, p: F64) -> tuple[float, float, float]:  # noqa: E741
    return l / (n2 + 0.5 / p[0] / h), 0.0, 1.0


def _passes(step: Step) -> dict[Task, RowPass]:
    return {
        "binary": single(hinge, step),
        "multiclass": pair(hinge, step),
        "regression": single(tube, step, regression=True),
    }


ALGORITHMS: Final = (
    Algorithm("pa", "Passive-Aggressive", PAPER, __doc__, _passes(_pa), (EPS, CONSTRAINT)),
    Algorithm("pa1", "Passive-Aggressive I", PAPER, __doc__, _passes(_pa1), (C, EPS, CONSTRAINT)),
    Algorithm("pa2", "Passive-Aggressive II", PAPER, __doc__, _passes(_pa2), (C, EPS, CONSTRAINT)),
)
