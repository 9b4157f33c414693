"""The exact reader: RFC 8259, UTF-8, depth, names, numbers."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olstream.messages import Reason, Reject
from olstream.parse import Parser, is_deeper_than, number

SIZE_MAX = 1 << 20
TREES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def parse(data: bytes) -> Any:
    return Parser(SIZE_MAX).parse(data)


def reason(data: bytes) -> Reason:
    reject = parse(data)
    assert isinstance(reject, Reject)
    return reject.reason


@given(st.dictionaries(st.from_regex(r"[a-z]{1,5}", fullmatch=True), TREES), st.booleans())
def test_what_json_writes_is_read_back(tree: dict[str, Any], ascii_only: bool) -> None:
    data = json.dumps({"tree": tree}, ensure_ascii=ascii_only).encode(errors="surrogatepass")

    read = parse(data)

    if isinstance(read, Reject):  # names that are the same in NFC, halves of surrogate pairs
        assert read.reason in (Reason.DUPLICATE_KEY, Reason.BAD_ENCODING)
    else:
        assert json.dumps(read["tree"]).encode() == json.dumps(_nfc(tree)).encode()


def _nfc(value: Any) -> Any:
    if isinstance(value, dict):
        return {normalize("NFC", name): _nfc(inner) for name, inner in value.items()}
    return [_nfc(inner) for inner in value] if isinstance(value, list) else value


@given(st.binary(max_size=60))
def test_any_bytes_give_a_value_or_a_reason(data: bytes) -> None:
    value = parse(data)

    if not isinstance(value, Reject):
        assert json.dumps(json.loads(data.removeprefix(b"\xef\xbb\xbf"))) == json.dumps(value)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", Reason.EMPTY),
        (b" \t\r\n", Reason.EMPTY),
        (b"\xef\xbb\xbf ", Reason.EMPTY),
        (b"\x0b", Reason.BAD_JSON),
        (b"\x00\x00\x00\x00\x07{}", Reason.BAD_ENCODING),
        (b"\xff\xfe{\x00", Reason.BAD_ENCODING),
        (b'"\xc0\xaf"', Reason.BAD_ENCODING),
        (b'"\xed\xa0\x80"', Reason.BAD_ENCODING),
        (rb'"\ud800"', Reason.BAD_ENCODING),
        (rb'{"\uDC00":1}', Reason.BAD_ENCODING),
        (b"\xef\xbb\xbf\xef\xbb\xbf{}", Reason.BAD_JSON),
        (b"{} {}", Reason.BAD_JSON),
        (b"[1e999", Reason.BAD_JSON),
        (b"[1e999,NaN]", Reason.BAD_JSON),
        (b'"\x01"', Reason.BAD_JSON),
        ("[1\u00a0]".encode(), Reason.BAD_JSON),
        (b'{"a":1,"a":1}', Reason.DUPLICATE_KEY),
        (b'{"a":1,"\\u0061":1}', Reason.DUPLICATE_KEY),
        ('{"x":{"é":1,"e\u0301":2}}'.encode(), Reason.DUPLICATE_KEY),
        (b"1e999", Reason.NOT_FINITE),
        (b"-" + b"9" * 400, Reason.NOT_FINITE),
        (b"[" * 33 + b"]" * 33, Reason.TOO_DEEP),
        (b"[" * 1_000_000, Reason.TOO_DEEP),
        (b" " * (SIZE_MAX + 1), Reason.TOO_LARGE),
    ],
)
def test_what_is_no_value_has_a_reason(data: bytes, expected: Reason) -> None:
    assert reason(data) == expected


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"\xef\xbb\xbf{}", {}),
        (b"\r\n{ }\t", {}),
        (rb'"\ud83d\ude00"', "\U0001f600"),
        (b"[" * 32 + b"]" * 32, eval("[" * 32 + "]" * 32)),
        (b'["' + b"[" * 100 + b'"]', ["[" * 100]),
        (b'["\\"' + b"[" * 100 + b'"]', ['"' + "[" * 100]),
    ],
)
def test_odd_but_legal_values_are_read(data: bytes, value: Any) -> None:
    assert parse(data) == value


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", 2.0**64),
        ("-9223372036854775808", -(2**63)),
        ("-9223372036854775809", -(2.0**63)),
        ("1.0", 1.0),
        ("1e2", 100.0),
        ("-0", 0),
        ("1e-400", 0.0),
    ],
)
def test_integers_of_64_bits_stay_integers_and_all_else_is_a_double(literal: str, value: float) -> None:
    read = parse(literal.encode())

    assert (read, type(read)) == (value, type(value))
    assert (number(f" {literal}\n"), type(number(literal))) == (value, type(value))


@pytest.mark.parametrize("text", ["", "01", "+1", ".5", "1.", "NaN", "0x1", "1 2", "1_0", "١"])
def test_text_that_is_no_json_number_is_none(text: str) -> None:
    assert number(text) is None


@given(st.text(alphabet='[]{}"\\a', max_size=80))
def test_depth_is_that_of_brackets_outside_strings(text: str) -> None:
    depth = deepest = 0
    inside = escaped = False
    for character in text:
        if inside:
            inside = escaped or character != '"'
            escaped = not escaped and character == "\\"
        elif character == '"':
            inside = True
        elif character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1

    for limit in range(4):
        assert is_deeper_than(text.encode(), limit) == (deepest > limit)


def test_a_refused_message_leaves_nothing_behind() -> None:
    parser = Parser(SIZE_MAX)

    refused = [parser.parse(data) for data in (b"1e999", b'{"a":1,"a":1}')]

    assert all(isinstance(reject, Reject) for reject in refused)
    assert parser.parse(b"[1]") == [1]


def test_a_message_above_the_limit_is_refused_without_being_looked_at() -> None:
    data = b'{"features":{' + b'"f":1,' * 1_500_000 + b"}}"
    tracemalloc.start()

    refused = reason(data)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert refused == Reason.TOO_LARGE
    assert peak < 100_000


def test_details_hold_no_text_of_the_message() -> None:
    for data in (b'{"secret', b'{"secret":secret}', rb'["secret\ud800"]', b'{"secret":1,"secret":2}', b"secret\xff"):
        reject = parse(data)

        assert isinstance(reject, Reject)
        assert "secret" not in reject.detail


@pytest.mark.parametrize(
    ("data", "detail"),
    [
        (b'{"a":"\x01"}', "Invalid control character at character 6"),
        (b'{"a', "Unterminated string starting at character 1"),
        (b'{"a":1 2}', "Expecting ',' delimiter at character 7"),
        (b'"\\x"', "Invalid \\escape at character 1"),
        (b"{} {}", "Extra data at character 3"),
    ],
)
def test_what_is_no_json_is_told_in_plain_words(data: bytes, detail: str) -> None:
    reject = parse(data)

    assert isinstance(reject, Reject)
    assert reject.detail == detail
