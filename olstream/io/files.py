"""Files of examples, a line at a time: NDJSON, CSV and libsvm, gzip'd or not, or standard input.

A line of NDJSON is a message as Kafka would carry it, byte for byte. The others are read into the
tree that such a message would have been.
"""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, cast

from olstream.errors import ConfigError
from olstream.io.csv_rows import csv_rows
from olstream.io.lines import Line
from olstream.io.sparse_rows import sparse_rows

STDIN: Final = "-"
FORMATS: Final = ("ndjson", "csv", "libsvm")
_ENDINGS: Final = {
    ".ndjson": "ndjson", ".jsonl": "ndjson", ".json": "ndjson",
    ".csv": "csv", ".tsv": "csv",
    ".libsvm": "libsvm", ".svm": "libsvm", ".svmlight": "libsvm",
}  # fmt: skip
_GZIP: Final = b"\x1f\x8b"
ROW_BYTES_MAX: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Input:
    """An open file. `position` counts bytes of the file itself, so that a bar can show it against `size_bytes`."""

    name: str
    format: str
    lines: Iterator[Line]
    size_bytes: int | None
    position: Callable[[], int]


@contextmanager
def reading(path: str, format_: str | None = None, row_bytes_max: int = ROW_BYTES_MAX) -> Iterator[Input]:
    """Open a file, or standard input for `-`; the format by its ending where none is given.

    `row_bytes_max` is how much of a CSV a row may be that spans lines.
    """
    with _opened(path) as raw:
        format_ = format_ or _format_by_ending(path)
        size = os.fstat(raw.fileno()).st_size if stat.S_ISREG(os.fstat(raw.fileno()).st_mode) else None
        data = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if raw.peek(2)[:2] == _GZIP else raw
        lines = _READERS[format_](_whole_lines(data, path), row_bytes_max)
        yield Input("stdin" if path == STDIN else Path(path).name, format_, lines, size, raw.tell)


def _opened(path: str) -> io.BufferedReader:
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False) if path == STDIN else open(path, "rb")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error


def format_of(path: str, given: str | None) -> str:
    """The format, by the ending where none is given. ConfigError where it cannot be told, or there is no such file."""
    if path != STDIN:
        try:
            os.stat(path)
        except OSError as error:
            raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    return given or _format_by_ending(path)


def _format_by_ending(path: str) -> str:
    if path == STDIN:
        return "ndjson"
    ending = Path(path.lower().removesuffix(".gz")).suffix
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


def _ndjson(lines: Iterator[bytes], _size_max: int) -> Iterator[Line]:
    return (Line(data, None, offset) for offset, data in enumerate(lines))


def _sparse(lines: Iterator[bytes], _size_max: int) -> Iterator[Line]:
    return sparse_rows(lines)


_READERS: Final[dict[str, Callable[[Iterator[bytes], int], Iterator[Line]]]] = {
    "ndjson": _ndjson,
    "csv": csv_rows,
    "libsvm": _sparse,
}
