"""Perceptrons and Passive-Aggressive learners.

Rosenblatt 1958. Freund, Schapire. Machine Learning 37, 1999 (averaging). Crammer, Singer. JMLR 3, 2003 (multiclass).
Crammer, Dekel, Keshet, Shalev-Shwartz, Singer. Online Passive-Aggressive Algorithms. JMLR 7, 2006.
Matsushima, Shimizu, Yoshida, Ninomiya, Nakagawa. Exact Passive-Aggressive Algorithm for Multiclass
Classification Using Support Class. SDM 2010 (constraint `all`).

The step is how far along x the weights (of the true class) moved.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from tests.references.lesson import ByClass, Matrix, OneVector, Report, Vector, is_zero

Kind = Literal["pa", "pa1", "pa2"]
Cost = Callable[[int, int], float]


class Perceptron(OneVector):
    def __init__(self, d: int) -> None:
        self.w: Vector = np.zeros(d)
        self.history: list[Vector] = []

    def judge(self, x: Vector, y: float) -> Report:
        score = float(self.w @ x)
        return {"score": score, "margin": y * score, "loss": max(0.0, -y * score)}

    def teach(self, x: Vector, y: float, h: float, seen: Report) -> tuple[float, bool]:
        mistake = seen["margin"] <= 0.0 and not is_zero(float(x @ x))
        if mistake:
            self.w = self.w + h * y * x
        self.history.append(self.w)
        return (h, True) if mistake else (0.0, False)

    def average(self) -> Vector:
        """The mean of the weights after every round, also after those without an update."""
        return np.asarray(np.mean(self.history, axis=0))


class MulticlassPerceptron(ByClass):
    """Ultraconservative: the classes that score at least as high as the true one share its step."""

    def __init__(self, d: int, constraint: Literal["max", "uniform", "proportional"] = "max") -> None:
        super().__init__(d)
        self.constraint = constraint
        self.history: list[Matrix] = []

    def loss(self, x: Vector, k: int, margin: float) -> float:
        return max(0.0, -margin)

    def learn(self, x: Vector, k: int, h: float = 1.0) -> Report:
        told = super().learn(x, k, h)
        if h > 0.0:
            self.history.append(self.W.copy())
        return told

    def teach(self, x: Vector, k: int, h: float, seen: Report) -> tuple[float, bool]:
        scores = self.W @ x
        errors = [r for r in range(len(self.W)) if r != k and scores[r] >= scores[k]]
        if not errors or is_zero(float(x @ x)):
            return 0.0, False
        for r, share in zip(errors, self.shares(scores, k, errors), strict=True):
            self.W[r] -= h * share * x
        self.W[k] += h * x
        return h, True

    def shares(self, scores: Vector, k: int, errors: list[int]) -> list[float]:
        above = [max(0.0, float(scores[r] - scores[k])) for r in errors]
        if self.constraint == "max":
            best = max(errors, key=lambda r: (scores[r], -r))
            return [float(r == best) for r in errors]
        if self.constraint == "uniform" or sum(above) == 0.0:
            return [1.0 / len(errors)] * len(errors)
        return [part / sum(above) for part in above]

    def average(self) -> Matrix:
        """The mean of W after every round; a class had zeros before it appeared."""
        padded = [np.vstack([W, np.zeros((len(self.W) - len(W), W.shape[1]))]) for W in self.history]
        return np.asarray(np.mean(padded, axis=0))


def tau(kind: Kind, loss: float, square: float, C: float, h: float) -> float:
    """The step of PA, PA-I and PA-II; `square` is ||x||^2, of a pair of classes 2 ||x||^2."""
    if loss == 0.0 or is_zero(square):
        return 0.0
    if kind == "pa":
        return loss / square
    if kind == "pa1":
        return min(C * h, loss / square)
    return loss / (square + 1.0 / (2.0 * C * h))


class PassiveAggressive(OneVector):
    def __init__(self, d: int, kind: Kind, C: float = 1.0) -> None:
        self.w: Vector = np.zeros(d)
        self.kind, self.C = kind, C

    def judge(self, x: Vector, y: float) -> Report:
        score = float(self.w @ x)
        return {"score": score, "margin": y * score, "loss": max(0.0, 1.0 - y * score)}

    def teach(self, x: Vector, y: float, h: float, seen: Report) -> tuple[float, bool]:
        step = tau(self.kind, seen["loss"], float(x @ x), self.C, h)
        self.w = self.w + step * y * x
        return step, step > 0.0


class PassiveAggressiveRegression(OneVector):
    def __init__(self, d: int, kind: Kind, C: float = 1.0, eps: float = 0.1) -> None:
        self.w: Vector = np.zeros(d)
        self.kind, self.C, self.eps = kind, C, eps

    def judge(self, x: Vector, y: float) -> Report:
        score = float(self.w @ x)
        return {"score": score, "margin": None, "loss": max(0.0, abs(y - score) - self.eps)}

    def teach(self, x: Vector, y: float, h: float, seen: Report) -> tuple[float, bool]:
        step = tau(self.kind, seen["loss"], float(x @ x), self.C, h)
        self.w = self.w + math.copysign(step, y - seen["score"]) * x
        return step, step > 0.0


class PassiveAggressiveSingle(ByClass):
    """Against the best wrong class alone."""

    def __init__(self, d: int, kind: Kind, C: float = 1.0) -> None:
        super().__init__(d)
        self.kind, self.C = kind, C

    def loss(self, x: Vector, k: int, margin: float) -> float:
        return max(0.0, 1.0 - margin)

    def opponent(self, x: Vector, k: int) -> int:
        return self.rival(x, k)

    def teach(self, x: Vector, k: int, h: float, seen: Report) -> tuple[float, bool]:
        r = self.opponent(x, k)
        step = tau(self.kind, seen["loss"], 2.0 * float(x @ x), self.C, h)
        self.W[k] += step * x
        self.W[r] -= step * x
        return step, step > 0.0


class PassiveAggressiveAll(PassiveAggressiveSingle):
    """Against all wrong classes at once, with one slack variable.

    Stationarity says what each class r with a positive tau_r owes, T being the sum of all tau_r:
    l_r = n2 (tau_r + T) + xi, where xi = 0 for PA, T / (2 C) for PA-II. PA-I bounds T by C.
    """

    def teach(self, x: Vector, k: int, h: float, seen: Report) -> tuple[float, bool]:
        n2 = float(x @ x)
        if seen["loss"] == 0.0 or is_zero(n2):
            return 0.0, False
        scores = self.W @ x
        losses = 1.0 - (scores[k] - scores)
        losses[k] = -math.inf
        steps = self.steps(losses / n2, n2, self.C * h)
        self.W -= np.outer(steps, x)
        self.W[k] += steps.sum() * x
        return float(steps.sum()), True

    def steps(self, z: Vector, n2: float, C: float) -> Vector:
        def at(theta: float) -> Vector:
            return np.maximum(0.0, z - theta)

        slope = 1.0 + 1.0 / (2.0 * C * n2) if self.kind == "pa2" else 1.0
        total = root(lambda T: float(at(slope * T).sum()) - T, 0.0, len(z) * float(z.max()))
        if self.kind == "pa1" and total > C:
            return at(root(lambda theta: float(at(theta).sum()) - C, float(z.max()) - C, float(z.max())))
        return at(slope * total)


def root(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function is 0, by halving until no double lies between."""
    while low < (middle := low + (high - low) / 2.0) < high:
        low, high = (middle, high) if falling(middle) > 0.0 else (low, middle)
    return high


def unit_cost(k: int, q: int) -> float:
    return float(k != q)


class PassiveAggressivePrediction(PassiveAggressiveSingle):
    """Against the class that was predicted, or with `max_loss` the one that would cost most, by its cost >= 0."""

    def __init__(self, d: int, kind: Kind, C: float = 1.0, cost: Cost = unit_cost, max_loss: bool = False) -> None:
        super().__init__(d, kind, C)
        self.cost, self.max_loss = cost, max_loss

    def answer(self, x: Vector, k: int) -> int:
        scores = self.W @ x
        if self.max_loss:
            scores = scores + [math.sqrt(self.cost(k, q)) for q in range(len(self.W))]
        return int(np.argmax(scores))

    def loss(self, x: Vector, k: int, margin: float) -> float:
        p = self.answer(x, k)
        return 0.0 if p == k else float((self.W[p] - self.W[k]) @ x) + math.sqrt(self.cost(k, p))

    def opponent(self, x: Vector, k: int) -> int:
        return self.answer(x, k)
