"""Lines of libsvm, `label index:value ...`, read into the trees that messages would have been."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from olstream.io.lines import Line, finite, is_text
from olstream.messages import Reason, Reject
from olstream.parse import number

_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def sparse_rows(lines: Iterator[bytes]) -> Iterator[Line]:
    """Each line that says something; blank ones and comments are passed over, and counted by `offset`."""
    for offset, data in enumerate(lines):
        if data.partition(b"#")[0].strip():
            yield Line(data, _row(data), offset)


def _row(data: bytes) -> dict[str, Any] | Reject:
    """What stands after # is a comment."""
    if not is_text(data):
        return Reject(Reason.BAD_ENCODING, "not UTF-8")
    words = data.decode().partition("#")[0].split()
    has_label = ":" not in words[0]
    features: dict[str, float] = {}
    for word in words[has_label:]:
        index, _, literal = word.partition(":")
        value = _value(literal)
        if value is None or not index.isdecimal():
            return Reject(Reason.BAD_FEATURES, f"word {words.index(word) + 1} is not index:value")
        if index in features:
            return Reject(Reason.DUPLICATE_KEY, "the same index twice in a line")
        features[index] = value
    tree: dict[str, Any] = {"features": features}
    if has_label:
        label = number(words[0].removeprefix("+"))
        tree["label"] = words[0] if label is None else label
    return finite(tree, [*features.values(), tree.get("label")])


def _value(literal: str) -> float | None:
    """Numbers as C writes them; nan and inf are numbers too, to be refused by their own reason."""
    if _NUMBER.fullmatch(literal) or literal.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        return float(literal)
    return None
