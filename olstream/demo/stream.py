"""What the demo streams: messages in order, and what the learners must know about them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Stream:
    """`classes` are [negative, positive]; `category` names the features whose numbers are codes."""

    title: str
    explained: list[str]
    classes: tuple[str, str]
    category: list[str]
    total: int
    messages: Iterator[tuple[bytes, bytes]]  # key, value
