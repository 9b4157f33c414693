"""Lessons of gradient descent: every labelled row is a round, t = 1, 2, ...

    w ← keeps w - rate h slope x

    descent   one weight vector
    softmax   one for each class, all of them in every round

Weights are kept as w = scale u, so that shrinking all of them costs one multiplication. What a learner gives:

    loss(f, y, p)     of a score                   slope(f, y, p)    its derivative by f
    rate(t, p)        of round t                   keeps(t, p)       what is kept of the weights, in [0, 1]

A round is counted, and weights are shrunk, also for the zero vector.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from olstream.learners._jit import F64, I64, Kernel, bound, kernel, no_part
from olstream.learners._rows import after, before, classes_then, has_size, is_barred
from olstream.learners._score import LARGEST, best_of, clamp, dot, squared
from olstream.learners._state import Anatomy, Arrays
from olstream.learners.base import OVERFLOW, SCORE, SKIP, TARGET, UPDATED, WEIGHT

SCALE, ROUNDS = 0, 1
ANATOMY: Final = Anatomy(counters=(1.0, 0.0))
_SMALL: Final = 1e-100  # a smaller scale is multiplied out
_LARGE: Final = 1e200


def descent(loss: Kernel, slope: Kernel, rate: Kernel, keeps: Kernel, radius: Kernel | None = None,
            is_regression: bool = False) -> Kernel:  # fmt: skip
    """`radius(p)`: the weights are scaled back to that norm after each round, which costs O(d)."""
    parts = {"loss": loss, "slope": slope, "rate": rate, "keeps": keeps, "radius": radius or no_part}
    return bound(_descent, **parts, has_radius=radius is not None, is_regression=is_regression)


def softmax(rate: Kernel, keeps: Kernel) -> Kernel:
    return bound(_softmax, rate=rate, keeps=keeps)


def margin_loss(loss: Kernel) -> Kernel:
    """A loss of scores as one of margins, for `_linear.rest`."""
    return bound(_margin_loss, loss=loss)


def weights_of(a: Arrays) -> F64:
    return a.weights * a.counters[:, SCALE : SCALE + 1]


def weights_of_all(a: Arrays) -> F64:
    """Where all classes have one scale."""
    scaled: F64 = a.weights * a.counters[0, SCALE]
    return scaled


@kernel
def scaled(a: Arrays, k: int, idx: I64, val: F64) -> float:
    return clamp(a.counters[k, SCALE] * dot(a.weights[k], idx, val))


@kernel
def scaled_all(a: Arrays, k: int, idx: I64, val: F64) -> float:
    return clamp(a.counters[0, SCALE] * dot(a.weights[k], idx, val))


@kernel
def sigmoid(z: float) -> float:
    if z >= 0.0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)


@kernel
def logistic_loss(f: float, y: float, p: F64) -> float:
    z = y * f
    return math.log1p(math.exp(-abs(z))) + max(0.0, -z)


@kernel
def logistic_slope(f: float, y: float, p: F64) -> float:
    return -y * sigmoid(-y * f)


# What stands for a learner's own parts in the templates below
loss: Kernel = logistic_loss
slope: Kernel = logistic_slope
rate: Kernel = no_part
keeps: Kernel = no_part
radius: Kernel = no_part
has_radius = False
is_regression = False


def _margin_loss(m: float, v: float, p: F64) -> float:
    return float(loss(m, 1.0, p))


@kernel
def _rescaled(scale: float, kept: float, delta: float) -> tuple[float, float]:
    """(factor, scale) with w = scale factor u after shrinking; factor 1 unless it has to be multiplied out."""
    small = scale * kept
    if small > _SMALL and abs(delta) <= _LARGE * small:
        return 1.0, small
    return small, 1.0


@kernel
def _can_step(u: F64, factor: float, scale: float, idx: I64, val: F64, delta: float) -> bool:
    """Whether w + delta x is finite in every part, and what is kept of it too."""
    finite: bool = abs(delta) <= LARGEST
    for k in range(idx.size):
        part = factor * u[idx[k]] + delta / scale * val[k]
        finite &= abs(part) <= LARGEST and abs(scale * part) <= LARGEST
    return finite


@kernel
def _step(u: F64, factor: float, scale: float, idx: I64, val: F64, delta: float) -> None:
    if factor != 1.0:
        for i in range(u.size):
            u[i] *= factor
    for k in range(idx.size):
        u[idx[k]] += delta / scale * val[k]


@kernel
def _norm(u: F64) -> float:
    total: float = 0.0
    for i in range(u.size):
        total += u[i] * u[i]
    return math.sqrt(total)


def _descent(p: F64, a: Arrays, k: int, idx: I64, val: F64, out: F64, code: I64, row: int) -> None:
    u, c, y = a.weights[k], a.counters[k], out[TARGET, row]
    f = clamp(c[SCALE] * dot(u, idx, val))
    if math.isnan(y):
        before(out, code, row, f, math.nan, math.nan, math.nan)
        return
    before(out, code, row, f, math.nan if is_regression else y * f, clamp(loss(f, y, p)), math.nan)
    if is_barred(out, code, row):
        return

    t = c[ROUNDS] + 1.0
    kept, delta = keeps(t, p), -rate(t, p) * out[WEIGHT, row] * slope(f, y, p)
    if not has_size(out, code, row, squared(val)):
        delta = 0.0
    factor, scale = _rescaled(c[SCALE], kept, delta)
    if not _can_step(u, factor, scale, idx, val, delta):
        code[SKIP, row] = OVERFLOW
        return
    _step(u, factor, scale, idx, val, delta)
    if has_radius:
        scale *= min(1.0, radius(p) / max(scale * _norm(u), 1e-300))
    c[SCALE], c[ROUNDS] = scale, t
    f = clamp(scale * dot(u, idx, val))
    after(out, code, row, abs(delta), f, math.nan if is_regression else y * f, clamp(loss(f, y, p)))
    code[UPDATED, row] = code[SKIP, row] == 0 and (delta != 0.0 or kept != 1.0)


@kernel
def _entropy(now: F64, count: int, y: int) -> float:
    """-log of the share of class y: the largest score is taken off, so that exp never overflows."""
    top = now[best_of(now, count, -1)]
    total = 0.0
    for k in range(count):
        total += math.exp(now[k] - top)
    return clamp(math.log(total) + (top - now[y]))


def _softmax(
    p: F64, a: Arrays, idx: I64, val: F64, now: F64, y: int, rival: int, out: F64, code: I64, row: int
) -> None:
    u, c, count = a.weights, a.counters[0], classes_then(code, row, y)
    before(out, code, row, out[SCORE, row], clamp(now[y] - now[rival]), _entropy(now, count, y), math.nan)
    if is_barred(out, code, row):
        return

    t = c[ROUNDS] + 1.0
    kept, pace = keeps(t, p), rate(t, p) * out[WEIGHT, row]
    if not has_size(out, code, row, squared(val)):
        pace = 0.0
    delta, largest = np.zeros(u.shape[0]), 0.0
    for k in range(count):
        share = math.exp(-_entropy(now, count, k))
        delta[k] = pace * (1.0 - share if k == y else -share)
        largest = max(largest, abs(delta[k]))
    factor, scale = _rescaled(c[SCALE], kept, largest)
    finite = True
    for k in range(count):
        finite &= _can_step(u[k], factor, scale, idx, val, delta[k])
    if not finite:
        code[SKIP, row] = OVERFLOW
        return
    for k in range(u.shape[0]):
        _step(u[k], factor, scale, idx, val, delta[k])
    c[SCALE], c[ROUNDS] = scale, t
    for k in range(count):
        now[k] = clamp(scale * dot(u[k], idx, val))
    m = clamp(now[y] - now[best_of(now, count, y)])
    after(out, code, row, largest, now[best_of(now, count, -1)], m, _entropy(now, count, y))
    code[UPDATED, row] = code[SKIP, row] == 0 and (largest != 0.0 or kept != 1.0)
