"""Lessons of a margin: how a loss, a step and a kind of covariance learn from one row.

    single   one weight vector: binary, and regression, where the margin is |error|
    pair     one for each class: the true class against the best wrong one, each with a covariance of its own
    shared   the same with one covariance for all classes
    rest     one for each class, each a binary learner of its own: this class against the rest

A learner gives a `Rule`, and the lesson does the rest:

    loss(m, v, p)          m margin (regression: |error|), v variance, p parameters
    asks(l, m, p)          whether a row with this loss asks for a step
    step(l, m, v, h, p)    -> alpha, beta, rho
        v     variance x·S x (pair: of both classes together; shared: of one); first order: S is the identity
        h     importance weight > 0
        alpha w += alpha y S x          beta, rho   S -= beta (S x)(S x)^T,  rho^2 = 1 - beta v
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from olstream.learners._covariance import FIRST, Covariance
from olstream.learners._jit import F64, I64, Kernel, bound, kernel, no_part
from olstream.learners._rows import after, before, classes_then, has_size, is_barred
from olstream.learners._score import best_of, clamp, dot
from olstream.learners._state import Arrays
from olstream.learners.base import OVERFLOW, SCORE, SCORE_AFTER, SKIP, STEP, TARGET, UPDATED, WEIGHT


@kernel
def hinge(m: float, v: float, p: F64) -> float:
    return max(0.0, 1.0 - m)


@kernel
def positive(l: float, m: float, p: F64) -> bool:  # noqa: E741
    return l > 0.0


class Rule(NamedTuple):
    loss: Kernel
    step: Kernel
    asks: Kernel = positive


def single(rule: Rule, covariance: Covariance = FIRST, is_regression: bool = False) -> Kernel:
    parts = rule._asdict() | covariance._asdict()
    return bound(_single, **parts, is_regression=is_regression)


def pair(rule: Rule, covariance: Covariance = FIRST) -> Kernel:
    return bound(_pair, **rule._asdict(), **covariance._asdict())


def shared(rule: Rule, covariance: Covariance) -> Kernel:
    """The step is told the variance q of one class; the margin's is 2 q."""
    return bound(_shared, **rule._asdict(), **covariance._asdict())


def rest(lesson: Kernel, loss: Kernel, covariance: Covariance = FIRST) -> Kernel:
    """`lesson` is the binary one, `loss` that of a margin."""
    return bound(_rest, lesson=lesson, loss=loss, **covariance._asdict())


# What stands for a learner's own parts in the templates below
loss: Kernel = hinge
asks: Kernel = positive
step: Kernel = no_part
lesson: Kernel = no_part
reach, can_move, move, narrow, has_variance = FIRST
is_regression = False


def _single(p: F64, a: Arrays, k: int, idx: I64, val: F64, out: F64, code: I64, row: int) -> None:
    w, S, work = a.weights[k], a.spread[k], a.work[0]
    y, h = out[TARGET, row], out[WEIGHT, row]
    f = dot(w, idx, val)
    v = reach(S, idx, val, work)
    told = v if has_variance else math.nan
    if math.isnan(y):
        before(out, code, row, f, math.nan, math.nan, told)
        return
    m = abs(clamp(y - f)) if is_regression else y * f
    l = loss(m, v, p)  # noqa: E741
    before(out, code, row, f, math.nan if is_regression else m, l, told)
    if is_barred(out, code, row) or not has_size(out, code, row, v) or not asks(l, m, p):
        return

    alpha, beta, rho = step(l, m, v, h, p)
    toward = 1.0 if (f < y if is_regression else y > 0.0) else -1.0
    if not can_move(w, S, idx, val, toward * alpha, work):
        code[SKIP, row] = OVERFLOW
    elif alpha > 0.0 or beta > 0.0:
        move(w, S, idx, val, toward * alpha, work)
        narrow(S, idx, val, v, v, beta, rho, h, p, work)
        f = dot(w, idx, val)
        m = abs(clamp(y - f)) if is_regression else y * f
        l = loss(m, reach(S, idx, val, work), p)  # noqa: E741
        after(out, code, row, alpha, f, math.nan if is_regression else m, l)


def _pair(p: F64, a: Arrays, idx: I64, val: F64, now: F64, y: int, rival: int, out: F64, code: I64, row: int) -> None:
    w, S, work, h = a.weights, a.spread, a.work, out[WEIGHT, row]
    own_y, own_r = reach(S[y], idx, val, work[0]), reach(S[rival], idx, val, work[1])
    v = own_y + own_r
    m = clamp(now[y] - now[rival])
    l = loss(m, v, p)  # noqa: E741
    before(out, code, row, out[SCORE, row], m, l, v if has_variance else math.nan)
    if is_barred(out, code, row) or not has_size(out, code, row, v) or not asks(l, m, p):
        return

    alpha, beta, rho = step(l, m, v, h, p)
    if not (can_move(w[y], S[y], idx, val, alpha, work[0]) and can_move(w[rival], S[rival], idx, val, -alpha, work[1])):
        code[SKIP, row] = OVERFLOW
    elif alpha > 0.0 or beta > 0.0:
        move(w[y], S[y], idx, val, alpha, work[0])
        move(w[rival], S[rival], idx, val, -alpha, work[1])
        narrow(S[y], idx, val, v, own_y, beta, rho, h, p, work[0])
        narrow(S[rival], idx, val, v, own_r, beta, rho, h, p, work[1])
        now[y], now[rival] = dot(w[y], idx, val), dot(w[rival], idx, val)
        count = classes_then(code, row, y)
        rival = best_of(now, count, y)
        m = clamp(now[y] - now[rival])
        v = reach(S[y], idx, val, work[0]) + reach(S[rival], idx, val, work[1])
        after(out, code, row, alpha, now[best_of(now, count, -1)], m, loss(m, v, p))


def _shared(p: F64, a: Arrays, idx: I64, val: F64, now: F64, y: int, rival: int, out: F64, code: I64, row: int) -> None:
    w, S, work, h = a.weights, a.spread[0], a.work[0], out[WEIGHT, row]
    q = reach(S, idx, val, work)
    m = clamp(now[y] - now[rival])
    l = loss(m, 2.0 * q, p)  # noqa: E741
    before(out, code, row, out[SCORE, row], m, l, 2.0 * q)
    if is_barred(out, code, row) or not has_size(out, code, row, q) or not asks(l, m, p):
        return

    alpha, beta, rho = step(l, m, q, h, p)
    if not (can_move(w[y], S, idx, val, alpha, work) and can_move(w[rival], S, idx, val, -alpha, work)):
        code[SKIP, row] = OVERFLOW
    elif alpha > 0.0 or beta > 0.0:
        move(w[y], S, idx, val, alpha, work)
        move(w[rival], S, idx, val, -alpha, work)
        narrow(S, idx, val, q, q, beta, rho, h, p, work)
        now[y], now[rival] = dot(w[y], idx, val), dot(w[rival], idx, val)
        count = classes_then(code, row, y)
        m = clamp(now[y] - now[best_of(now, count, y)])
        v = 2.0 * reach(S, idx, val, work)
        after(out, code, row, alpha, now[best_of(now, count, -1)], m, loss(m, v, p))


def _rest(p: F64, a: Arrays, idx: I64, val: F64, now: F64, y: int, rival: int, out: F64, code: I64, row: int) -> None:
    """What is reported is measured as of several classes: the margin is between their scores."""
    S, work, count = a.spread, a.work, classes_then(code, row, y)
    m = clamp(now[y] - now[rival])
    v = reach(S[y], idx, val, work[0]) + reach(S[rival], idx, val, work[0])
    before(out, code, row, out[SCORE, row], m, loss(m, v, p), v if has_variance else math.nan)
    if is_barred(out, code, row):
        return
    note, mark = np.zeros((out.shape[0], 1)), np.zeros((code.shape[0], 1), np.int64)
    note[WEIGHT, 0] = out[WEIGHT, row]
    largest = 0.0
    has_changed = False
    for k in range(count):
        note[TARGET, 0] = 1.0 if k == y else -1.0
        lesson(p, a, k, idx, val, note, mark, 0)
        now[k] = note[SCORE_AFTER, 0]
        largest = max(largest, note[STEP, 0])
        has_changed |= mark[UPDATED, 0] != 0
        code[SKIP, row] = max(code[SKIP, row], mark[SKIP, 0])
    rival = best_of(now, count, y)
    m = clamp(now[y] - now[rival])
    v = reach(S[y], idx, val, work[0]) + reach(S[rival], idx, val, work[0])
    after(out, code, row, largest, now[best_of(now, count, -1)], m, loss(m, v, p))
    code[UPDATED, row] = has_changed
    if has_changed:
        code[SKIP, row] = 0
