"""Files of examples: what is a line, and what a row of another form would have been as a message."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from olstream.errors import ConfigError
from olstream.io.files import reading
from olstream.io.lines import Line
from olstream.messages import Reason, Reject


def lines_of(path: Path, format_: str | None = None) -> list[Line]:
    with reading(str(path), format_) as source:
        return list(source.lines)


@pytest.fixture
def read(tmp_path: Path) -> Any:
    """Lines of a file with these bytes and that name."""

    def written(name: str, data: bytes) -> list[Line]:
        path = tmp_path / name
        path.write_bytes(data)
        return lines_of(path)

    return written


def trees(lines: list[Line]) -> list[Any]:
    return [line.tree.reason if isinstance(line.tree, Reject) else line.tree for line in lines]


@settings(derandomize=True)
@given(st.lists(st.binary(max_size=20).filter(lambda piece: b"\n" not in piece)), st.booleans(), st.booleans())
def test_pieces_between_line_feeds_are_messages_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], ends_with_one: bool, zipped: bool
) -> None:
    data = b"\n".join(pieces) + b"\n" * ends_with_one
    path = tmp_path_factory.mktemp("pieces") / ("f.ndjson.gz" if zipped else "f.ndjson")
    path.write_bytes(gzip.compress(data) if zipped else data)

    lines = lines_of(path)

    expected = data.split(b"\n")
    if not expected[-1]:
        expected.pop()
    assert lines == [Line(piece, None, offset) for offset, piece in enumerate(expected)]


def test_a_header_names_the_fields_and_cells_are_numbers_texts_or_absent(read: Any) -> None:
    lines = read("f.csv", b'n,t,e,q,spaced\n1,red,,"a,b", 2.5\n-0.5e1,01,"",+1,NaN\n')

    assert trees(lines) == [
        {"n": 1, "t": "red", "e": None, "q": "a,b", "spaced": 2.5},
        {"n": -5.0, "t": "01", "e": None, "q": "+1", "spaced": "NaN"},
    ]
    assert [line.data for line in lines] == [b'1,red,,"a,b", 2.5', b'-0.5e1,01,"",+1,NaN']


@pytest.mark.parametrize("separator", [b",", b";", b"\t"])
def test_the_separator_is_seen_in_the_header(read: Any, separator: bytes) -> None:
    lines = read("f.csv", b"\xef\xbb\xbfa" + separator + b"b\r\n1" + separator + b"x\r\n")

    assert trees(lines) == [{"a": 1, "b": "x"}]


def test_a_quoted_cell_may_span_lines(read: Any) -> None:
    lines = read("f.csv", b'a,b\n1,"two\nlines"\n3,x')

    assert trees(lines) == [{"a": 1, "b": "two\nlines"}, {"a": 3, "b": "x"}]
    assert lines[0].data == b'1,"two\nlines"'


def test_a_row_that_is_none_is_refused_and_the_next_is_read(read: Any) -> None:
    lines = read("f.csv", b"a,b\n1\n1,2,3\n\n\xff,1\n1e999,1\n1,2\n")

    assert trees(lines) == [
        Reason.BAD_FEATURES,
        Reason.BAD_FEATURES,
        Reason.EMPTY,
        Reason.BAD_ENCODING,
        Reason.NOT_FINITE,
        {"a": 1, "b": 2},
    ]


@pytest.mark.parametrize("header", [b"a,,b", b"a,b,a", "\u00e9,e\u0301".encode()])
def test_a_header_that_cannot_name_columns_is_an_error(read: Any, header: bytes) -> None:
    with pytest.raises(ConfigError, match="header"):
        read("f.csv", header + b"\n1,2,3\n")


def test_libsvm_is_a_label_and_features_named_by_their_index(read: Any) -> None:
    lines = read("f.libsvm", b"+1 1:0.5 7:-2e1 # note\n-1\n2.5 3:.5 4:1.\nspam 1:1\n1:2 2:3\n")

    assert trees(lines) == [
        {"label": 1, "features": {"1": 0.5, "7": -20.0}},
        {"label": -1, "features": {}},
        {"label": 2.5, "features": {"3": 0.5, "4": 1.0}},
        {"label": "spam", "features": {"1": 1.0}},
        {"features": {"1": 2.0, "2": 3.0}},
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"1 1:x", Reason.BAD_FEATURES),
        (b"1 x:1", Reason.BAD_FEATURES),
        (b"1 1", Reason.BAD_FEATURES),
        (b"1 1:1_0", Reason.BAD_FEATURES),
        (b"1 1:1 1:2", Reason.DUPLICATE_KEY),
        (b"1 1:nan", Reason.NOT_FINITE),
        (b"1 1:-inf", Reason.NOT_FINITE),
        (b"1 1:1e999", Reason.NOT_FINITE),
        (b"1e999 1:1", Reason.NOT_FINITE),
        (b"1 1:\xff", Reason.BAD_ENCODING),
    ],
)
def test_a_line_of_libsvm_that_is_none_has_its_reason(read: Any, line: bytes, reason: Reason) -> None:
    assert trees(read("f.svm", line + b"\n")) == [reason]


def test_blank_lines_and_comments_of_libsvm_are_counted_and_passed_over(read: Any) -> None:
    lines = read("f.svm", b"# a note\n1 1:1\n\n \t\r\n  # another\n-1 1:2 # and a third\n#\n")

    assert [(line.offset, line.data) for line in lines] == [(1, b"1 1:1"), (5, b"-1 1:2 # and a third")]


@pytest.mark.parametrize(
    ("name", "format_"),
    [
        ("f.ndjson", "ndjson"), ("f.jsonl.gz", "ndjson"), ("f.CSV", "csv"), ("f.CSV.GZ", "csv"), ("f.Csv.gz", "csv"),
        ("f.tsv.gz", "csv"), ("f.libsvm", "libsvm"),
    ],
)  # fmt: skip
def test_the_format_is_known_by_the_ending(tmp_path: Path, name: str, format_: str) -> None:
    (tmp_path / name).write_bytes(b"a\n")

    with reading(str(tmp_path / name)) as source:
        assert (source.format, source.name, source.size_bytes) == (format_, name, 2)


def test_an_unknown_ending_asks_for_the_format(tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_bytes(b"1 1:1\n")

    with pytest.raises(ConfigError, match="--format"), reading(str(tmp_path / "f.txt")):
        pass
    assert trees(lines_of(tmp_path / "f.txt", "libsvm")) == [{"label": 1, "features": {"1": 1.0}}]


@pytest.mark.parametrize("name", ["none.csv", "none.dat", "none"])
def test_a_file_that_is_not_there_is_a_mistake_in_the_command(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="No such file"), reading(str(tmp_path / name)):
        pass


def test_an_archive_that_ends_early_is_an_error_after_the_lines_before(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(b"%d\n" % (i * 7919) for i in range(50_000)))
    (tmp_path / "f.ndjson.gz").write_bytes(whole[: len(whole) // 2])

    with reading(str(tmp_path / "f.ndjson.gz")) as source:
        assert next(source.lines).data == b"0"
        with pytest.raises(ConfigError, match="to its end"):
            list(source.lines)


def test_reading_moves_the_position_to_the_end(tmp_path: Path) -> None:
    path = tmp_path / "f.ndjson.gz"
    path.write_bytes(gzip.compress(b"{}\n" * 1000))

    with reading(str(path)) as source:
        list(source.lines)

        assert source.position() == source.size_bytes == path.stat().st_size
