"""The perceptron: on a mistake the example is added to the weights.

Rosenblatt. The Perceptron: A Probabilistic Model for Information Storage and Organization in the Brain.
Psychological Review 65, 1958. Averaged: Freund, Schapire. Large Margin Classification Using the Perceptron
Algorithm. Machine Learning 37, 1999. Multiclass: Crammer, Singer. Ultraconservative Online Algorithms for
Multiclass Problems. Journal of Machine Learning Research 3, 2003.

    m = y w·x                    margin                 w (d,) weights, from 0
    ℓ = max(0, -m)               loss                   y  +1 or -1
    w ← w + h y x                where m ≤ 0            h  importance weight

Multiclass: E = { r ≠ y : w_r·x ≥ w_y·x }; where E is not empty w_y ← w_y + h x, w_r ← w_r - α_r h x, Σ α_r = 1:

    max             α = 1 for the best class of E
    uniform         α = 1 / |E|
    proportional    α in proportion to w_r·x - w_y·x (uniform where all are 0)

averaged: what predicts, and what is exported, is the mean of the weights after each row so far, learnt or not:
w̄ = w - u / t, where u adds up (t - 1) h y x of the rows that were learnt. It is learnt by w all the same; score,
margin and loss are those of w̄.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from olstream.learners._averaged import (
    ANATOMY,
    averaged,
    averaged_all,
    mean_several,
    mean_single,
    mean_weights,
    mean_weights_all,
)
from olstream.learners._jit import F64, kernel
from olstream.learners._linear import Rule, rest, single
from olstream.learners._rows import many, one
from olstream.learners._score import clamp
from olstream.learners._several import several
from olstream.learners.base import CLASSIFICATION, Algorithm, Choice, Flag, Learning, Task

PAPER: Final = (
    "Rosenblatt. The Perceptron. Psychological Review 65, 1958; averaged: Freund, Schapire, Machine Learning 37, 1999; "
    "multiclass: Crammer, Singer, Journal of Machine Learning Research 3, 2003"
)  # fmt: skip


@kernel
def _below_zero(m: float, v: float, p: F64) -> float:
    return max(0.0, -m)


@kernel
def is_mistake(l: float, m: float, p: F64) -> bool:  # noqa: E741
    """Also on a tie: the zero model has to learn its first example."""
    return m <= 0.0


@kernel
def _whole(l: float, m: float, v: float, h: float, p: F64) -> tuple[float, float, float]:  # noqa: E741
    return h, 0.0, 1.0


@kernel
def _behind(now: F64, y: int, winner: int, rival: int, p: F64) -> float:
    return float(max(0.0, clamp(now[rival] - now[y])))


@kernel
def _max(tau: F64, now: F64, y: int, winner: int, rival: int, n2: float, h: float, p: F64) -> None:
    tau[rival] = h


@kernel
def _uniform(tau: F64, now: F64, y: int, winner: int, rival: int, n2: float, h: float, p: F64) -> None:
    faulty = 0
    for r in range(tau.size):
        if r != y and now[r] >= now[y]:
            faulty += 1
    for r in range(tau.size):
        if r != y and now[r] >= now[y]:
            tau[r] = h / faulty


@kernel
def _proportional(tau: F64, now: F64, y: int, winner: int, rival: int, n2: float, h: float, p: F64) -> None:
    most = clamp(now[rival] - now[y])
    if most <= 0.0:
        _uniform(tau, now, y, winner, rival, n2, h, p)
        return
    total = 0.0
    for r in range(tau.size):
        if r != y:
            total += max(0.0, clamp(now[r] - now[y])) / most
    for r in range(tau.size):
        if r != y:
            tau[r] = h * (max(0.0, clamp(now[r] - now[y])) / most / total)


_SHARES: Final[Mapping[str, Callable[..., Any]]] = {"max": _max, "uniform": _uniform, "proportional": _proportional}
_RULE: Final = Rule(_below_zero, _whole, is_mistake)
_NONE: Final = np.zeros(1)


def _build(task: Task, given: Mapping[str, Any]) -> Learning:
    if task == "binary":
        if given["averaged"]:
            return Learning(one(mean_single(_RULE), _NONE), ANATOMY, mean_weights)
        return Learning(one(single(_RULE), _NONE))
    share = _SHARES[given["constraint"]]
    if given["averaged"]:
        run = many(mean_several(_behind, share, is_mistake), _NONE, score=averaged_all, counts_alone=True)
        return Learning(run, ANATOMY, mean_weights_all)
    return Learning(many(several(_behind, share, is_mistake), _NONE))


def _build_rest(given: Mapping[str, Any]) -> Learning:
    if given["averaged"]:
        run = many(rest(mean_single(_RULE), _below_zero), _NONE, score=averaged)
        return Learning(run, ANATOMY, mean_weights)
    return Learning(many(rest(single(_RULE), _below_zero), _NONE))


ALGORITHMS: Final = (
    Algorithm(
        name="perceptron",
        title="Perceptron",
        paper=PAPER,
        formulas=__doc__,
        tasks=CLASSIFICATION,
        build=_build,
        params=(
            Flag("averaged", False, "predict with the mean of the weights so far"),
            Choice(
                "constraint", "max", "which wrong classes go down: the best, or all at fault", tuple(_SHARES),
                tasks=("multiclass",),
            ),
        ),
        build_rest=_build_rest,
    ),
)  # fmt: skip
