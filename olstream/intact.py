"""Whether a saved state holds together: what arrays there are, of which type and shape, and where numbers point.

Checksums tell what is damaged, not what somebody made up. Kernels look past the end of no array because nothing
that comes this far points there, so a state is measured before any of it is used, or memory is taken for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

Arrays: TypeAlias = Mapping[str, NDArray[Any]]
Shape: TypeAlias = Sequence[int | None]  # None: any length

_SIZE_MAX: Final = 2**40  # of one side: more would not fit in any memory


def array(arrays: Arrays, name: str, kind: DTypeLike, shape: Shape) -> NDArray[Any]:
    """The array of that name; ValueError where it is missing, of another type or shape, or not all finite."""
    found = arrays.get(name)
    if found is None:
        raise ValueError(f"{name} is missing")
    if found.dtype != np.dtype(kind):
        raise ValueError(f"{name} holds {found.dtype}, not {np.dtype(kind)}")
    fits = len(found.shape) == len(shape) and all(
        have == want if want is not None else have < _SIZE_MAX for have, want in zip(found.shape, shape, strict=True)
    )
    if not fits:
        wanted = ", ".join("any" if want is None else str(want) for want in shape)
        raise ValueError(f"{name} has the shape {found.shape}, not ({wanted})")
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise ValueError(f"{name} holds a number that is not finite")
    return found


def within(name: str, numbers: NDArray[Any] | int, least: int, end: int) -> None:
    """ValueError unless least <= each number < end."""
    if np.any(np.less(numbers, least)) or np.any(np.greater_equal(numbers, end)):
        raise ValueError(f"{name} points outside of {least} to {end - 1}")


def ends(name: str, of: NDArray[Any], total: int) -> None:
    """ValueError unless these are the ends of parts, one after the other, of a whole of that length."""
    if np.any(np.diff(of, prepend=0) < 0) or (int(of[-1]) if of.size else 0) != total:
        raise ValueError(f"{name} does not divide {total} entries")


def whole(name: str, number: object, least: int = 0, most: int = 2**62) -> int:
    """The number, where it is a whole one in these bounds."""
    if type(number) is not int or not least <= number <= most:
        raise ValueError(f"{name} is no whole number from {least} to {most}")
    return number
