"""The one decorator of every kernel: compiled by numba, the same results without it.

No fastmath, because a replay must give the same bits; no numba cache, because it misses
edits in other files; division by zero gives inf as in C, and a kernel checks what it writes.
With NUMBA_DISABLE_JIT=1 a kernel is plain Python over numpy scalars: slow, and debuggable.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeAlias, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

F64: TypeAlias = NDArray[np.float64]
I64: TypeAlias = NDArray[np.int64]
U8: TypeAlias = NDArray[np.uint8]

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """A function over arrays and numbers only; float64 throughout, no index past the end."""
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return _silent(function)
    compiled: Callable[P, R] = numba.njit(nogil=True, error_model="numpy")(function)
    return compiled


def _silent(function: Callable[P, R]) -> Callable[P, R]:
    # numpy scalars warn where compiled code is silent: overflow is expected and checked for
    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return call
