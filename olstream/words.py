"""Free text -> words, or n-grams of words or of characters, each with its value: `features.text`.

    words   the runs of word characters: letters, digits, the underscore (Python's `\\w`), and the marks
            that follow them. `don't` is two words, an emoji is none.
    chars   characters, with each run of white space as one space, and none at either end
    n       [from, to]: every run of that many of them; several words are joined by a space
    value   presence: 1 for each that occurs; count: how often it does
    norm    l2: the values of this one text divided by the root of the sum of their squares

The text is compared without case, after Unicode NFC: `É`, `é` and `e` with a combining accent are one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from math import sqrt
from typing import Final, Literal
from unicodedata import category

from olstream.parse import nfc

UNITS_MAX: Final = 65_536  # words or characters of one text that are looked at: n-grams of them stay within memory
_WITH_MARKS: Final = (range(0x20000), range(0xE0000, 0xE0200))  # code points: there are no marks anywhere else
_ASCII_WORD: Final = re.compile(r"\w+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Words:
    """How the text at one path is told into words. `n`: shortest and longest n-gram."""

    tokens: Literal["words", "chars"] = "words"
    n: Sequence[int] = (1, 1)
    value: Literal["presence", "count"] = "presence"
    norm: Literal["l2", "none"] = "l2"

    def values(self, text: str) -> dict[str, float]:
        """What the text says: {n-gram: value}, in the order of first appearance, the shorter ones before."""
        found = self._grams(text)
        counted = Counter(found) if self.value == "count" else dict.fromkeys(found, 1)
        if self.norm == "none":
            return {gram: float(count) for gram, count in counted.items()}
        length = sqrt(sum(count * count for count in counted.values()))  # of whole numbers: exact in any order
        return {gram: count / length for gram, count in counted.items()}

    def _grams(self, text: str) -> Iterable[str]:
        units, joint = (_words(text), " ") if self.tokens == "words" else (_characters(text), "")
        shortest, longest = self.n
        return chain.from_iterable(_runs(units, n, joint) for n in range(shortest, longest + 1))


def _runs(units: list[str], n: int, joint: str) -> Iterable[str]:
    """Every run of n of them."""
    return units if n == 1 else map(joint.join, zip(*(units[i:] for i in range(n)), strict=False))


def _words(text: str) -> list[str]:
    found = _ASCII_WORD.findall(text.lower()) if text.isascii() else _word().findall(_folded(text))
    return found[:UNITS_MAX]


def _characters(text: str) -> list[str]:
    return list(" ".join(_folded(text).split())[:UNITS_MAX])


def _folded(text: str) -> str:
    """Folding can leave what NFC would compose."""
    return nfc(nfc(text).casefold())


@cache
def _word() -> re.Pattern[str]:
    """A word of any script. `\\w` knows no marks, which vowels of many scripts are."""
    marks = "".join(c for c in map(chr, chain(*_WITH_MARKS)) if category(c).startswith("M"))
    return re.compile(rf"\w[\w{marks}]*+")
