"""Rows of CSV, read into the trees that messages would have been. The header names the fields.

A row ends where its quotes are closed, so it may span lines, and a quote that nothing closes would swallow
the rest of the file. So lines are one row only where each quote is closed at the end of its cell, within
`size_max` bytes, and the cells are as many as the header's. Where they are not, the first line alone is
refused, and the next one begins a row.
"""

from __future__ import annotations

import csv
import re
import sys
from collections import deque
from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

from olstream.errors import ConfigError
from olstream.io.lines import Line, finite, is_text
from olstream.messages import Reason, Reject
from olstream.parse import nfc, number

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_SEPARATORS: Final = (b",", b";", b"\t")
_INSIDE: Final = re.compile(rb'(?:[^"]++|"")*+')
_CELLS_MAX: Final = 2**31  # of a header
_RETURN: Final = "has a carriage return inside a line: end the lines with line feeds"

# Where a line leaves a quoted cell that was open before it. "broken": there is more of a cell after its quote.
After: TypeAlias = Literal["closed", "open", "next open", "broken"]


def csv_rows(lines: Iterator[bytes], size_max: int) -> Iterator[Line]:
    """Each row of a file, less the header; `offset` counts rows from 0."""
    first = next(lines, None)
    if first is not None:
        yield from _Table(first.removeprefix(_BYTE_ORDER_MARK), lines, size_max).rows()


class _Table:
    """The rows below a header."""

    def __init__(self, first: bytes, lines: Iterator[bytes], size_max: int) -> None:
        csv.field_size_limit(sys.maxsize)  # `size_max` is the limit
        separator = max(_SEPARATORS, key=first.count)
        self._lines = lines
        self._again: deque[bytes] = deque()  # lines that were looked at, and begin rows of their own after all
        self._size_max = size_max
        self._quotes = _Quotes(separator)
        self._texts: deque[str] = deque()
        self._reader = csv.reader(iter(self._texts.popleft, None), delimiter=separator.decode())
        self._names = self._header(first)

    def rows(self) -> Iterator[Line]:
        for offset, line in enumerate(iter(self._next, None)):
            data, row = self._row(line)
            yield Line(data, row, offset)

    def _header(self, first: bytes) -> list[str]:
        taken = self._together(first, _CELLS_MAX)
        if taken is None:
            raise ConfigError("the CSV header opens a quote and does not close it")
        try:
            return _names(self._cells(taken))
        except csv.Error:
            raise ConfigError(f"the CSV header {_RETURN}") from None

    def _row(self, first: bytes) -> tuple[bytes, dict[str, Any] | Reject]:
        """The bytes of a row and what it says; of lines that are no row together, the first."""
        taken = self._together(first, len(self._names))
        if taken is None:
            return first, Reject(Reason.BAD_FEATURES, "a quote opens a cell and is not closed at the end of it")
        cells = self._as_many_as_names(taken)
        if isinstance(cells, Reject):
            self._give_back(taken[1:])
            return first, cells
        data = b"\n".join(taken)
        if not is_text(data):
            return data, Reject(Reason.BAD_ENCODING, "not UTF-8")
        tree = {name: _cell(cell) for name, cell in zip(self._names, cells, strict=True)}
        return data, finite(tree, tree.values())

    def _next(self) -> bytes | None:
        return self._again.popleft() if self._again else next(self._lines, None)

    def _give_back(self, lines: list[bytes]) -> None:
        self._again.extendleft(reversed(lines))

    def _together(self, first: bytes, cells_max: int) -> list[bytes] | None:
        """The line and those after it to where its quotes are closed; None where they are not, and nothing is taken."""
        taken, size, cells = [first], len(first), 1
        state: After = "open" if self._quotes.opened_by(first) else "closed"
        while state in ("open", "next open"):
            line = self._next()
            if line is not None:
                taken.append(line)
                size += 1 + len(line)
                state = self._quotes.after(line)
                cells += state == "next open"
            if line is None or state == "broken" or size > self._size_max or cells > cells_max:
                self._give_back(taken[1:])
                return None
        return taken

    def _as_many_as_names(self, taken: list[bytes]) -> list[str] | Reject:
        try:
            cells = self._cells(taken)
        except csv.Error:
            return Reject(Reason.BAD_FEATURES, f"the row {_RETURN}")
        if not cells:
            return Reject(Reason.EMPTY, "a line without cells")
        if len(cells) != len(self._names):
            span = f" on {len(taken)} lines" if len(taken) > 1 else ""
            return Reject(Reason.BAD_FEATURES, f"{len(cells)} cells{span}, the header has {len(self._names)}")
        return cells

    def _cells(self, taken: list[bytes]) -> list[str]:
        self._texts.clear()
        self._texts.extend(line.decode(errors="surrogateescape") + "\n" for line in taken)
        return next(self._reader)


class _Quotes:
    """Where a line leaves the cells that quotes hold open, as Python's csv module reads them."""

    def __init__(self, separator: bytes) -> None:
        cell = rb'(?:"(?:[^"]++|"")*+"[^S]*+|(?!")[^S]*+)'.replace(b"S", separator)
        self._separator = separator
        self._cells = re.compile(cell + rb"(?:" + separator + cell + rb")*+")

    def opened_by(self, line: bytes) -> bool:
        """Whether a line that begins outside of quotes ends inside of them."""
        return b'"' in line and self._cells.fullmatch(line) is None

    def after(self, line: bytes) -> After:
        """Where a line ends that begins inside of quotes."""
        end = _INSIDE.match(line).end()  # type: ignore[union-attr]  # matches nothing at least
        if end == len(line):
            return "open"
        rest = line[end + 1 :]
        if not rest.strip(b"\r"):
            return "closed"
        if not rest.startswith(self._separator):
            return "broken"
        return "next open" if self.opened_by(rest[1:]) else "closed"


def _names(header: list[str]) -> list[str]:
    names = [nfc(name) for name in header]
    for i, name in enumerate(names):
        if not name:
            raise ConfigError(f"column {i + 1} of the CSV header has no name: give it one")
        if name in names[:i]:
            raise ConfigError(f"the CSV header has {name!r} twice: rename one of the columns")
    return names


def _cell(cell: str) -> str | int | float | None:
    value = number(cell)
    return (cell or None) if value is None else value
