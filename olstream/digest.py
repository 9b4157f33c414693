"""SHA-256 of what a learner is, whatever order its features came in.

It is worked out while the loop goes on, so the work that grows with the features is done by kernels,
which hold no lock that the loop would have to wait for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from olstream.learners._jit import I64, U8, kernel
from olstream.learners._state import BIAS, UNSEEN, of_columns
from olstream.vocabulary import CATEGORY, FIRST_NAMED, HASH_SHOWN, NAME_HASHED, OVERFLOW, OVERFLOW_SHOWN, TEXT_HASHED
from olstream.waiting_state import PREFIX

IDENTITY: Final = ("algorithm", "task", "params", "bias", "scale", "multiclass")

# What is the slot's, or of two learners, and not of the learner alone
HIDDEN: Final = ("versus.", f"{PREFIX}places", f"{PREFIX}settled")

_NOT_OF_FEATURES: Final = ("tally.", "drift.", "versus.", PREFIX)
_OVERFLOW_SHOWN, _HASH_SHOWN, _HEX = (
    np.frombuffer(text.encode(), np.uint8) for text in (OVERFLOW_SHOWN, HASH_SHOWN, "0123456789abcdef")
)
_BACKSLASH, _EQUALS = ord("\\"), ord("=")


def digest_of(meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """Of a copy that `Model.state` made."""
    shown, ends = exported(*(arrays[f"vocabulary.{key}"] for key in ("kinds", "parts", "ends")))
    order = in_order(shown, ends)
    identity = {key: meta[key] for key in (*IDENTITY, "classes")}
    identity |= {key: meta["vocabulary"][key] for key in ("form", "overflowed")}
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True, separators=(",", ":")).encode())
    digest.update(np.diff(ends, prepend=0)[order].data)
    digest.update(_gathered(shown, ends, order).data)
    columns = np.concatenate([[BIAS, UNSEEN], FIRST_NAMED + order])
    without = {key: array for key, array in arrays.items() if key.startswith(_NOT_OF_FEATURES)}
    by_column = {key: arrays[key] for key in arrays.keys() - without.keys() if not key.startswith("vocabulary.")}
    ordered = of_columns(by_column, columns) | {
        key: array for key, array in without.items() if not key.startswith(HIDDEN)
    }
    for key, array in sorted(ordered.items()):
        digest.update(f"{key} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


@kernel
def exported(kinds: U8, parts: U8, ends: I64) -> tuple[U8, I64]:
    """What `Vocabulary.exported` gives, as one run of bytes, and where each name ends in it."""
    # an escape doubles a byte; 24 is more than the prefixes of both parts and the = between them
    shown = np.empty(2 * parts.size + 24 * kinds.size, np.uint8)
    shown_ends = np.empty(kinds.size, np.int64)
    at = 0
    start = 0
    for i in range(kinds.size):
        middle, end = ends[2 * i], ends[2 * i + 1]
        if kinds[i] & 3 == OVERFLOW:
            at = _copied(_OVERFLOW_SHOWN, shown, at)
        at = _part(parts[start:middle], kinds[i] & NAME_HASHED != 0, shown, at)
        if kinds[i] & 3 == CATEGORY:
            shown[at] = _EQUALS
            at = _part(parts[middle:end], kinds[i] & TEXT_HASHED != 0, shown, at + 1)
        shown_ends[i] = at
        start = end
    return shown[:at], shown_ends


@kernel
def _copied(text: U8, out: U8, at: int) -> int:
    out[at : at + text.size] = text
    return at + text.size


@kernel
def _part(part: U8, is_hashed: bool, out: U8, at: int) -> int:
    """A name or a text as people see it: escaped, or a hash in hexadecimal digits."""
    if is_hashed:
        at = _copied(_HASH_SHOWN, out, at)
    for byte in part:
        if is_hashed:
            out[at] = _HEX[byte >> 4]
            out[at + 1] = _HEX[byte & 15]
            at += 2
        else:
            if byte in (_BACKSLASH, _EQUALS):
                out[at] = _BACKSLASH
                at += 1
            out[at] = byte
            at += 1
    return at


@kernel
def in_order(shown: U8, ends: I64) -> I64:
    """The names sorted by their bytes, which is by code points: a merge sort of their positions."""
    order = np.arange(ends.size)
    merged = np.empty_like(order)
    width = 1
    while width < order.size:
        for start in range(0, order.size, 2 * width):
            middle, end = min(start + width, order.size), min(start + 2 * width, order.size)
            left, right = start, middle
            for k in range(start, end):
                if left < middle and (right == end or not _is_before(shown, ends, order[right], order[left])):
                    merged[k] = order[left]
                    left += 1
                else:
                    merged[k] = order[right]
                    right += 1
        order, merged = merged, order
        width *= 2
    return order


@kernel
def _is_before(shown: U8, ends: I64, i: int, j: int) -> bool:
    """Whether name i comes before name j."""
    a = 0 if i == 0 else ends[i - 1]
    b = 0 if j == 0 else ends[j - 1]
    while a < ends[i] and b < ends[j]:
        if shown[a] != shown[b]:
            return bool(shown[a] < shown[b])
        a += 1
        b += 1
    return bool(ends[i] - a < ends[j] - b)


@kernel
def _gathered(shown: U8, ends: I64, order: I64) -> U8:
    """The names in that order."""
    out = np.empty_like(shown)
    at = 0
    for i in order:
        at = _copied(shown[0 if i == 0 else ends[i - 1] : ends[i]], out, at)
    return out
