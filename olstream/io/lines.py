"""One line of a file of examples: its bytes, where it stood, and what it means where it is no message."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import Any, NamedTuple

from olstream.messages import Reason, Reject


class Line(NamedTuple):
    """`tree` is what a message would have been, or why there is none; None where the bytes are a message themselves."""

    data: bytes
    tree: Any | Reject | None
    offset: int  # of lines from 0; a CSV's header is not counted, and its rows are lines


def finite(tree: dict[str, Any], values: Iterable[object]) -> dict[str, Any] | Reject:
    """The tree, where each of these values of it is a number that a double holds, or no number."""
    if all(not isinstance(value, float) or isfinite(value) for value in values):
        return tree
    return Reject(Reason.NOT_FINITE, "a number outside the range of a double")


def is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
