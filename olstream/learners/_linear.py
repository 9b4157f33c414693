"""The passes over a batch that linear learners share: one weight vector, or one for each class.

    single   binary (target +1 or -1) and regression: score w·x
    pair     multiclass, most violated constraint: the true class against the best wrong one

A learner gives a loss and a step, and the pass does the rest, row by row, in order:

    loss(m, v, p)          m margin (regression: |error|), v variance, p parameters
    step(l, m, q, h, p)    -> alpha, beta, rest, where the loss l is positive
        q     variance x·S x (pair: of both classes together); first order: S is the identity
        h     importance weight > 0
        alpha w += alpha y S x          beta, rest   s_i *= rest + beta (q - s_i x_i^2)

The last line is s_i - beta (s_i x_i)^2 with rest = 1 - beta q, which the step knows without
cancellation: a variance stays positive at ||x|| = 1e150, where the plain form gives 0.

Nothing is written before all of it is known to be finite, so no state ever holds NaN or inf.
A row with weight 0 or no label is scored and changes nothing: predicting is the same pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from olstream.learners._jit import F64, I64, bound, kernel
from olstream.learners.base import (
    BARRED,
    KNOWN,
    LOSS,
    LOSS_AFTER,
    MARGIN,
    MARGIN_AFTER,
    OVERFLOW,
    SCORE,
    SCORE_AFTER,
    SKIP,
    STEP,
    TARGET,
    UPDATED,
    VARIANCE,
    WEIGHT,
    WINNER,
    ZERO_NORM,
    Columns,
    Entries,
    RowPass,
    State,
)

LARGEST: Final = 1.7976931348623157e308
NORMAL: Final = 2.2250738585072014e-308  # below it a double loses digits: treated as zero

Loss: TypeAlias = Callable[[float, float, F64], float]
Step: TypeAlias = Callable[[float, float, float, float, F64], tuple[float, float, float]]


def single(loss: Loss, step: Step, regression: bool = False) -> RowPass:
    """The pass for one weight vector: toward the class, or in regression toward the target."""
    rows = bound(_single, loss_of=loss, step_of=step, is_regression=regression)

    def run(state: State, entries: Entries, columns: Columns, params: F64) -> None:
        rows(params, state.weights[0], state.variances[0], *entries, columns.numbers, columns.codes)

    return run


def pair(loss: Loss, step: Step) -> RowPass:
    """The pass for one weight vector per class: the true class up, the best wrong one down."""
    compete = bound(_compete, loss_of=loss, step_of=step)
    rows = bound(_pair, compete=compete)

    def run(state: State, entries: Entries, columns: Columns, params: F64) -> None:
        rows(params, state.weights, state.variances, *entries, columns.numbers, columns.codes, columns.scores)

    return run


@kernel
def hinge(m: float, v: float, p: F64) -> float:
    return max(0.0, 1.0 - m)


@kernel
def tube(e: float, v: float, p: F64) -> float:
    """The loss of regression: nothing within eps of the target. eps is the last parameter."""
    return float(max(0.0, e - p[p.size - 1]))


def _no_step(l: float, m: float, q: float, h: float, p: F64) -> tuple[float, float, float]:  # noqa: E741
    raise NotImplementedError


@kernel
def clamp(value: float) -> float:
    """The nearest finite double. nan stays: no caller can have it."""
    return min(max(value, -LARGEST), LARGEST)


@kernel
def dot(w: F64, idx: I64, val: F64) -> float:
    """w·x, clamped; exact in range also where a partial sum is not."""
    total = 0.0
    for k in range(idx.size):
        total += w[idx[k]] * val[k]
    if not abs(total) <= LARGEST:
        total = _scaled_dot(w, idx, val)
    return float(total)


@kernel
def _scaled_dot(w: F64, idx: I64, val: F64) -> float:
    w_max = 0.0
    x_max = 0.0
    for k in range(idx.size):
        w_max = max(w_max, abs(w[idx[k]]))
        x_max = max(x_max, abs(val[k]))
    total = 0.0
    for k in range(idx.size):
        total += (w[idx[k]] / w_max) * (val[k] / x_max)
    return clamp(total * min(w_max, x_max) * max(w_max, x_max))


@kernel
def spread(s: F64, idx: I64, val: F64) -> float:
    """x·S x, where an empty s is the identity: ||x||^2."""
    q: float = 0.0
    if s.size == 0:
        for k in range(idx.size):
            q += val[k] * val[k]
    else:
        for k in range(idx.size):
            q += s[idx[k]] * val[k] * val[k]
    return q


@kernel
def can_move(w: F64, s: F64, idx: I64, val: F64, alpha: float) -> bool:
    """Whether w + alpha S x is finite in every part."""
    finite: bool = abs(alpha) <= LARGEST
    for k in range(idx.size):
        i = idx[k]
        sx = val[k] if s.size == 0 else s[i] * val[k]
        finite &= abs(w[i] + alpha * sx) <= LARGEST
    return finite


@kernel
def move(w: F64, s: F64, idx: I64, val: F64, alpha: float) -> None:
    """w + alpha S x, term for term what `can_move` looked at."""
    for k in range(idx.size):
        i = idx[k]
        sx = val[k] if s.size == 0 else s[i] * val[k]
        w[i] += alpha * sx


@kernel
def narrow(s: F64, idx: I64, val: F64, q: float, beta: float, rest: float) -> None:
    """The diagonal of S - beta (S x)(S x)^T; never up, and never to zero. Where x is 0 it stays as it is."""
    if s.size == 0:
        return
    for k in range(idx.size):
        if val[k] == 0.0:  # rest + beta q need not round to 1
            continue
        i = idx[k]
        others = max(0.0, q - s[i] * val[k] * val[k])
        factor = min(1.0, rest + beta * others)
        s[i] = max(s[i] * factor, min(s[i], NORMAL))


@kernel
def _before(out: F64, code: I64, row: int, f: float, m: float, l: float, v: float) -> None:  # noqa: E741
    """What is reported of a row that changes nothing; a change writes over the half of it."""
    out[SCORE, row] = out[SCORE_AFTER, row] = f
    out[MARGIN, row] = out[MARGIN_AFTER, row] = m
    out[LOSS, row] = out[LOSS_AFTER, row] = l
    out[VARIANCE, row] = min(v, LARGEST)
    out[STEP, row] = 0.0
    code[SKIP, row] = 0
    code[UPDATED, row] = 0


@kernel
def _after(out: F64, code: I64, row: int, alpha: float, f: float, m: float, l: float) -> None:  # noqa: E741
    out[SCORE_AFTER, row] = f
    out[MARGIN_AFTER, row] = m
    out[LOSS_AFTER, row] = l
    out[STEP, row] = alpha
    code[UPDATED, row] = 1


@kernel
def _learns(out: F64, code: I64, row: int, l: float, q: float) -> bool:  # noqa: E741
    """Whether a row asks for an update and can have one; if it cannot, why not."""
    if not (out[WEIGHT, row] > 0.0 and l > 0.0):
        return False
    if code[BARRED, row] != 0:
        code[SKIP, row] = code[BARRED, row]
        return False
    if not NORMAL <= q <= LARGEST:
        code[SKIP, row] = ZERO_NORM
        return False
    return True


# What stands for a learner's own parts in the templates below
loss_of: Loss = hinge
step_of: Step = _no_step
is_regression = False


def _single(p: F64, w: F64, s: F64, indptr: I64, indices: I64, values: F64, out: F64, code: I64) -> None:
    for row in range(out.shape[1]):
        idx = indices[indptr[row] : indptr[row + 1]]
        val = values[indptr[row] : indptr[row + 1]]
        y = out[TARGET, row]
        f = dot(w, idx, val)
        q = spread(s, idx, val)
        v = q if s.size > 0 else math.nan
        if math.isnan(y):
            _before(out, code, row, f, math.nan, math.nan, v)
            continue
        m = abs(clamp(y - f)) if is_regression else y * f
        l = loss_of(m, q, p)  # noqa: E741
        _before(out, code, row, f, math.nan if is_regression else m, l, v)
        if not _learns(out, code, row, l, q):
            continue

        alpha, beta, rest = step_of(l, m, q, out[WEIGHT, row], p)
        toward = 1.0 if (f < y if is_regression else y > 0.0) else -1.0
        if not can_move(w, s, idx, val, toward * alpha):
            code[SKIP, row] = OVERFLOW
        elif alpha > 0.0:
            move(w, s, idx, val, toward * alpha)
            narrow(s, idx, val, q, beta, rest)
            f = dot(w, idx, val)
            m = abs(clamp(y - f)) if is_regression else y * f
            l = loss_of(m, spread(s, idx, val), p)  # noqa: E741
            _after(out, code, row, alpha, f, math.nan if is_regression else m, l)


def _compete(
    p: F64, w: F64, s: F64, idx: I64, val: F64, now: F64, y: int, rival: int, out: F64, code: I64, row: int
) -> None:
    """The lesson of one row: class y against its best rival, with the scores `now`."""
    q = spread(s[min(y, s.shape[0] - 1)], idx, val) + spread(s[rival], idx, val)
    m = clamp(now[y] - now[rival])
    l = loss_of(m, q, p)  # noqa: E741
    _before(out, code, row, out[SCORE, row], m, l, q if s.shape[1] > 0 else math.nan)
    if not _learns(out, code, row, l, q):
        return

    alpha, beta, rest = step_of(l, m, q, out[WEIGHT, row], p)
    if not (can_move(w[y], s[y], idx, val, alpha) and can_move(w[rival], s[rival], idx, val, -alpha)):
        code[SKIP, row] = OVERFLOW
    elif alpha > 0.0:
        for k, toward in ((y, alpha), (rival, -alpha)):
            move(w[k], s[k], idx, val, toward)
            narrow(s[k], idx, val, q, beta, rest)
            now[k] = dot(w[k], idx, val)
        count = max(code[KNOWN, row], y + 1)
        m = clamp(now[y] - now[_best(now, count, y)])
        l = loss_of(m, spread(s[y], idx, val) + spread(s[rival], idx, val), p)  # noqa: E741
        _after(out, code, row, alpha, now[_best(now, count, -1)], m, l)


compete = _compete


def _pair(p: F64, w: F64, s: F64, indptr: I64, indices: I64, values: F64, out: F64, code: I64, scores: F64) -> None:
    now = np.zeros(w.shape[0] + 1)  # scores; still 0 for a class that the row brings
    for row in range(out.shape[1]):
        idx = indices[indptr[row] : indptr[row + 1]]
        val = values[indptr[row] : indptr[row + 1]]
        known = code[KNOWN, row]
        for k in range(known):
            now[k] = dot(w[k], idx, val)
        if scores.size > 0:
            scores[row, :known] = now[:known]
        best = _best(now, known, -1)
        code[WINNER, row] = best
        f = now[best] if best >= 0 else 0.0
        if math.isnan(out[TARGET, row]):
            _before(out, code, row, f, math.nan, math.nan, math.nan)
            continue
        y = int(out[TARGET, row])
        rival = _best(now, known, y)
        _before(out, code, row, f, math.nan, 0.0, math.nan)
        if rival >= 0:
            compete(p, w, s, idx, val, now, y, rival, out, code, row)


@kernel
def _best(scores: F64, count: int, but: int) -> int:
    """The class with the highest of the first scores, the first seen of equals; -1 for none."""
    best = -1
    for k in range(count):
        if k != but and (best < 0 or scores[k] > scores[best]):
            best = k
    return best
