"""Lessons that predict with the mean of the weights after each row so far: w - u / t, t rows.

u adds up (t - 1) times what the t-th row added to w. Every labelled row counts, also one that adds nothing.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from olstream.learners._jit import F64, I64, Kernel, bound, kernel, no_part
from olstream.learners._linear import Rule, hinge, positive
from olstream.learners._rows import after, before, classes_then, has_size, is_barred
from olstream.learners._score import add, best_of, can_add, clamp, dot, squared
from olstream.learners._several import add_shares, can_add_shares
from olstream.learners._state import Anatomy, Arrays
from olstream.learners.base import OVERFLOW, SCORE, SKIP, TARGET, UPDATED, WEIGHT

ANATOMY: Final = Anatomy(has_sums=True, counters=(0.0,))


def mean_single(rule: Rule) -> Kernel:
    """A first-order rule, binary."""
    return bound(_mean_single, **rule._asdict())


def mean_several(loss: Kernel, share: Kernel, asks: Kernel = positive) -> Kernel:
    """As `_several.several`."""
    return bound(_mean_several, loss=loss, share=share, asks=asks)


def mean_weights(a: Arrays) -> F64:
    return a.weights - a.sums / np.maximum(a.counters, 1.0)


def mean_weights_all(a: Arrays) -> F64:
    """Where all classes count the same rows."""
    mean: F64 = a.weights - a.sums / max(a.counters[0, 0], 1.0)
    return mean


@kernel
def averaged(a: Arrays, k: int, idx: I64, val: F64) -> float:
    return clamp(dot(a.weights[k], idx, val) - dot(a.sums[k], idx, val) / max(a.counters[k, 0], 1.0))


@kernel
def averaged_all(a: Arrays, k: int, idx: I64, val: F64) -> float:
    return clamp(dot(a.weights[k], idx, val) - dot(a.sums[k], idx, val) / max(a.counters[0, 0], 1.0))


# What stands for a learner's own parts in the templates below
loss: Kernel = hinge
step: Kernel = no_part
share: Kernel = no_part
asks: Kernel = positive


def _mean_single(p: F64, a: Arrays, k: int, idx: I64, val: F64, out: F64, code: I64, row: int) -> None:
    w, u, t, y = a.weights[k], a.sums[k], a.counters[k], out[TARGET, row]
    f = averaged(a, k, idx, val)
    if math.isnan(y):
        before(out, code, row, f, math.nan, math.nan, math.nan)
        return
    before(out, code, row, f, y * f, loss(y * f, 1.0, p), math.nan)
    if is_barred(out, code, row):
        return

    n2, m = squared(val), y * dot(w, idx, val)
    l, tau = loss(m, n2, p), 0.0  # noqa: E741
    if has_size(out, code, row, n2) and asks(l, m, p):
        tau = step(l, m, n2, out[WEIGHT, row], p)[0]
    if not (can_add(w, idx, val, y * tau) and can_add(u, idx, val, t[0] * (y * tau))):
        code[SKIP, row] = OVERFLOW
        return
    add(w, idx, val, y * tau)
    add(u, idx, val, t[0] * (y * tau))
    t[0] += 1.0
    f = averaged(a, k, idx, val)
    after(out, code, row, tau, f, y * f, loss(y * f, 1.0, p))
    code[UPDATED, row] = tau > 0.0


def _mean_several(
    p: F64, a: Arrays, idx: I64, val: F64, now: F64, y: int, rival: int, out: F64, code: I64, row: int
) -> None:
    w, u, t, count = a.weights, a.sums, a.counters[0], classes_then(code, row, y)
    if rival < 0:
        t[0] += 0.0 if is_barred(out, code, row) else 1.0
        return
    l = loss(now, y, best_of(now, count, -1), rival, p)  # noqa: E741
    before(out, code, row, out[SCORE, row], clamp(now[y] - now[rival]), l, math.nan)
    if is_barred(out, code, row):
        return

    n2, tau, raw = squared(val), np.zeros(count), np.zeros(count)
    for k in range(count):
        raw[k] = dot(w[k], idx, val)
    winner, rival = best_of(raw, count, -1), best_of(raw, count, y)
    l, m = loss(raw, y, winner, rival, p), clamp(raw[y] - raw[rival])  # noqa: E741
    if has_size(out, code, row, n2) and asks(l, m, p):
        share(tau, raw, y, winner, rival, n2, out[WEIGHT, row], p)
    total = np.sum(tau)
    if not (can_add_shares(w, idx, val, tau, y, total) and can_add_shares(u, idx, val, t[0] * tau, y, t[0] * total)):
        code[SKIP, row] = OVERFLOW
        return
    add_shares(w, idx, val, tau, y, total)
    add_shares(u, idx, val, t[0] * tau, y, t[0] * total)
    t[0] += 1.0
    for k in range(count):
        now[k] = averaged_all(a, k, idx, val)
    winner, rival = best_of(now, count, -1), best_of(now, count, y)
    after(out, code, row, total, now[winner], clamp(now[y] - now[rival]), loss(now, y, winner, rival, p))
    code[UPDATED, row] = total > 0.0
