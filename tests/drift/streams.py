"""Streams of errors, made with fixed seeds."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

F64: TypeAlias = NDArray[np.float64]  # not ours: the script of River's figures runs where olstream is not


def errors(rates: F64, seed: int) -> F64:
    """0 or 1, each with its own chance of 1."""
    return (np.random.default_rng(seed).random(rates.size) < rates).astype(np.float64)


def abrupt(seed: int, n: int = 1500, low: float = 0.15, high: float = 0.5) -> F64:
    return errors(np.where(np.arange(n) < n // 2, low, high), seed)


def gradual(seed: int, n: int = 1500) -> F64:
    return errors(np.interp(np.arange(n), [n / 3, 2 * n / 3], [0.1, 0.6]), seed)


def stationary(seed: int, n: int = 1500) -> F64:
    return errors(np.full(n, 0.3), seed)


def back_and_forth(seed: int, n: int = 1500) -> F64:
    return errors(np.where(np.arange(n) // 250 % 2 == 0, 0.1, 0.7), seed)


def alternating(seed: int, n: int = 500) -> F64:
    return np.asarray((np.arange(n) + seed) % 2, np.float64)


def constant(seed: int, n: int = 400) -> F64:
    return np.full(n, float(seed % 2))


def flawless_then_not(seed: int, n: int = 600) -> F64:
    return errors(np.where(np.arange(n) < n // 2, 0.0, 0.3), seed)


def real_valued(seed: int, n: int = 1200) -> F64:
    """Losses: skewed, with a jump up and one down."""
    level = np.where(np.arange(n) < n // 3, 0.2, np.where(np.arange(n) < 2 * n // 3, 0.6, 0.1))
    return np.asarray(np.random.default_rng(seed).beta(1.0 + 8.0 * level, 9.0 - 8.0 * level))


BINARY = {
    stream.__name__: stream
    for stream in (abrupt, gradual, stationary, back_and_forth, alternating, constant, flawless_then_not)
}
EVERY = BINARY | {"real_valued": real_valued}
