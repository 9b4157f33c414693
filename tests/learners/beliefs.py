"""What a second-order learner believes, and streams on which it forms its belief."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from olstream import Learner
from tests.references.lesson import Matrix, Vector


class Belief(NamedTuple):
    """Weights ~ N(mu, S), features in alphabetical order: mu (d,), S (d, d)."""

    mu: Vector
    S: Matrix

    def variance(self, x: Vector) -> float:
        return float(x @ self.S @ x)


def beliefs(m: Learner) -> dict[Any, Belief]:
    """By class; of None where there is one in all."""
    weights, variances, covariance = m.weights(), m.variances(), m.covariance()
    if not any(isinstance(vector, dict) for vector in weights.values()):
        return {None: _belief(weights, variances, covariance)}
    by_class = isinstance(covariance, dict)
    return {k: _belief(weights[k], variances[k], covariance[k] if by_class else covariance) for k in weights}


def _belief(weights: dict[str, float], variances: dict[str, float], covariance: Any) -> Belief:
    names = sorted(weights)
    mu = np.array([weights[name] for name in names])
    if covariance is None:
        return Belief(mu, np.diag([variances[name] for name in names]))
    features, matrix = covariance
    order = [features.index(name) for name in names]
    return Belief(mu, matrix[np.ix_(order, order)])


def sparse_rows(n: int, d: int, seed: int) -> Matrix:
    """Rows of noise, four entries of ten 0, but none that is 0 everywhere."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[rng.random(X.shape) < 0.4] = 0.0
    X[np.all(X == 0.0, axis=1), 0] = 1.0
    return X


def labels_for(task: str, n: int, seed: int) -> Any:
    """Noise too: -1 and 1, three classes, or values."""
    rng = np.random.default_rng(1000 + seed)
    if task == "regression":
        return 3.0 * rng.normal(size=n)
    return rng.choice([-1, 1], n) if task == "binary" else rng.integers(0, 3, n)
