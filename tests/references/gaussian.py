"""Learners whose weights are a Gaussian N(mu, S): CW, SCW, AROW and NHERD, always with a whole matrix S.

Dredze, Crammer, Pereira. Confidence-Weighted Linear Classification. ICML 2008 (CW, variance form).
Crammer, Dredze, Pereira. Exact Convex Confidence-Weighted Learning. NIPS 2008 (CW, stdev form).
Crammer, Kulesza, Dredze. Adaptive Regularization of Weight Vectors. NIPS 2009 (AROW).
Crammer, Lee. Learning via Gaussian Herding. NIPS 2010 (NHERD).
Wang, Zhao, Hoi. Exact Soft Confidence-Weighted Learning. ICML 2012 (SCW).
Crammer, Dredze, Kulesza. Multi-Class Confidence Weighted Algorithms. EMNLP 2009.

A rule says when and how far: mu += alpha y S x, S -= beta (S x)(S x)^T, which is S^-1 += kappa x x^T.
The step is alpha. `shape` says what is kept of S after it: full; drop (the diagonal of the full step);
project (the diagonal of its inverse); exact (NHERD's own diagonal form).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np

from tests.references.lesson import ByClass, Matrix, OneVector, Report, Vector, is_zero

Shape = Literal["full", "drop", "project", "exact"]


def phi_of(eta: float) -> float:
    """A weight vector is right with probability eta where the margin is phi standard deviations."""
    return NormalDist().inv_cdf(eta)


class Step(NamedTuple):
    alpha: float
    beta: float
    kappa: float


class Exact(NamedTuple):
    """A step before it is rounded."""

    alpha: Decimal
    beta: Decimal
    kappa: Decimal


def rounded(formula: Callable[[Decimal, Decimal, Decimal], Exact], m: float, v: float, h: float) -> Step:
    """A formula as it stands in the paper, however its terms cancel: with 1300 digits."""
    with localcontext(prec=1300):
        return Step(*map(float, formula(Decimal(m), Decimal(v), Decimal(h))))


class Rule:
    """When a learner updates, and how far: m margin, v variance of the score (of a pair: of both), h importance."""

    def loss(self, m: float, v: float) -> float:
        raise NotImplementedError

    def step(self, m: Decimal, v: Decimal, h: Decimal) -> Exact:
        """Where the loss is positive."""
        raise NotImplementedError

    def shared(self, m: Decimal, q: Decimal, h: Decimal) -> Exact:
        """For two classes with one S, q = x·S x, so that the margin's variance is 2 q."""
        raise NotImplementedError


@dataclass
class CwVariance(Rule):
    """Pr[y w·x >= 0] >= eta, approximated by y mu·x >= phi x·S x."""

    phi: float

    def loss(self, m: float, v: float) -> float:
        return max(0.0, self.phi * v - m)

    def step(self, m: Decimal, v: Decimal, h: Decimal) -> Exact:
        phi = Decimal(self.phi)
        b = 1 + 2 * phi * m
        alpha = max(Decimal(0), (-b + (b**2 - 8 * phi * (m - phi * v)).sqrt()) / (4 * phi * v))
        kappa = 2 * alpha * phi
        return Exact(alpha, kappa / (1 + kappa * v), kappa)


@dataclass
class CwStdev(Rule):
    """Pr[y w·x >= 0] >= eta, that is, y mu·x >= phi sqrt(x·S x). SCW differs in alpha alone."""

    phi: float

    def loss(self, m: float, v: float) -> float:
        return max(0.0, self.phi * math.sqrt(v) - m)

    def alpha(self, m: Decimal, v: Decimal, h: Decimal) -> Decimal:
        phi = Decimal(self.phi)
        psi, zeta = 1 + phi**2 / 2, 1 + phi**2
        return max(Decimal(0), (-m * psi + (m**2 * phi**4 / 4 + v * phi**2 * zeta).sqrt()) / (v * zeta))

    def alpha_shared(self, m: Decimal, q: Decimal, h: Decimal) -> Decimal:
        phi = Decimal(self.phi)
        psi = 1 + phi**2 / 2
        root = (m**2 * (psi - 1) ** 2 + 8 * psi * phi**2 * q).sqrt()
        return max(Decimal(0), (-m * (psi + 1) + root) / (4 * psi * q))

    def step(self, m: Decimal, v: Decimal, h: Decimal) -> Exact:
        alpha, phi = self.alpha(m, v, h), Decimal(self.phi)
        root_u = (-alpha * v * phi + (alpha**2 * v**2 * phi**2 + 4 * v).sqrt()) / 2
        return Exact(alpha, alpha * phi / (root_u + v * alpha * phi), alpha * phi / root_u)

    def shared(self, m: Decimal, q: Decimal, h: Decimal) -> Exact:
        alpha, phi = self.alpha_shared(m, q, h), Decimal(self.phi)
        u = (-alpha * q * phi + (alpha**2 * q**2 * phi**2 + 8 * q).sqrt()) ** 2 / 8
        return Exact(alpha, alpha * phi / ((2 * u).sqrt() + alpha * phi * q), alpha * phi / (2 * u).sqrt())


@dataclass
class Scw1(CwStdev):
    """CW with C h [phi sqrt(x·S x) - y mu·x]+ instead of the constraint."""

    C: float = 1.0

    def alpha(self, m: Decimal, v: Decimal, h: Decimal) -> Decimal:
        return min(Decimal(self.C) * h, super().alpha(m, v, h))

    def alpha_shared(self, m: Decimal, q: Decimal, h: Decimal) -> Decimal:
        return min(Decimal(self.C) * h, super().alpha_shared(m, q, h))


@dataclass
class Scw2(CwStdev):
    """CW with C h [phi sqrt(x·S x) - y mu·x]+^2 instead of the constraint."""

    C: float = 1.0

    def alpha(self, m: Decimal, v: Decimal, h: Decimal) -> Decimal:
        phi, n = Decimal(self.phi), v + 1 / (2 * Decimal(self.C) * h)
        gamma = phi * (phi**2 * m**2 * v**2 + 4 * n * v * (n + v * phi**2)).sqrt()
        return max(Decimal(0), (-(2 * m * n + phi**2 * m * v) + gamma) / (2 * (n**2 + n * v * phi**2)))

    def alpha_shared(self, m: Decimal, q: Decimal, h: Decimal) -> Decimal:
        phi, n = Decimal(self.phi), 2 * q + 1 / (2 * Decimal(self.C) * h)
        gamma = (phi**4 * m**2 * q**2 + 8 * n * q * phi**2 * (n + q * phi**2)).sqrt()
        return max(Decimal(0), (-(2 * m * n + phi**2 * m * q) + gamma) / (2 * (n**2 + n * q * phi**2)))


@dataclass
class Arow(Rule):
    r: float = 1.0

    def loss(self, m: float, v: float) -> float:
        return max(0.0, 1.0 - m)

    def step(self, m: Decimal, v: Decimal, h: Decimal) -> Exact:
        r = Decimal(self.r) / h
        return Exact((1 - m) / (v + r), 1 / (v + r), 1 / r)

    def shared(self, m: Decimal, q: Decimal, h: Decimal) -> Exact:
        r = Decimal(self.r) / h
        return Exact((1 - m) / (2 * q + r), 1 / (q + r), 1 / r)


@dataclass
class Nherd(Rule):
    C: float = 1.0

    def loss(self, m: float, v: float) -> float:
        return max(0.0, 1.0 - m)

    def step(self, m: Decimal, v: Decimal, h: Decimal) -> Exact:
        C = Decimal(self.C) * h
        kappa = 2 * C + C**2 * v
        return Exact((1 - m) / (v + 1 / C), kappa / (1 + C * v) ** 2, kappa)


def narrowed(S: Matrix, x: Vector, step: Step, shape: Shape, C: float) -> Matrix:
    """S after a step; `C` (times h) is for `exact` alone."""
    full = S - step.beta * np.outer(S @ x, S @ x)
    if shape == "full":
        return full
    if shape == "drop":
        return np.diag(np.diag(full))
    s = np.diag(S)
    if shape == "project":
        return np.diag(1.0 / (1.0 / s + step.kappa * x**2))
    return np.diag(s / (1.0 + C * s * x**2) ** 2)


class Gaussian(OneVector):
    """Binary: one mean mu (d,) and one covariance S (d, d), from a times the identity."""

    def __init__(self, d: int, rule: Rule, shape: Shape = "full", a: float = 1.0) -> None:
        self.mu: Vector = np.zeros(d)
        self.S: Matrix = a * np.eye(d)
        self.rule, self.shape = rule, shape

    def judge(self, x: Vector, y: float) -> Report:
        score, v = float(self.mu @ x), float(x @ self.S @ x)
        return {"score": score, "margin": y * score, "loss": self.rule.loss(y * score, v), "variance": v}

    def teach(self, x: Vector, y: float, h: float, seen: Report) -> tuple[float, bool]:
        if seen["loss"] == 0.0 or is_zero(seen["variance"]):
            return 0.0, False
        step = rounded(self.rule.step, seen["margin"], seen["variance"], h)
        if step.alpha == 0.0:  # a loss of the size of a rounding error
            return 0.0, False
        self.mu = self.mu + step.alpha * y * (self.S @ x)
        self.S = narrowed(self.S, x, step, self.shape, h * getattr(self.rule, "C", 0.0))
        return step.alpha, True


class GaussianByClass(ByClass):
    """Multiclass: means W (K, d), a covariance for each class; the true class against the best wrong one."""

    def __init__(self, d: int, rule: Rule, shape: Shape = "full", a: float = 1.0) -> None:
        super().__init__(d)
        self.S: list[Matrix] = []
        self.rule, self.shape, self.a = rule, shape, a

    def grow(self) -> None:
        super().grow()
        self.S.append(self.a * np.eye(self.W.shape[1]))

    def shrink(self) -> None:
        super().shrink()
        self.S.pop()

    def variance(self, x: Vector, k: int) -> float:
        """Of the margin."""
        return float(x @ self.S[k] @ x + x @ self.S[self.rival(x, k)] @ x)

    def loss(self, x: Vector, k: int, margin: float) -> float:
        return self.rule.loss(margin, self.variance(x, k))

    def judge(self, x: Vector, k: int) -> Report:
        variance = self.variance(x, k) if len(self.W) > 1 else None
        return super().judge(x, k) | {"variance": variance}

    def teach(self, x: Vector, k: int, h: float, seen: Report) -> tuple[float, bool]:
        r = self.rival(x, k)
        if seen["loss"] == 0.0 or is_zero(seen["variance"]):
            return 0.0, False
        step = rounded(self.rule.step, seen["margin"], seen["variance"], h)
        if step.alpha == 0.0:
            return 0.0, False
        for q, sign in ((k, 1.0), (r, -1.0)):
            self.W[q] += sign * step.alpha * (self.S[q] @ x)
            self.S[q] = narrowed(self.S[q], x, step, self.shape, h * getattr(self.rule, "C", 0.0))
        return step.alpha, True


class GaussianShared(ByClass):
    """Multiclass with one full covariance for all classes; the variance told is that of the margin, 2 x·S x."""

    def __init__(self, d: int, rule: Rule, a: float = 1.0) -> None:
        super().__init__(d)
        self.S: Matrix = a * np.eye(d)
        self.rule = rule

    def loss(self, x: Vector, k: int, margin: float) -> float:
        return self.rule.loss(margin, 2.0 * float(x @ self.S @ x))

    def judge(self, x: Vector, k: int) -> Report:
        variance = 2.0 * float(x @ self.S @ x) if len(self.W) > 1 else None
        return super().judge(x, k) | {"variance": variance}

    def teach(self, x: Vector, k: int, h: float, seen: Report) -> tuple[float, bool]:
        r, q = self.rival(x, k), float(x @ self.S @ x)
        if seen["loss"] == 0.0 or is_zero(q):
            return 0.0, False
        step = rounded(self.rule.shared, seen["margin"], q, h)
        if step.alpha == 0.0:
            return 0.0, False
        self.W[k] += step.alpha * (self.S @ x)
        self.W[r] -= step.alpha * (self.S @ x)
        self.S = narrowed(self.S, x, step, "full", 0.0)
        return step.alpha, True


class ArowRegression(OneVector):
    """Recursive least squares with noise variance r; with eps > 0 nothing is learnt within eps of the target.

    With eps = 0 every round narrows S, also one without an error, whose step is then 0.
    """

    def __init__(self, d: int, r: float = 1.0, a: float = 1.0, eps: float = 0.0, shape: Shape = "full") -> None:
        self.mu: Vector = np.zeros(d)
        self.S: Matrix = a * np.eye(d)
        self.r, self.eps, self.shape = r, eps, shape

    def judge(self, x: Vector, y: float) -> Report:
        score, v = float(self.mu @ x), float(x @ self.S @ x)
        return {"score": score, "margin": None, "loss": max(0.0, abs(y - score) - self.eps), "variance": v}

    def teach(self, x: Vector, y: float, h: float, seen: Report) -> tuple[float, bool]:
        r, v = self.r / h, seen["variance"]
        if (self.eps > 0.0 and seen["loss"] == 0.0) or is_zero(v):
            return 0.0, False
        step = Step(seen["loss"] / (v + r), 1.0 / (v + r), 1.0 / r)
        self.mu = self.mu + math.copysign(step.alpha, y - seen["score"]) * (self.S @ x)
        self.S = narrowed(self.S, x, step, self.shape, 0.0)
        return step.alpha, True
