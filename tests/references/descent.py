"""Learners that go down a gradient: OGD, Pegasos, logistic and softmax regression.

Zinkevich. Online Convex Programming and Generalized Infinitesimal Gradient Ascent. ICML 2003.
Shalev-Shwartz, Singer, Srebro, Cotter. Pegasos: Primal Estimated sub-GrAdient SOlver for SVM.
Mathematical Programming 127, 2011.

An importance weight h multiplies the gradient of the loss, not that of the regulariser. A row that is
zero has no gradient, but its round counts and shrinks. The step is how far along x the weights (of the
true class) moved; `updated` tells of any change of the weights, so also of one that only shrank them.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from tests.references.lesson import ByClass, OneVector, Report, Vector, is_zero

LossName = Literal["hinge", "perceptron", "logistic", "squared", "eps_insensitive", "squared_eps_insensitive"]
Schedule = Literal["constant", "sqrt", "power", "l2"]
CLASSIFIES = ("hinge", "perceptron", "logistic")


def loss_of(name: LossName, f: float, y: float, eps: float = 0.1) -> float:
    beyond = max(0.0, abs(f - y) - eps)
    if name == "hinge":
        return max(0.0, 1.0 - y * f)
    if name == "perceptron":
        return max(0.0, -y * f)
    if name == "logistic":
        return math.log1p(math.exp(-abs(y * f))) + max(0.0, -y * f)
    if name == "squared":
        return 0.5 * (f - y) ** 2
    return beyond if name == "eps_insensitive" else 0.5 * beyond**2


def slope_of(name: LossName, f: float, y: float, eps: float = 0.1) -> float:
    """The derivative of the loss with respect to the score f."""
    beyond = math.copysign(max(0.0, abs(f - y) - eps), f - y)
    if name == "hinge":
        return -y if y * f < 1.0 else 0.0
    if name == "perceptron":
        return -y if y * f <= 0.0 else 0.0
    if name == "logistic":
        return -y * sigmoid(-y * f)
    if name == "squared":
        return f - y
    return beyond if name == "squared_eps_insensitive" else float(np.sign(beyond))


def sigmoid(z: float) -> float:
    return 1.0 / (1.0 + math.exp(-z)) if z >= 0.0 else math.exp(z) / (1.0 + math.exp(z))


class GradientDescent(OneVector):
    """OGD; with the loss `logistic` and a constant rate it is logistic regression."""

    def __init__(
        self,
        d: int,
        loss: LossName = "hinge",
        eta: float = 1.0,
        schedule: Schedule = "sqrt",
        l2: float = 0.0,
        eps: float = 0.1,
        p: float = 0.5,
    ) -> None:
        self.w: Vector = np.zeros(d)
        self.t = 0
        self.loss, self.eta, self.schedule, self.l2, self.eps, self.p = loss, eta, schedule, l2, eps, p

    def judge(self, x: Vector, y: float) -> Report:
        score = float(self.w @ x)
        margin = y * score if self.loss in CLASSIFIES else None
        return {"score": score, "margin": margin, "loss": loss_of(self.loss, score, y, self.eps)}

    def rate(self) -> float:
        """The rate of round t, from 1."""
        if self.schedule == "constant":
            return self.eta
        if self.schedule == "sqrt":
            return self.eta / math.sqrt(self.t)
        if self.schedule == "power":
            return float(self.eta / self.t**self.p)
        return self.eta / (1.0 + self.eta * self.l2 * self.t)

    def teach(self, x: Vector, y: float, h: float, seen: Report) -> tuple[float, bool]:
        self.t += 1
        rate, before = self.rate(), self.w
        slope = 0.0 if is_zero(float(x @ x)) else slope_of(self.loss, seen["score"], y, self.eps)
        self.w = before - rate * (h * slope * x + self.l2 * before)
        return rate * h * abs(slope), bool(np.any(self.w != before))


class Pegasos(OneVector):
    def __init__(self, d: int, lam: float = 1e-4, project: bool = False) -> None:
        self.w: Vector = np.zeros(d)
        self.t = 0
        self.lam, self.project = lam, project

    def judge(self, x: Vector, y: float) -> Report:
        score = float(self.w @ x)
        return {"score": score, "margin": y * score, "loss": max(0.0, 1.0 - y * score)}

    def teach(self, x: Vector, y: float, h: float, seen: Report) -> tuple[float, bool]:
        self.t += 1
        rate, before = 1.0 / (self.lam * self.t), self.w
        hit = y * float(before @ x) < 1.0 and not is_zero(float(x @ x))
        self.w = (1.0 - 1.0 / self.t) * before
        if hit:
            self.w = self.w + rate * h * y * x
        norm = math.sqrt(float(self.w @ self.w))
        if self.project and norm > 0.0:
            self.w = self.w * min(1.0, 1.0 / (math.sqrt(self.lam) * norm))
        return (rate * h if hit else 0.0), bool(np.any(self.w != before))


class Logistic(GradientDescent):
    """Labels -1 and +1; p = sigmoid(w·x) is the probability of +1."""

    def __init__(self, d: int, eta: float = 0.1, l2: float = 0.0) -> None:
        super().__init__(d, "logistic", eta, "constant", l2)

    def probability(self, x: Vector) -> float:
        return sigmoid(float(self.w @ x))


class Softmax(ByClass):
    """The loss is the cross-entropy over the classes known so far; every class takes part in a step."""

    def __init__(self, d: int, eta: float = 0.1, l2: float = 0.0) -> None:
        super().__init__(d)
        self.eta, self.l2 = eta, l2

    def probabilities(self, x: Vector) -> Vector:
        scores = self.W @ x
        parts = np.exp(scores - scores.max())
        return np.asarray(parts / parts.sum())

    def loss(self, x: Vector, k: int, margin: float) -> float:
        scores = self.W @ x
        top = scores.max()
        return float(top - scores[k] + math.log(np.exp(scores - top).sum()))

    def teach(self, x: Vector, k: int, h: float, seen: Report) -> tuple[float, bool]:
        before = self.W
        wrong = self.probabilities(x)
        wrong[k] -= 1.0
        if is_zero(float(x @ x)):
            wrong[:] = 0.0
        self.W = before - self.eta * (h * np.outer(wrong, x) + self.l2 * before)
        return float(-self.eta * h * wrong[k]), bool(np.any(before != self.W))
