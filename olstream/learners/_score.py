"""Scores and sizes of sparse rows, right over the whole range of doubles."""

from __future__ import annotations

from typing import Final

from olstream.learners._jit import F64, I64, kernel
from olstream.learners._state import Arrays

LARGEST: Final = 1.7976931348623157e308
NORMAL: Final = 2.2250738585072014e-308  # below it a double loses digits: treated as zero


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
def squared(val: F64) -> float:
    """||x||^2."""
    n2: float = 0.0
    for k in range(val.size):
        n2 += val[k] * val[k]
    return n2


@kernel
def plain(a: Arrays, k: int, idx: I64, val: F64) -> float:
    """The score of row k: w_k·x."""
    return float(dot(a.weights[k], idx, val))


@kernel
def can_add(w: F64, idx: I64, val: F64, alpha: float) -> bool:
    """Whether w + alpha x is finite in every part."""
    finite: bool = abs(alpha) <= LARGEST
    for k in range(idx.size):
        finite &= abs(w[idx[k]] + alpha * val[k]) <= LARGEST
    return finite


@kernel
def add(w: F64, idx: I64, val: F64, alpha: float) -> None:
    """w + alpha x, term for term what `can_add` looked at."""
    for k in range(idx.size):
        w[idx[k]] += alpha * val[k]


@kernel
def best_of(scores: F64, count: int, but: int) -> int:
    """The class with the highest of the first scores, the first seen of equals; -1 for none."""
    best = -1
    for k in range(count):
        if k != but and (best < 0 or scores[k] > scores[best]):
            best = k
    return best
