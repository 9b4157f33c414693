"""Another exact solver of SVC and SVR with absolute loss: dual coordinate descent, row by row.

Hsieh, Chang, Lin, Keerthi, Sundararajan. A Dual Coordinate Descent Method for Large-scale Linear SVM. ICML 2008.
Ho, Lin. Large-scale Linear Support Vector Regression. JMLR 13, 2012.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from scipy.sparse import csr_array

from tests.references.lesson import Matrix, Vector


def svc(X: Matrix, y: Vector, cost: Vector, rounds: int) -> tuple[float, float]:
    """What the optimum is at least and at most: the bounds meet as rounds go by, the lower one first."""
    return _bounds(X * y[:, np.newaxis], np.ones(len(y)), 0.0, np.zeros(len(y)), cost, rounds)


def svr(X: Matrix, t: Vector, cost: Vector, eps: float, rounds: int) -> tuple[float, float]:
    return _bounds(X, t, eps, -cost, cost, rounds)


def _bounds(Z: Matrix, d: Vector, eps: float, low: Vector, high: Vector, rounds: int) -> tuple[float, float]:
    """Of the largest d·a - eps |a|_1 - 1/2 ||Z^T a||^2 for low <= a <= high."""
    rng, rows = np.random.default_rng(0), csr_array(Z)
    w, a, square = np.zeros(Z.shape[1]), np.zeros(len(d)), (Z**2).sum(axis=1)
    for _ in range(rounds):
        order = rng.permutation(len(d))
        _round(rows.indptr, rows.indices, rows.data, d, eps, low, high, square, order, w, a)
    w = Z.T @ a
    above = d - Z @ w
    losses = high * np.maximum(0.0, above - eps) - low * np.maximum(0.0, -above - eps)
    dual = d @ a - eps * np.abs(a).sum() - 0.5 * w @ w
    return float(dual), float(0.5 * w @ w + losses.sum())


@numba.njit
def _round(
    indptr: Any,
    indices: Any,
    values: Any,
    d: Any,
    eps: float,
    low: Any,
    high: Any,
    square: Any,
    order: Any,
    w: Any,
    a: Any,
) -> None:
    """Each a_i in turn to its best value; w = Z^T a follows."""
    for i in order:
        if square[i] == 0.0:
            a[i] = high[i] if d[i] > eps else low[i] if d[i] < -eps else 0.0
            continue
        score = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            score += values[k] * w[indices[k]]
        free = a[i] + (d[i] - score) / square[i]
        shrunk = max(0.0, abs(free) - eps / square[i]) * (1.0 if free > 0.0 else -1.0)
        new = min(max(shrunk, low[i]), high[i])
        for k in range(indptr[i], indptr[i + 1]):
            w[indices[k]] += (new - a[i]) * values[k]
        a[i] = new
