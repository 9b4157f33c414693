"""OGD: online gradient descent on a loss of your choice.

Zinkevich. Online Convex Programming and Generalized Infinitesimal Gradient Ascent. ICML 2003.

    w ← w - η_t (h ℓ'(f) x + λ w)      f = w·x,  w (d,) weights, from 0;  λ = l2;  h importance weight
    t = 1, 2, ... counts every row

    loss                      ℓ(f)                           ℓ'(f)
    hinge                     max(0, 1 - y f)                -y where y f < 1
    perceptron                max(0, -y f)                   -y where y f ≤ 0
    logistic                  log(1 + exp(-y f))             -y / (1 + exp(y f))
    squared                   (f - y)² / 2                   f - y
    eps_insensitive           max(0, |f - y| - ε)            sign(f - y) where |f - y| > ε
    squared_eps_insensitive   max(0, |f - y| - ε)² / 2       sign(f - y) max(0, |f - y| - ε)

    schedule    constant η      sqrt η / √t      power η / t^p      l2 η / (1 + η λ t)

The last three losses are for regression; in binary classification, where y is +1 or -1, they may be chosen too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from olstream.errors import ConfigError
from olstream.learners import _descent
from olstream.learners._jit import F64, kernel
from olstream.learners._linear import rest
from olstream.learners._rows import many, one
from olstream.learners.base import Algorithm, Choice, Learning, Number, Task
from olstream.learners.pegasos import hinge_loss, hinge_slope

PAPER: Final = "Zinkevich. Online Convex Programming and Generalized Infinitesimal Gradient Ascent. ICML 2003"

SCHEDULES: Final = ("constant", "sqrt", "power", "l2")
_CONSTANT, _SQRT, _POWER = 0.0, 1.0, 2.0


@kernel
def _perceptron_loss(f: float, y: float, p: F64) -> float:
    return max(0.0, -y * f)


@kernel
def _perceptron_slope(f: float, y: float, p: F64) -> float:
    return -y if y * f <= 0.0 else 0.0


@kernel
def _squared_loss(f: float, y: float, p: F64) -> float:
    return 0.5 * (f - y) * (f - y)


@kernel
def _squared_slope(f: float, y: float, p: F64) -> float:
    return f - y


@kernel
def _outside(f: float, y: float, p: F64) -> float:
    """How far the score is outside the tube. ε is the last parameter."""
    return float(max(0.0, abs(f - y) - p[4]))


@kernel
def _tube_slope(f: float, y: float, p: F64) -> float:
    outside = _outside(f, y, p) > 0.0
    return (1.0 if f > y else -1.0) if outside else 0.0


@kernel
def _squared_tube_loss(f: float, y: float, p: F64) -> float:
    return 0.5 * _outside(f, y, p) * _outside(f, y, p)


@kernel
def _squared_tube_slope(f: float, y: float, p: F64) -> float:
    return _outside(f, y, p) if f > y else -_outside(f, y, p)


@kernel
def _rate(t: float, p: F64) -> float:
    eta, schedule = p[0], p[1]
    if schedule == _CONSTANT:
        return float(eta)
    if schedule == _SQRT:
        return float(eta / math.sqrt(t))
    if schedule == _POWER:
        return float(eta / math.pow(t, p[2]))
    return float(eta / (1.0 + eta * p[3] * t))


@kernel
def _keeps(t: float, p: F64) -> float:
    return float(1.0 - _rate(t, p) * p[3])


_LOSSES: Final[Mapping[str, tuple[Callable[..., Any], Callable[..., Any]]]] = {
    "hinge": (hinge_loss, hinge_slope),
    "perceptron": (_perceptron_loss, _perceptron_slope),
    "logistic": (_descent.logistic_loss, _descent.logistic_slope),
    "squared": (_squared_loss, _squared_slope),
    "eps_insensitive": (_outside, _tube_slope),
    "squared_eps_insensitive": (_squared_tube_loss, _squared_tube_slope),
}
FOR_REGRESSION: Final = ("squared", "eps_insensitive", "squared_eps_insensitive")


def _build(task: Task, given: Mapping[str, Any]) -> Learning:
    loss = given["loss"] or ("squared" if task == "regression" else "hinge")
    if task == "regression" and loss not in FOR_REGRESSION:
        raise ConfigError(f"params.loss of a regression is one of {', '.join(FOR_REGRESSION)}, not {loss}")
    lesson = _descent.descent(*_LOSSES[loss], _rate, _keeps, is_regression=task == "regression")
    return Learning(one(lesson, _vector(given)), _descent.ANATOMY, _descent.weights_of)


def _build_rest(given: Mapping[str, Any]) -> Learning:
    losses = _LOSSES[given["loss"] or "hinge"]
    lesson = rest(_descent.descent(*losses, _rate, _keeps), _descent.margin_loss(losses[0]))
    return Learning(many(lesson, _vector(given), score=_descent.scaled), _descent.ANATOMY, _descent.weights_of)


def _vector(given: Mapping[str, Any]) -> F64:
    if given["eta"] * given["l2"] > 1.0:
        raise ConfigError("params: eta l2 must not be above 1: the weights would change their sign in every round")
    schedule = SCHEDULES.index(given["schedule"])
    return np.array([given["eta"], schedule, given["p"], given["l2"], given["eps"]])


ALGORITHMS: Final = (
    Algorithm(
        name="ogd",
        title="Online Gradient Descent",
        paper=PAPER,
        formulas=__doc__,
        tasks=("binary", "regression"),
        build=_build,
        params=(
            Choice("loss", None, "hinge where none is given; in regression squared", tuple(_LOSSES)),
            Number("eta", 1.0, "rate of the first round", above=0.0),
            Choice("schedule", "sqrt", "how the rate falls", SCHEDULES),
            Number("p", 0.5, "exponent of schedule: power", above=0.0),
            Number("l2", 0.0, "how much weights are drawn to 0 in every round", at_least=0.0),
            Number("eps", 0.1, "errors up to this are none, in the losses that say so", at_least=0.0),
        ),
        build_rest=_build_rest,
    ),
)
