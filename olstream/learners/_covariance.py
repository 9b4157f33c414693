"""Three kinds of covariance S of the weights, for one row of the state and one example x.

    first      S is the identity and never changes                    spread (0,)
    diagonal   S = diag(s), one variance for each weight              spread (D,)
    full       S = R R^T, a square root that always has one           spread (D, D)

Each has four parts, called in this order:

    reach      v = x·S x
    can_move   whether w + alpha S x is finite
    move       w += alpha S x
    narrow     S -= beta (S x)(S x)^T, as far as this kind can

`narrow` is told v in all (of two classes their sum), beta, and rho with rho^2 = 1 - beta v, which the step knows
without cancellation: a variance stays positive at ||x|| = 1e150, where the plain form gives 0.
p holds at its end, where there are variances: the prior a, variance_floor, forget and the form of `DIAGONALS`.
Source of the forms: Potter's square root (Bierman, Factorization Methods for Discrete Sequential Estimation, 1977);
Crammer, Dredze, Kulesza, Multi-class Confidence Weighted Algorithms, EMNLP 2009 (drop, project).
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from olstream.learners._jit import F64, I64, Kernel, kernel
from olstream.learners._score import LARGEST, NORMAL, add, can_add, squared
from olstream.learners._state import UNSEEN

# How S stays diagonal after a step: by the diagonal of the full result, of the full precision, or of NHERD's own map
DIAGONALS: Final = ("drop", "project", "exact")
_PROJECT, _EXACT = 1.0, 2.0
_SMALL: Final = 1e-3  # a smaller rho loses digits in 1 - rho


class Covariance(NamedTuple):
    reach: Kernel
    can_move: Kernel
    move: Kernel
    narrow: Kernel
    has_variance: bool = True


@kernel
def _first_reach(s: F64, idx: I64, val: F64, work: F64) -> float:
    return squared(val)


@kernel
def _first_can_move(w: F64, s: F64, idx: I64, val: F64, alpha: float, work: F64) -> bool:
    return can_add(w, idx, val, alpha)


@kernel
def _first_move(w: F64, s: F64, idx: I64, val: F64, alpha: float, work: F64) -> None:
    add(w, idx, val, alpha)


@kernel
def _first_narrow(
    s: F64, idx: I64, val: F64, v: float, own: float, beta: float, rho: float, h: float, p: F64, work: F64
) -> None:
    pass


@kernel
def _diagonal_reach(s: F64, idx: I64, val: F64, work: F64) -> float:
    v: float = 0.0
    for k in range(idx.size):
        v += s[idx[k]] * val[k] * val[k]
    return v


@kernel
def _diagonal_can_move(w: F64, s: F64, idx: I64, val: F64, alpha: float, work: F64) -> bool:
    finite: bool = abs(alpha) <= LARGEST
    for k in range(idx.size):
        i = idx[k]
        finite &= abs(w[i] + alpha * (s[i] * val[k])) <= LARGEST
    return finite


@kernel
def _diagonal_move(w: F64, s: F64, idx: I64, val: F64, alpha: float, work: F64) -> None:
    for k in range(idx.size):
        i = idx[k]
        w[i] += alpha * (s[i] * val[k])


@kernel
def _diagonal_narrow(
    s: F64, idx: I64, val: F64, v: float, own: float, beta: float, rho: float, h: float, p: F64, work: F64
) -> None:
    """Never up, but for `forget`; never to zero. Where x is 0 it stays as it is."""
    prior, floor, forget, form = p[p.size - 4], p[p.size - 3], p[p.size - 2], p[p.size - 1]
    rest = rho * rho
    for k in range(idx.size):
        i = idx[k]
        part = s[i] * val[k] * val[k]
        if part == 0.0:  # rest + beta v need not round to 1
            continue
        if form == _PROJECT:
            factor = 1.0 / (1.0 + beta / rho / rho * part)
        elif form == _EXACT:
            shrunk = 1.0 / (1.0 + p[0] * h * part)
            factor = shrunk * shrunk
        else:
            factor = min(1.0, rest + beta * max(0.0, v - part))
        s[i] = max(min(s[i] * factor * forget, prior), floor, min(s[i], NORMAL))


@kernel
def _full_reach(R: F64, idx: I64, val: F64, work: F64) -> float:
    """What was never learnt has one column, and yet each of it a variance of its own."""
    g = work[0]
    g[:] = 0.0
    apart = 0.0
    for k in range(idx.size):
        root = R[idx[k]]
        if idx[k] == UNSEEN:
            apart += root[UNSEEN] * val[k] * (root[UNSEEN] * val[k])
            continue
        for j in range(g.size):
            g[j] += root[j] * val[k]
    return float(squared(g) + apart)


@kernel
def _full_can_move(w: F64, R: F64, idx: I64, val: F64, alpha: float, work: F64) -> bool:
    """After `reach` of the same example."""
    g, sx = work[0], work[1]
    finite: bool = abs(alpha) <= LARGEST
    for i in range(g.size):
        root = R[i]
        total = 0.0
        for j in range(g.size):
            total += root[j] * g[j]
        sx[i] = total
        finite &= abs(w[i] + alpha * total) <= LARGEST
    return finite


@kernel
def _full_move(w: F64, R: F64, idx: I64, val: F64, alpha: float, work: F64) -> None:
    """After `can_move` of the same example."""
    sx = work[1]
    for i in range(sx.size):
        w[i] += alpha * sx[i]


@kernel
def _full_narrow(
    R: F64, idx: I64, val: F64, v: float, own: float, beta: float, rho: float, h: float, p: F64, work: F64
) -> None:
    """R -= beta / (1 + rho) S x (R^T x)^T, where rho is that of this row alone: never to zero."""
    g, sx = work[0], work[1]
    if own < NORMAL:  # of a pair: one of them is certain already
        return
    if own < v:
        rho = math.sqrt(rho * rho + beta * (v - own))
    rho = min(1.0, max(rho, math.sqrt(NORMAL * (squared(val) / own))))
    if rho < _SMALL:
        _full_narrow_far(R, g, sx, own, rho)
        return
    coefficient = beta / (1.0 + rho)
    for i in range(g.size):
        if sx[i] != 0.0:
            root, scale = R[i], coefficient * sx[i]
            for j in range(g.size):
                root[j] -= scale * g[j]


@kernel
def _full_narrow_far(R: F64, g: F64, sx: F64, own: float, rho: float) -> None:
    """The same where 1 - rho would round to 1, and a variance to 0: all of it is taken away and rho of it put back."""
    for i in range(g.size):
        if sx[i] != 0.0:
            root = R[i]
            for j in range(g.size):
                along = sx[i] * g[j] / own
                root[j] = root[j] - along + rho * along


FIRST: Final = Covariance(_first_reach, _first_can_move, _first_move, _first_narrow, has_variance=False)
DIAGONAL: Final = Covariance(_diagonal_reach, _diagonal_can_move, _diagonal_move, _diagonal_narrow)
FULL: Final = Covariance(_full_reach, _full_can_move, _full_move, _full_narrow)
