"""The one decorator of every kernel: compiled by numba, the same results without it.

No fastmath, because a replay must give the same bits; no numba cache beside the source, because
it misses edits in other files (`_cache` is our own); division by zero gives inf as in C, and a
kernel checks what it writes.
With NUMBA_DISABLE_JIT=1 a kernel is plain Python over numpy scalars: slow, and debuggable.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping
from functools import wraps
from types import FunctionType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar, cast

import numba
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from olstream.learners import _cache

F64: TypeAlias = NDArray[np.float64]
I64: TypeAlias = NDArray[np.int64]
U8: TypeAlias = NDArray[np.uint8]
Kernel: TypeAlias = Callable[..., Any]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """A function over arrays and numbers only; float64 throughout, no index past the end."""
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return _silent(function)
    compiled = numba.njit(nogil=True, error_model="numpy")(function)
    _cache.keep(compiled, function)
    return cast(Callable[P, R], compiled)


def _lent(typing: Any, arrays: Any) -> Any:
    build: Any = cgutils

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        def without_count(kind: Any, value: Any) -> Any:
            if isinstance(kind, types.Array):
                view = context.make_array(kind)(context, builder, value)
                view.meminfo = build.get_null_value(view.meminfo.type)
                view.parent = build.get_null_value(view.parent.type)
                return view._getvalue()
            parts = zip(kind, build.unpack_tuple(builder, value, len(kind)), strict=True)
            return context.make_tuple(builder, kind, [without_count(*part) for part in parts])

        return without_count(signature.args[0], given[0])

    return arrays(arrays), code


if TYPE_CHECKING or numba.config.DISABLE_JIT:  # type: ignore[attr-defined,unused-ignore]

    def lent(arrays: T) -> T:
        """The same arrays, in tuples of tuples; compiled, references to them and to parts of them are not counted.

        For a pass, whose caller keeps its arguments: counting took half of its time, each row being parts of arrays.
        """
        return arrays

else:
    lent = intrinsic(_lent)


def bound(template: Callable[P, R], **parts: Any) -> Callable[P, R]:
    """A kernel from a template: a plain function in which the given names of its module stand for `parts`.

    Not parts as arguments: a kernel that takes kernels cannot be kept in the cache.
    """
    key = (template, *sorted(parts.items(), key=lambda item: item[0]))
    if key not in _bound:
        _bound[key] = _made(template, parts)
    return cast(Callable[P, R], _bound[key])


_bound: dict[Hashable, Callable[..., Any]] = {}  # a kernel is compiled once, whoever asks for it


def _made(template: Callable[P, R], parts: Mapping[str, Any]) -> Callable[P, R]:
    modules = [getattr(part, "__module__", template.__module__) for part in parts.values()]
    foreign = [module for module in modules if not module.startswith("olstream.")]
    named = [f"{getattr(part, '__module__', '')}.{getattr(part, '__qualname__', part)}" for part in parts.values()]
    own = FunctionType(template.__code__, {**template.__globals__, **parts}, template.__name__)
    # the cache tells kernels apart by these two
    own.__qualname__ = f"{template.__name__}_{hashlib.sha256(' '.join(named).encode()).hexdigest()[:12]}"
    own.__module__ = foreign[0] if foreign else template.__module__
    return kernel(cast(Callable[P, R], own))


def _silent(function: Callable[P, R]) -> Callable[P, R]:
    # numpy scalars warn where compiled code is silent: overflow is expected and checked for
    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return call


@kernel
def no_part(*_: Any) -> Any:
    """What a template names where a learner puts in a kernel of its own."""
    raise NotImplementedError
