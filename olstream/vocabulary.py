"""Names of features -> columns, bounded, and grown by learning only.

Column 0 is the bias, column 1 stands for whatever has not been learnt yet (its weight is 0 for
ever), named columns start at 2 in the order in which they were first learnt. Three namespaces
that cannot meet: numeric names; categories, a pair of name and text; overflow buckets, which
take the hashes of names that came after the first `names_max`.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Mapping
from dataclasses import asdict
from hashlib import sha256
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from olstream import intact
from olstream.learners._state import UNSEEN
from olstream.parse import nfc
from olstream.words import Words

FIRST_NAMED: Final = 2
PART_MAX_BYTES: Final = 256  # of a name or a category text; longer ones are kept by hash

Form: TypeAlias = Literal["object"] | tuple[Literal["array"], int] | None
# What a name is looked up by: itself, or the digest of one that is too long. No text equals a digest.
Part: TypeAlias = str | bytes

OVERFLOW_SHOWN, HASH_SHOWN = "\\overflow:", "\\hash:"
_BUCKET = re.compile(r"\\overflow:(0|[1-9][0-9]{0,9})")
_PART = r"(\\hash:[0-9a-f]{64}|(?:[^\\=]|\\[\\=])%s)"
_EXPORTED = re.compile(_PART % "+" + "(?:=" + _PART % "*" + ")?", re.DOTALL)
NUMBER, CATEGORY, OVERFLOW = 0, 1, 2
NAME_HASHED, TEXT_HASHED = 4, 8
_HASHED: Final = {NUMBER: (0, NAME_HASHED), CATEGORY: (0, 4, 8, 12), OVERFLOW: (0,)}
_KINDS: Final = [kind | hashed for kind, several in _HASHED.items() for hashed in several]
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Vocabulary:
    """The names that a learner knows.

    `category`: names whose numbers are codes. `text`: names whose texts are told into words, each of them a
    category of that name. `bias`: whether rows carry one.
    """

    def __init__(
        self,
        names_max: int,
        overflow_buckets: int,
        category: Collection[str] = (),
        bias: bool = True,
        text: Mapping[str, Words] = _NOTHING,
    ) -> None:
        self.names_max = names_max
        self.overflow_buckets = overflow_buckets
        self.category = frozenset(map(nfc, category))
        self.text = {nfc(name): words for name, words in text.items()}
        self.bias = bias
        self.form: Form = None  # set by whoever admits rows
        self.n_names = 0  # kept exactly; overflow buckets are not counted
        self.overflowed = 0  # features of learnt rows that went to a bucket
        self.numbers: dict[Part, int] = {}
        self.categories: dict[Part, dict[Part, int]] = {}
        self.buckets: dict[int, int] = {}
        self.remembered: dict[Any, Any] = {}  # kept by `vectorize` for forms of rows it meets again and again
        # The same by column, as one text that only grows: a copy for a checkpoint is one call.
        self._kinds = bytearray()
        self._parts = bytearray()
        self._ends = array("q")  # two a column: where its name and its text end in `_parts`

    @property
    def n_columns(self) -> int:
        return FIRST_NAMED + len(self._kinds)

    def find(self, name: str, text: str | None) -> tuple[int, int]:
        """Column and overflow bucket (-1: none) of a numeric name (`text` None) or a category. Changes nothing."""
        column = self._lookup(_part(name), None if text is None else _part(text))
        if column is not None:
            return column, -1
        if self.n_names < self.names_max or not self.overflow_buckets:
            return UNSEEN, -1
        bucket = self._bucket(name, text)
        return self.buckets.get(bucket, UNSEEN), bucket

    def learn(self, name: str, text: str | None) -> tuple[int, int]:
        """The same for a row that is learnt from: what is new gets a column."""
        column, bucket = self.find(name, text)
        self.overflowed += bucket >= 0
        if column != UNSEEN:
            return column, bucket
        if bucket >= 0:
            column = self._open(bucket)
        elif self.n_names < self.names_max:
            column = self._keep(_part(name), None if text is None else _part(text))
        return column, bucket

    def exported(self) -> list[str]:
        """The names of columns 2 and up as people see them; a single backslash begins what is no name."""
        names = []
        for kind, name, text in self._entries():
            shown = f"{OVERFLOW_SHOWN}{name!s}" if kind & 3 == OVERFLOW else _shown(name)
            names.append(f"{shown}={_shown(text)}" if kind & 3 == CATEGORY else shown)
        return names

    def column_of(self, exported: object) -> int:
        """The column of a name as people see it, made where there is none; ValueError where it is none."""
        if not isinstance(exported, str):
            raise ValueError("a name is text")
        if match := _BUCKET.fullmatch(exported):
            bucket = int(match[1])
            if bucket >= self.overflow_buckets:
                raise ValueError(f"there are {self.overflow_buckets} overflow buckets")
            return self.buckets[bucket] if bucket in self.buckets else self._open(bucket)
        match = _EXPORTED.fullmatch(exported)
        if match is None:
            raise ValueError("a name is written `name` or `name=value`, with \\ and = inside them as \\\\ and \\=")
        parts = _hidden(nfc(match[1])), None if match[2] is None else _hidden(match[2])
        column = self._lookup(*parts)
        if column is None and self.n_names >= self.names_max:
            raise ValueError(f"there are more names than names_max ({self.names_max})")
        return self._keep(*parts) if column is None else column

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """All of it, as JSON and arrays of its own."""
        meta = {
            "names_max": self.names_max,
            "overflow_buckets": self.overflow_buckets,
            "category": sorted(self.category),
            "text": {name: asdict(words) for name, words in sorted(self.text.items())},
            "bias": self.bias,
            "form": list(self.form) if isinstance(self.form, tuple) else self.form,
            "overflowed": self.overflowed,
        }
        arrays: dict[str, NDArray[Any]] = {
            "kinds": np.array(self._kinds, np.uint8),
            "parts": np.array(self._parts, np.uint8),
            "ends": np.array(self._ends, np.int64),
        }
        return meta, arrays

    @classmethod
    def restore(cls, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """What `state` gave, made anew; ValueError where it cannot have been."""
        told = {name: Words(**words) for name, words in meta.get("text", _NOTHING).items()}
        self = cls(meta["names_max"], meta["overflow_buckets"], meta["category"], meta["bias"], told)
        self.form = _form(meta["form"])
        self.overflowed = intact.whole("overflowed", meta["overflowed"])
        kinds = intact.array(arrays, "kinds", np.uint8, (None,))
        parts = intact.array(arrays, "parts", np.uint8, (None,))
        ends = intact.array(arrays, "ends", np.int64, (2 * kinds.size,))
        intact.ends("ends", ends, parts.size)
        if not np.isin(kinds, _KINDS).all():
            raise ValueError("kinds holds one that is not known")
        self._kinds, self._parts = bytearray(kinds.tobytes()), bytearray(parts.tobytes())
        self._ends = array("q", ends.tobytes())
        for column, (kind, name, text) in enumerate(self._entries(), start=FIRST_NAMED):
            if kind & 3 == OVERFLOW:
                bucket = int(name)
                intact.within("an overflow bucket", bucket, 0, self.overflow_buckets)
                self.buckets[bucket] = column
            elif kind & 3 == CATEGORY:
                self.categories.setdefault(name, {})[text] = column
            else:
                self.numbers[name] = column
        self.n_names = len(self.numbers) + sum(map(len, self.categories.values()))
        if self.n_names + len(self.buckets) != len(self._kinds):
            raise ValueError("a name stands there twice")
        return self

    def refuse_other(self, fresh: Self) -> None:
        """ValueError where the rules of this one are not those of another that has no names yet."""
        for rule in ("names_max", "overflow_buckets", "category", "bias", "text"):
            if getattr(self, rule) != getattr(fresh, rule):
                raise ValueError(f"{rule} is {getattr(self, rule)!r}, not {getattr(fresh, rule)!r}")
        if self.n_names > self.names_max:
            raise ValueError(f"there are {self.n_names} names, more than names_max ({self.names_max})")

    def _lookup(self, name: Part, text: Part | None) -> int | None:
        if text is None:
            return self.numbers.get(name)
        texts = self.categories.get(name)
        return None if texts is None else texts.get(text)

    def _bucket(self, name: str, text: str | None) -> int:
        """The same in every process, unlike `hash`. The length keeps (ab, c) from meeting (a, bc)."""
        encoded = name.encode()
        key = b"n" + encoded if text is None else b"c%d:" % len(encoded) + encoded + text.encode()
        return int.from_bytes(sha256(key).digest()[:8]) % self.overflow_buckets

    def _open(self, bucket: int) -> int:
        column = self.buckets[bucket] = self._append(OVERFLOW, str(bucket), "")
        return column

    def _keep(self, name: Part, text: Part | None) -> int:
        self.n_names += 1
        if text is None:
            column = self.numbers[name] = self._append(NUMBER, name, "")
        else:
            column = self.categories.setdefault(name, {})[text] = self._append(CATEGORY, name, text)
        return column

    def _append(self, kind: int, name: Part, text: Part) -> int:
        for part, flag in ((name, NAME_HASHED), (text, TEXT_HASHED)):
            kind |= flag if isinstance(part, bytes) else 0
            self._parts += part if isinstance(part, bytes) else part.encode()
            self._ends.append(len(self._parts))
        self._kinds.append(kind)
        return self.n_columns - 1

    def _entries(self) -> list[tuple[int, Part, Part]]:
        """Kind, name and text of each named column."""
        parts = [bytes(self._parts[start:end]) for start, end in pairwise([0, *self._ends])]
        return [
            (kind, name if kind & NAME_HASHED else name.decode(), text if kind & TEXT_HASHED else text.decode())
            for kind, name, text in zip(self._kinds, parts[::2], parts[1::2], strict=True)
        ]


def _form(saved: object) -> Form:
    if isinstance(saved, (list, tuple)) and len(saved) == 2 and saved[0] == "array":
        return "array", intact.whole("form", saved[1])
    if saved is None or saved == "object":
        return saved
    raise ValueError("form is not known")


def number_text(value: float) -> str:
    """The category that a code is: 1.0 and "1" are the same one."""
    return str(int(value)) if value.is_integer() and abs(value) < 2**63 else repr(value)


def escaped(part: str) -> str:
    """A part of an exported name: `=` and the backslash itself behind a backslash."""
    return part.replace("\\", "\\\\").replace("=", "\\=")


def _shown(part: Part) -> str:
    return HASH_SHOWN + part.hex() if isinstance(part, bytes) else escaped(part)


def _hidden(shown: str) -> Part:
    """The part that is shown so."""
    if shown.startswith(HASH_SHOWN):
        return bytes.fromhex(shown.removeprefix(HASH_SHOWN))
    return _part(re.sub(r"\\(.)", r"\1", shown, flags=re.DOTALL))


def _part(text: str) -> Part:
    # four bytes is the most that one character takes
    if 4 * len(text) <= PART_MAX_BYTES:
        return text
    encoded = text.encode()
    return text if len(encoded) <= PART_MAX_BYTES else sha256(encoded).digest()
