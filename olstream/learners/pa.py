"""PA, PA-I and PA-II: the smallest change of the weights that does justice to the example.

Crammer, Dekel, Keshet, Shalev-Shwartz, Singer. Online Passive-Aggressive Algorithms.
Journal of Machine Learning Research 7, 2006.

    m = y w·x                       margin              w (d,) weights, from 0
    ℓ = max(0, 1 - m)               hinge loss          y  +1 or -1
    τ = ℓ / ‖x‖²                    PA
    τ = min(C h, ℓ / ‖x‖²)          PA-I                C  > 0, aggressiveness
    τ = ℓ / (‖x‖² + 1 / (2 C h))    PA-II               h  importance weight; PA knows only h > 0
    w ← w + τ y x

A correct sign with m < 1 still has a loss, and still updates.
Regression: e = y - w·x, ℓ = max(0, |e| - ε), w ← w + sign(e) τ x.
Multiclass, by `constraint`:

    single        m = w_y·x - max over r ≠ y of w_r·x, 2 ‖x‖² instead of ‖x‖²,
                  w_y ← w_y + τ x,  w_r ← w_r - τ x
    all           every wrong class at once: ℓ_r = 1 - (w_y·x - w_r·x),  τ_r = max(0, ℓ_r - θ) / ‖x‖²,
                  w_y ← w_y + Σ τ_r x,  w_r ← w_r - τ_r x.  With L_j the sum of the j largest ℓ_r, j the most for
                  which the j-th of them is above θ:   PA  θ = L_j / (j + 1)
                  PA-I  the same, or where then Σ τ_r > C h:  θ = (L_j - C h ‖x‖²) / j
                  PA-II θ = L_j (‖x‖² + 1 / (2 C h)) / ((j + 1) ‖x‖² + j / (2 C h))
                  (Matsushima, Shimizu, Yoshida, Ninomiya, Nakagawa. Exact Passive-Aggressive Algorithm for
                  Multiclass Classification Using Support Class. SDM 2010)
    prediction    only where the winner q is wrong: ℓ = w_q·x - w_y·x + √cost(y, q), then as `single`
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from olstream.errors import ConfigError
from olstream.learners._jit import F64, bound, kernel, no_part
from olstream.learners._linear import Rule, hinge, pair, rest, single
from olstream.learners._rows import many, one
from olstream.learners._score import clamp
from olstream.learners._several import several
from olstream.learners.base import TASKS, Algorithm, Choice, Costs, Learning, Number, Task

PAPER: Final = (
    "Crammer, Dekel, Keshet, Shalev-Shwartz, Singer. Online Passive-Aggressive Algorithms. "
    "Journal of Machine Learning Research 7, 2006"
)  # fmt: skip

C: Final = Number("C", 1.0, "the most a single example may move (aggressiveness)", above=0.0)
PARAMS: Final = (
    Number("eps", 0.1, "errors up to this are none", at_least=0.0, tasks=("regression",)),
    Choice(
        "constraint", "single", "which wrong classes count: the best one, all, or the predicted one",
        ("single", "all", "prediction"), tasks=("multiclass",),
    ),
    Costs("cost", "for prediction: what it costs to take one class for another (1)"),
)  # fmt: skip


@kernel
def _pa(l: float, m: float, n2: float, h: float, p: F64) -> tuple[float, float, float]:  # noqa: E741
    return l / n2, 0.0, 1.0


@kernel
def _pa1(l: float, m: float, n2: float, h: float, p: F64) -> tuple[float, float, float]:  # noqa: E741
    return min(p[0] * h, l / n2), 0.0, 1.0


@kernel
def _pa2(l: float, m: float, n2: float, h: float, p: F64) -> tuple[float, float, float]:  # noqa: E741
    return l / (n2 + 0.5 / p[0] / h), 0.0, 1.0


@kernel
def _tube(e: float, v: float, p: F64) -> float:
    return float(max(0.0, e - p[1]))


# constraint: all


@kernel
def _worst(now: F64, y: int, winner: int, rival: int, p: F64) -> float:
    return float(max(0.0, 1.0 - clamp(now[y] - now[rival])))


@kernel
def _losses(now: F64, y: int, count: int) -> F64:
    """1 - (w_y·x - w_r·x), largest first; that of y itself is 1, and is left out."""
    losses = np.empty(count - 1)
    for r in range(count):
        if r != y:
            losses[r if r < y else r - 1] = 1.0 - clamp(now[y] - now[r])
    return -np.sort(-losses)


# What stands for a learner's own parts in the templates below
sum_of: Callable[..., Any] = no_part
step: Callable[..., Any] = no_part


@kernel
def _pa_sum(L: float, j: float, n2: float, h: float, p: F64) -> float:
    return L / ((j + 1.0) * n2)


@kernel
def _pa1_cap(L: float, j: float, n2: float, h: float, p: F64) -> float:
    return float(p[0] * h)


@kernel
def _pa2_sum(L: float, j: float, n2: float, h: float, p: F64) -> float:
    return float(L / ((j + 1.0) * n2 + 0.5 * j / p[0] / h))


def _all(tau: F64, now: F64, y: int, winner: int, rival: int, n2: float, h: float, p: F64) -> None:
    """τ_r = T / j + (ℓ_r - L_j / j) / ‖x‖² for the j classes at fault: θ put in, without cancellation."""
    losses = _losses(now, y, tau.size)
    total = each = mean = 0.0
    for i in range(losses.size):
        total += losses[i]
        j = i + 1.0
        share = sum_of(total, j, n2, h, p) / j
        if share + (losses[i] - total / j) / n2 > 0.0:
            each, mean = share, total / j
    for r in range(tau.size):
        tau[r] = 0.0 if r == y else max(0.0, each + (1.0 - clamp(now[y] - now[r]) - mean) / n2)


_pa_all = bound(_all, sum_of=_pa_sum)
_pa1_capped = bound(_all, sum_of=_pa1_cap)
_pa2_all = bound(_all, sum_of=_pa2_sum)


@kernel
def _pa1_all(tau: F64, now: F64, y: int, winner: int, rival: int, n2: float, h: float, p: F64) -> None:
    _pa_all(tau, now, y, winner, rival, n2, h, p)
    if np.sum(tau) > p[0] * h:
        _pa1_capped(tau, now, y, winner, rival, n2, h, p)


# constraint: prediction


@kernel
def _costly(now: F64, y: int, winner: int, rival: int, p: F64) -> float:
    if winner == y:
        return 0.0
    known = int(p[1])
    cost = p[2 + y * known + winner] if known > 0 else 1.0
    return float(max(0.0, clamp(now[winner] - now[y] + math.sqrt(cost))))


def _alone(tau: F64, now: F64, y: int, winner: int, rival: int, n2: float, h: float, p: F64) -> None:
    """All to the winner, by the step of a pair."""
    tau[winner] = step(_costly(now, y, winner, rival, p), 0.0, 2.0 * n2, h, p)[0]


def _algorithm(name: str, title: str, step: Any, share: Any) -> Algorithm:
    def build(task: Task, given: Mapping[str, Any]) -> Learning:
        p = [given.get("C", 0.0), given.get("eps", 0.0)]
        if task == "regression":
            return Learning(one(single(Rule(_tube, step), is_regression=True), np.array(p)))
        if task == "binary":
            return Learning(one(single(Rule(hinge, step)), np.array(p)))
        if given["constraint"] != "prediction" and given["cost"] is not None:
            raise ConfigError("params.cost is for constraint: prediction")
        if given["constraint"] == "single":
            return Learning(many(pair(Rule(hinge, step)), np.array(p)))
        if given["constraint"] == "all":
            return Learning(many(several(_worst, share), np.array(p)))
        costs = np.array(given["cost"] or np.zeros((0, 0)))
        return Learning(many(several(_costly, bound(_alone, step=step)), np.array([p[0], len(costs), *costs.flat])))

    def build_rest(given: Mapping[str, Any]) -> Learning:
        rule = Rule(hinge, step)
        return Learning(many(rest(single(rule), hinge), np.array([given.get("C", 0.0), 0.0])))

    params = PARAMS if name == "pa" else (C, *PARAMS)
    return Algorithm(name, title, PAPER, __doc__ or "", TASKS, build, params, build_rest)


ALGORITHMS: Final = (
    _algorithm("pa", "Passive-Aggressive", _pa, _pa_all),
    _algorithm("pa1", "Passive-Aggressive I", _pa1, _pa1_all),
    _algorithm("pa2", "Passive-Aggressive II", _pa2, _pa2_all),
)
