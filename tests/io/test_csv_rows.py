"""Rows of CSV: which lines are one row, and what a stray quote costs."""

from __future__ import annotations

import csv
from itertools import repeat
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from olstream.errors import ConfigError
from olstream.io.csv_rows import csv_rows
from olstream.io.lines import Line
from olstream.messages import Reason, Reject

LIMIT = 1000


def rows(text: str | bytes, size_max: int = LIMIT) -> list[Line]:
    data = text.encode() if isinstance(text, str) else text
    return list(csv_rows(iter(data.removesuffix(b"\n").split(b"\n")), size_max))


def meant(lines: list[Line]) -> list[Any]:
    """What the rows say, or the bytes that were refused."""
    return [line.data.decode() if isinstance(line.tree, Reject) else line.tree for line in lines]


def test_a_quote_that_nothing_closes_costs_its_own_line_only() -> None:
    lines = rows('a,b\n1,x\n2,"y\n3,z\n4,w\n')

    assert meant(lines) == [{"a": 1, "b": "x"}, '2,"y', {"a": 3, "b": "z"}, {"a": 4, "b": "w"}]
    assert [line.offset for line in lines] == [0, 1, 2, 3]
    assert isinstance(lines[1].tree, Reject)
    assert (lines[1].tree.reason, "quote" in lines[1].tree.detail) == (Reason.BAD_FEATURES, True)


def test_a_quote_that_the_next_quoted_cell_would_close_costs_its_own_line_only() -> None:
    lines = rows('a,b\n1,"x\n2,y\n3,"z, and w"\n4,"two\nlines"\n')

    assert meant(lines) == ['1,"x', {"a": 2, "b": "y"}, {"a": 3, "b": "z, and w"}, {"a": 4, "b": "two\nlines"}]


def test_a_row_of_several_lines_with_other_cells_than_the_header_costs_its_first_line_only() -> None:
    lines = rows('a,b\n"x,1\n2,y\n3,"\n4,w\n')

    assert meant(lines) == ['"x,1', {"a": 2, "b": "y"}, '3,"', {"a": 4, "b": "w"}]


def test_a_quoted_cell_ends_within_the_largest_size_of_a_row() -> None:
    text = 'a,b\n1,"' + "x\n" * 10 + 'x"\n2,y\n'

    assert meant(rows(text, 25))[-1] == meant(rows(text, 20))[-1] == {"a": 2, "b": "y"}
    assert len(rows(text, 25)) == 2
    assert meant(rows(text, 20))[0] == '1,"x'


def test_no_more_of_a_file_is_looked_at_than_a_row_may_hold() -> None:
    read = []

    def lines() -> Any:
        for line in [b"a,b", b'1,"x', *repeat(b"2,y", 10_000)]:
            read.append(line)
            yield line

    refused = next(csv_rows(lines(), 100))

    assert refused.data == b'1,"x'
    assert len(read) < 40


def test_stray_quotes_all_over_a_file_cost_no_second_reading_of_all_of_it() -> None:
    lines = rows("a,b,c\n" + 'x",1,"y\n' * 20_000, 1 << 20)  # would take minutes

    assert len(lines) == 20_000
    assert all(isinstance(line.tree, Reject) for line in lines)


@settings(derandomize=True, max_examples=300)
@given(st.lists(st.lists(st.text('a",\n;', max_size=6), min_size=2, max_size=2), min_size=1, max_size=6))
def test_what_a_writer_of_csv_writes_is_read_back(table: list[list[str]]) -> None:
    lines: list[str] = []

    class Written:
        def write(self, text: str) -> None:
            lines.append(text)

    csv.writer(Written(), lineterminator="\n", quoting=csv.QUOTE_ALL).writerows([["p", "q"], *table])

    assert meant(rows("".join(lines))) == [{"p": p or None, "q": q or None} for p, q in table]


@settings(derandomize=True, max_examples=300)
@given(st.lists(st.text('a"",\r', max_size=8), min_size=1, max_size=6))
def test_no_line_is_lost_or_read_twice(texts: list[str]) -> None:
    lines = rows("a,b\n" + "\n".join(texts) + "\n")

    assert b"\n".join(line.data for line in lines) == "\n".join(texts).encode()


def test_carriage_returns_alone_end_no_line() -> None:
    (refused,) = rows(b"a,b\n1,x\r2,y\r")

    assert isinstance(refused.tree, Reject)
    assert "carriage return" in refused.tree.detail and "universal" not in refused.tree.detail
    with pytest.raises(ConfigError, match="carriage return"):
        rows(b"a,b\r1,x\r2,y\r")


def test_a_header_that_opens_a_quote_and_leaves_it_open_is_an_error() -> None:
    with pytest.raises(ConfigError, match="header opens a quote"):
        rows('a,"b\n1,2\n3,4\n')
    assert meant(rows('a,"b\nc"\n1,2\n')) == [{"a": 1, "b\nc": 2}]
