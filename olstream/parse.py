"""Bytes -> one JSON value by RFC 8259, or why they are none. The exact, slow reader.

What it gives: dict (names in NFC), list, str, bool, None, float, and int where an integer
literal lies in the range of 64 bits, signed or not; any other number is a double.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NoReturn
from unicodedata import is_normalized, normalize

import numpy as np

from olstream.messages import Reason, Reject

DEPTH_MAX: Final = 32
INTEGER_MIN: Final = -(2**63)
INTEGER_MAX: Final = 2**64 - 1

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_WHITE_SPACE = b" \t\n\r"
# Possessive, with an optional last quote: one pass over any bytes, however hostile.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)((?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_NESTING = np.zeros(256, np.int64)
_NESTING[[ord("["), ord("{")]] = 1
_NESTING[[ord("]"), ord("}")]] = -1


class _NotJsonError(Exception):
    """A word that Python's reader would take, but that is no JSON."""


class Parser:
    """Reads one value at a time. Syntax is judged before meaning, so a torn message is `bad_json` whatever it holds."""

    def __init__(self, size_max: int) -> None:
        self.size_max = size_max
        self._problem: Reject | None = None
        self._decoder = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_int=self._integer,
            parse_float=self._double,
            parse_constant=_refuse_constant,
        )

    def parse(self, data: bytes) -> Any:
        """The value, or a Reject."""
        if len(data) > self.size_max:
            return Reject(Reason.TOO_LARGE, f"{len(data)} bytes, the limit is {self.size_max}")
        if data[:1] == b"\0":
            return Reject(Reason.BAD_ENCODING, "first byte is 0, as in a schema-registry frame; plain JSON is wanted")
        body = data.removeprefix(_BYTE_ORDER_MARK)
        if not body.strip(_WHITE_SPACE):
            return Reject(Reason.EMPTY, "nothing but white space" if body else "no bytes")
        try:
            text = body.decode()
        except UnicodeDecodeError as error:
            return Reject(Reason.BAD_ENCODING, f"not UTF-8 at byte {error.start + len(data) - len(body)}")
        if is_deeper_than(body, DEPTH_MAX):
            return Reject(Reason.TOO_DEEP, f"nested deeper than {DEPTH_MAX} levels")
        return self._value(text, body)

    def _value(self, text: str, body: bytes) -> Any:
        self._problem = None
        try:
            value = self._decoder.decode(text)
        except json.JSONDecodeError as error:
            what = error.msg.rstrip(": ").removesuffix(" at")
            return Reject(Reason.BAD_JSON, f"{what} at character {error.pos}")
        except _NotJsonError as error:
            return Reject(Reason.BAD_JSON, f"{error} is no JSON")
        if _SURROGATE.search(body) and not _is_writable(value):
            return Reject(Reason.BAD_ENCODING, "a string holds half of a surrogate pair")
        return self._problem or value

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = {name if name.isascii() else nfc(name): value for name, value in pairs}
        if len(members) < len(pairs):
            self._note(Reason.DUPLICATE_KEY, "the same name twice in one object")
        return members

    def _integer(self, literal: str) -> int | float:
        value = integer(literal)
        return self._double(literal) if value is None else value

    def _double(self, literal: str) -> float:
        value = float(literal)
        if value in (float("inf"), float("-inf")):
            self._note(Reason.NOT_FINITE, "a number outside the range of a double")
        return value

    def _note(self, reason: Reason, detail: str) -> None:
        self._problem = self._problem or Reject(reason, detail)


def integer(literal: str) -> int | None:
    """The value of an integer literal, None where 64 bits are too few for it."""
    if len(literal) > 20:  # the longest there is; int() of many digits is slow
        return None
    value = int(literal)
    return value if INTEGER_MIN <= value <= INTEGER_MAX else None


def number(text: str) -> int | float | None:
    """The JSON number that a text is, white space aside: infinite beyond the doubles, None for other text."""
    literal = text.strip(" \t\r\n")
    match = _NUMBER.fullmatch(literal)
    if match is None:
        return None
    whole = integer(literal) if not match.group(1) else None
    return float(literal) if whole is None else whole


def nfc(name: str) -> str:
    """The form in which names are compared."""
    return name if is_normalized("NFC", name) else normalize("NFC", name)


def is_deeper_than(body: bytes, depth: int) -> bool:
    """Whether brackets outside strings nest deeper; looked at before reading, which would recurse."""
    if body.count(b"[") + body.count(b"{") <= depth:
        return False
    brackets = np.frombuffer(_STRING.sub(b"", body), np.uint8)
    return bool(np.cumsum(_NESTING[brackets]).max(initial=0) > depth)


def _refuse_constant(word: str) -> NoReturn:
    raise _NotJsonError(word)


def _is_writable(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
