"""Files of examples, a line at a time: NDJSON, CSV and libsvm, gzip'd or not, or standard input.

A line of NDJSON is a message as Kafka would carry it, byte for byte. The others are read here
into the tree that such a message would have been.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, cast

from olstream.errors import ConfigError
from olstream.messages import Reason, Reject
from olstream.parse import nfc, number

STDIN: Final = "-"
FORMATS: Final = ("ndjson", "csv", "libsvm")
_ENDINGS: Final = {
    ".ndjson": "ndjson", ".jsonl": "ndjson", ".json": "ndjson",
    ".csv": "csv", ".tsv": "csv",
    ".libsvm": "libsvm", ".svm": "libsvm", ".svmlight": "libsvm",
}  # fmt: skip
_GZIP: Final = b"\x1f\x8b"
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_SEPARATORS: Final = (",", ";", "\t")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


class Line(NamedTuple):
    """One example of a file: its bytes, and what they mean where they are no message: a tree, or why there is none."""

    data: bytes
    tree: Any | Reject | None


@dataclass(frozen=True, slots=True)
class Input:
    """An open file. `position` counts bytes of the file itself, so that a bar can show it against `size_bytes`."""

    name: str
    format: str
    lines: Iterator[Line]
    size_bytes: int | None
    position: Callable[[], int]


@contextmanager
def reading(path: str, format_: str | None = None) -> Iterator[Input]:
    """Open a file, or standard input for `-`; the format by its ending where none is given."""
    format_ = format_ or _format(path)
    with _opened(path) as raw:
        size = os.fstat(raw.fileno()).st_size if stat.S_ISREG(os.fstat(raw.fileno()).st_mode) else None
        data = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if raw.peek(2)[:2] == _GZIP else raw
        lines = _READERS[format_](_whole_lines(data, path))
        yield Input("stdin" if path == STDIN else Path(path).name, format_, lines, size, raw.tell)


def _opened(path: str) -> io.BufferedReader:
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False) if path == STDIN else open(path, "rb")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error


def _format(path: str) -> str:
    if path == STDIN:
        return "ndjson"
    ending = Path(path.removesuffix(".gz")).suffix.lower()
    if ending not in _ENDINGS:
        raise ConfigError(f"cannot tell the format of {path} by its ending: say --format {', '.join(FORMATS)}")
    return _ENDINGS[ending]


def _whole_lines(file: BinaryIO, path: str) -> Iterator[bytes]:
    """Pieces between the bytes 0x0A; one at the end of the file ends the last piece and begins none."""
    try:
        for line in file:
            yield line.removesuffix(b"\n")
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigError(f"cannot read {path} to its end: {error}") from error


def _ndjson(lines: Iterator[bytes]) -> Iterator[Line]:
    return (Line(data, None) for data in lines)


def _csv(lines: Iterator[bytes]) -> Iterator[Line]:
    """The header names the fields. A row ends where its quotes are closed, so it may span lines."""
    taken: list[bytes] = []

    def texts() -> Iterator[str]:
        for line in lines:
            taken.append(line)
            yield line.decode(errors="surrogateescape") + "\n"

    csv.field_size_limit(sys.maxsize)  # `max_message_bytes` is the limit
    feed = texts()
    first = next(feed, "").encode(errors="surrogateescape").removeprefix(_BYTE_ORDER_MARK).decode(errors="replace")
    separator = max(_SEPARATORS, key=first.count)
    names = _names(next(csv.reader(chain([first], feed), delimiter=separator), []))
    taken.clear()
    rows = csv.reader(feed, delimiter=separator)
    while True:
        problem: Reject | None = None
        cells: list[str] = []
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            problem = Reject(Reason.BAD_JSON, f"no row of CSV: {error}")
        data = b"\n".join(taken)
        taken.clear()
        yield Line(data, problem or _row(data, names, cells))


def _names(header: list[str]) -> list[str]:
    names = [nfc(name) for name in header]
    for i, name in enumerate(names):
        if not name:
            raise ConfigError(f"column {i + 1} of the CSV header has no name: give it one")
        if name in names[:i]:
            raise ConfigError(f"the CSV header has {name!r} twice: rename one of the columns")
    return names


def _row(data: bytes, names: list[str], cells: list[str]) -> dict[str, Any] | Reject:
    if not cells:
        return Reject(Reason.EMPTY, "a line without cells")
    if len(cells) != len(names):
        return Reject(Reason.BAD_FEATURES, f"{len(cells)} cells, the header has {len(names)}")
    if not _is_text(data):
        return Reject(Reason.BAD_ENCODING, "not UTF-8")
    tree = {name: _cell(cell) for name, cell in zip(names, cells, strict=True)}
    return _finite(tree, tree.values())


def _cell(cell: str) -> str | int | float | None:
    value = number(cell)
    return (cell or None) if value is None else value


def _libsvm(lines: Iterator[bytes]) -> Iterator[Line]:
    return (Line(data, _sparse(data)) for data in lines)


def _sparse(data: bytes) -> dict[str, Any] | Reject:
    """`label index:value ...`; what stands after # is a comment."""
    if not _is_text(data):
        return Reject(Reason.BAD_ENCODING, "not UTF-8")
    words = data.decode().partition("#")[0].split()
    if not words:
        return Reject(Reason.EMPTY, "a line without label and features")
    has_label = ":" not in words[0]
    features: dict[str, float] = {}
    for word in words[has_label:]:
        index, _, literal = word.partition(":")
        value = _sparse_value(literal)
        if value is None or not index.isdecimal():
            return Reject(Reason.BAD_FEATURES, f"word {words.index(word) + 1} is not index:value")
        if index in features:
            return Reject(Reason.DUPLICATE_KEY, "the same index twice in a line")
        features[index] = value
    tree: dict[str, Any] = {"features": features}
    if has_label:
        label = number(words[0].removeprefix("+"))
        tree["label"] = words[0] if label is None else label
    return _finite(tree, [*features.values(), tree.get("label")])


def _sparse_value(literal: str) -> float | None:
    """Numbers as C writes them; nan and inf are numbers too, to be refused by their own reason."""
    if _NUMBER.fullmatch(literal) or literal.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        return float(literal)
    return None


def _finite(tree: dict[str, Any], values: Iterable[object]) -> dict[str, Any] | Reject:
    if all(not isinstance(value, float) or isfinite(value) for value in values):
        return tree
    return Reject(Reason.NOT_FINITE, "a number outside the range of a double")


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


_READERS: Final[dict[str, Callable[[Iterator[bytes]], Iterator[Line]]]] = {
    "ndjson": _ndjson,
    "csv": _csv,
    "libsvm": _libsvm,
}
