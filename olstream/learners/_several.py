"""Lessons of several classes that move more than two of them: the true class up, each of the others down by its share.

    w_y += (Σ τ_r) x        w_r -= τ_r x

A learner gives

    loss(now, y, winner, rival, p)                   of the scores `now`: of the best class and the best wrong one
    asks(l, m, p)                                    whether a row with this loss and margin asks for a step
    share(tau, now, y, winner, rival, n2, h, p)      fills tau (K,), 0 for y; n2 = ||x||^2
"""

from __future__ import annotations

import math

import numpy as np

from olstream.learners._jit import F64, I64, Kernel, bound, kernel, no_part
from olstream.learners._linear import positive
from olstream.learners._rows import after, before, classes_then, has_size, is_barred
from olstream.learners._score import add, best_of, can_add, clamp, dot, squared
from olstream.learners._state import Arrays
from olstream.learners.base import OVERFLOW, SCORE, SKIP, WEIGHT


def several(loss: Kernel, share: Kernel, asks: Kernel = positive) -> Kernel:
    return bound(_several, loss=loss, share=share, asks=asks)


# What stands for a learner's own parts in the template below
loss: Kernel = no_part
share: Kernel = no_part
asks: Kernel = positive


@kernel
def can_add_shares(w: F64, idx: I64, val: F64, tau: F64, y: int, total: float) -> bool:
    finite: bool = can_add(w[y], idx, val, total)
    for r in range(tau.size):
        if tau[r] > 0.0:
            finite &= can_add(w[r], idx, val, -tau[r])
    return finite


@kernel
def add_shares(w: F64, idx: I64, val: F64, tau: F64, y: int, total: float) -> None:
    add(w[y], idx, val, total)
    for r in range(tau.size):
        if tau[r] > 0.0:
            add(w[r], idx, val, -tau[r])


def _several(
    p: F64, a: Arrays, idx: I64, val: F64, now: F64, y: int, rival: int, out: F64, code: I64, row: int
) -> None:
    w, n2, count = a.weights, squared(val), classes_then(code, row, y)
    winner = best_of(now, count, -1)
    m = clamp(now[y] - now[rival])
    l = loss(now, y, winner, rival, p)  # noqa: E741
    before(out, code, row, out[SCORE, row], m, l, math.nan)
    if is_barred(out, code, row) or not has_size(out, code, row, n2) or not asks(l, m, p):
        return

    tau = np.zeros(count)
    share(tau, now, y, winner, rival, n2, out[WEIGHT, row], p)
    total = np.sum(tau)
    if not can_add_shares(w, idx, val, tau, y, total):
        code[SKIP, row] = OVERFLOW
    elif total > 0.0:
        add_shares(w, idx, val, tau, y, total)
        for k in range(count):
            now[k] = dot(w[k], idx, val)
        winner, rival = best_of(now, count, -1), best_of(now, count, y)
        m = clamp(now[y] - now[rival])
        after(out, code, row, total, now[winner], m, loss(now, y, winner, rival, p))
