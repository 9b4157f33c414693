"""Each learner dense, slow and obvious, line by line from its paper. Kernels are held against these."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def pa_step(kind: str, loss: float, norm2: float, C: float, h: float = 1.0) -> float:
    """tau of the paper: equations for PA, PA-I and PA-II."""
    if loss == 0.0 or norm2 == 0.0:
        return 0.0
    if kind == "pa":
        return loss / norm2
    if kind == "pa1":
        return min(C * h, loss / norm2)
    return loss / (norm2 + 1.0 / (2.0 * C * h))


@dataclass
class PassiveAggressive:
    """Crammer et al., JMLR 7, 2006, figure 1: binary."""

    kind: str
    d: int
    C: float = 1.0
    w: Vector = field(init=False)

    def __post_init__(self) -> None:
        self.w = np.zeros(self.d)

    def learn(self, x: Vector, y: float, h: float = 1.0) -> dict[str, float]:
        margin = y * float(self.w @ x)
        loss = max(0.0, 1.0 - margin)
        tau = pa_step(self.kind, loss, float(x @ x), self.C, h)
        self.w = self.w + tau * y * x
        return {"score": y * margin, "margin": margin, "loss": loss, "step": tau}


@dataclass
class PassiveAggressiveRegression:
    """The same paper, section 5."""

    kind: str
    d: int
    C: float = 1.0
    eps: float = 0.1
    w: Vector = field(init=False)

    def __post_init__(self) -> None:
        self.w = np.zeros(self.d)

    def learn(self, x: Vector, y: float, h: float = 1.0) -> dict[str, float]:
        score = float(self.w @ x)
        loss = max(0.0, abs(y - score) - self.eps)
        tau = pa_step(self.kind, loss, float(x @ x), self.C, h)
        self.w = self.w + math.copysign(1.0, y - score) * tau * x
        return {"score": score, "loss": loss, "step": tau}


@dataclass
class PassiveAggressiveMulticlass:
    """The same paper, section 6, max-margin: one row of W for each class, in order of arrival."""

    kind: str
    d: int
    C: float = 1.0
    W: list[Vector] = field(default_factory=list)

    def learn(self, x: Vector, y: int, h: float = 1.0) -> dict[str, Any]:
        """Class y may be the next one, that is, a new class."""
        scores = [float(w @ x) for w in self.W]
        winner = int(np.argmax(scores)) if scores else -1
        if y == len(self.W):
            self.W.append(np.zeros(self.d))
        scores_now = [float(w @ x) for w in self.W]
        report = {"score": max(scores, default=0.0), "winner": winner, "margin": None, "loss": 0.0, "step": 0.0}
        wrong = [k for k in range(len(self.W)) if k != y]
        if not wrong:
            return report
        r = max(wrong, key=lambda k: (scores_now[k], -k))
        margin = scores_now[y] - scores_now[r]
        loss = max(0.0, 1.0 - margin)
        tau = pa_step(self.kind, loss, 2.0 * float(x @ x), self.C, h)
        self.W[y] = self.W[y] + tau * x
        self.W[r] = self.W[r] - tau * x
        return report | {"margin": margin, "loss": loss, "step": tau}


@dataclass
class Arow:
    """Crammer, Kulesza, Dredze, NIPS 2009, figure 1, with the full covariance cut down to its diagonal."""

    d: int
    r: float = 1.0
    a: float = 1.0
    w: Vector = field(init=False)
    S: Vector = field(init=False)

    def __post_init__(self) -> None:
        self.w = np.zeros(self.d)
        self.S = self.a * np.eye(self.d)

    def learn(self, x: Vector, y: float, h: float = 1.0) -> dict[str, float]:
        r = self.r / h
        margin = y * float(self.w @ x)
        v = float(x @ self.S @ x)
        loss = max(0.0, 1.0 - margin)
        alpha = 0.0
        if loss > 0.0 and v > 0.0:
            beta = 1.0 / (v + r)
            alpha = loss * beta
            Sx = self.S @ x
            self.w = self.w + alpha * y * Sx
            self.S = np.diag(np.diag(self.S - beta * np.outer(Sx, Sx)))
        return {"score": y * margin, "margin": margin, "loss": loss, "variance": v, "step": alpha}


@dataclass
class Tally:
    """Prequential measures by their definitions, over lists of everything that came."""

    errors: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    majority_errors: int = 0
    no_change_errors: int = 0

    def add(self, truth: int, predicted: int, loss: float) -> None:
        counts = {k: self.labels.count(k) for k in sorted(set(self.labels))}
        majority = max(counts, key=lambda k: (counts[k], -k)) if counts else None
        self.majority_errors += majority != truth
        self.no_change_errors += not self.labels or self.labels[-1] != truth
        self.labels.append(truth)
        self.errors.append(int(predicted != truth))
        self.losses.append(loss)

    @staticmethod
    def sliding(values: list[Any], window: int) -> float:
        last = values[-window:]
        return float(sum(last) / len(last))

    @staticmethod
    def fading(values: list[Any], a: float) -> float:
        powers = [a ** (len(values) - 1 - i) for i in range(len(values))]
        return float(np.dot(powers, values) / sum(powers))
