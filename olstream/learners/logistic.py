"""Logistic regression by gradient descent, and softmax regression for several classes.

    p = 1 / (1 + exp(-w·x))                        probability of the positive class, w (d,) from 0
    w ← w - η (h (p - [y = +1]) x + λ w)           η > 0 rate, λ = l2, h importance weight
    ℓ = log(1 + exp(-y w·x))                       log loss

    p = softmax(W x)                               several classes, W (K, d) from 0
    W_k ← W_k - η (h (p_k - [k = y]) x + λ W_k)    ℓ = -log p_y

Bottou. Stochastic Gradient Descent Tricks. Neural Networks: Tricks of the Trade, Springer 2012.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from olstream.errors import ConfigError
from olstream.learners import _descent
from olstream.learners._jit import F64, kernel
from olstream.learners._linear import rest
from olstream.learners._rows import many, one
from olstream.learners.base import CLASSIFICATION, Algorithm, Learning, Number, Task

PAPER: Final = "Bottou. Stochastic Gradient Descent Tricks. Neural Networks: Tricks of the Trade, Springer 2012"


@kernel
def _rate(t: float, p: F64) -> float:
    return float(p[0])


@kernel
def _keeps(t: float, p: F64) -> float:
    return float(1.0 - p[0] * p[1])


_lesson = _descent.descent(_descent.logistic_loss, _descent.logistic_slope, _rate, _keeps)
_softmax = _descent.softmax(_rate, _keeps)


def _vector(given: Mapping[str, Any]) -> F64:
    if given["eta"] * given["l2"] > 1.0:
        raise ConfigError("params: eta l2 must not be above 1: the weights would change their sign in every round")
    return np.array([given["eta"], given["l2"]])


def _build(task: Task, given: Mapping[str, Any]) -> Learning:
    if task == "binary":
        return Learning(one(_lesson, _vector(given)), _descent.ANATOMY, _descent.weights_of)
    run = many(_softmax, _vector(given), score=_descent.scaled_all)
    return Learning(run, _descent.ANATOMY, _descent.weights_of_all)


def _build_rest(given: Mapping[str, Any]) -> Learning:
    lesson = rest(_lesson, _descent.margin_loss(_descent.logistic_loss))
    return Learning(many(lesson, _vector(given), score=_descent.scaled), _descent.ANATOMY, _descent.weights_of)


ALGORITHMS: Final = (
    Algorithm(
        name="logistic",
        title="Logistic and softmax regression",
        paper=PAPER,
        formulas=__doc__,
        tasks=CLASSIFICATION,
        build=_build,
        params=(
            Number("eta", 0.1, "rate of every round", above=0.0),
            Number("l2", 0.0, "how much weights are drawn to 0 in every round", at_least=0.0),
        ),
        build_rest=_build_rest,
    ),
)
