"""Predictions and dead letters as bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from olstream.config import LearnerConfig, MonitorConfig
from olstream.encode import CUT_BYTES, HEADERS_MAX_BYTES, LONGEST_BYTES, Encoder, cut, dead_letter
from olstream.messages import Chunk, Example, Headers, Outgoing, Reason, Reject
from olstream.model import Model

KEYS = [
    "id", "learner", "prediction", "score", "probability", "label", "loss", "correct", "updated", "updates",
    "topic", "partition", "offset", "ts",
]  # fmt: skip


def chunk_of(n: int, value: bytes | None = b"{}", headers: Headers | None = None) -> Chunk:
    times: list[int | None] = [1000 + i for i in range(n)]
    return Chunk("events", 3, [10 + i for i in range(n)], times, [b"k"] * n, [value] * n, [headers] * n)


def encoded(
    config: LearnerConfig, examples: list[Example], scores: bool = False, shadow: bool = False
) -> list[dict[str, Any] | None]:
    rows = Model("m", config, MonitorConfig()).predict_then_update(examples)
    values = Encoder("m", scores, shadow).encode(chunk_of(len(examples)), range(len(examples)), examples, rows)
    return [None if value is None else json.loads(value, parse_constant=pytest.fail) for value in values]


def example(x: float, label: Any = None, **fields: Any) -> Example:
    return Example(features={"x": x}, label=label, **fields)


BINARY = LearnerConfig(algorithm="pa1", task="binary", bias=False)
MULTICLASS = LearnerConfig(algorithm="pa1", task="multiclass", bias=False)
REGRESSION = LearnerConfig(algorithm="pa1", task="regression", bias=False)


@pytest.mark.parametrize("config", [BINARY, MULTICLASS, REGRESSION])
def test_every_key_stands_in_each_prediction_in_its_order(config: LearnerConfig) -> None:
    records = encoded(config, [example(1.0), example(1.0, 1), example(2.0)])

    assert [list(record or ()) for record in records] == [KEYS] * 3


def test_a_first_prediction_by_hand() -> None:
    [record] = encoded(BINARY, [example(1.0, id=7)])

    assert record == dict(
        zip(KEYS, [7, "m", None, 0.0, None, None, None, None, False, 0, "events", 3, 10, 1000], strict=True)
    )


def test_a_labelled_row_says_what_was_so_before_its_own_lesson() -> None:
    _, second = encoded(BINARY, [example(1.0, "a"), example(1.0, "a", id="i", ts_ms=5)])

    assert second is not None
    assert (second["id"], second["prediction"], second["label"], second["correct"], second["ts"]) == (
        "i",
        "a",
        "a",
        True,
        5,
    )
    assert (second["score"], second["loss"], second["updated"], second["updates"]) == (1.0, 0.0, False, 1)


@pytest.mark.parametrize("label", [1, 1.0, True, "1é", 2**64 - 1, -(2**63), 1e20])
def test_a_class_keeps_its_json_form(label: Any) -> None:
    _, record = encoded(MULTICLASS, [example(1.0, label), example(1.0)])

    assert record is not None
    assert json.dumps(record["prediction"]) == json.dumps(label)


def test_declared_classes_may_be_longer_than_64_bits() -> None:
    config = LearnerConfig(algorithm="pa1", task="multiclass", classes=[10**30, "other"])

    [record] = encoded(config, [example(1.0)])

    assert record is not None and record["prediction"] == 10**30


def test_a_regression_predicts_a_number_from_the_start() -> None:
    first, second = encoded(REGRESSION, [example(1.0, 3), example(1.0)])

    assert first is not None and second is not None
    assert (first["prediction"], first["score"], json.dumps(first["label"]), first["correct"]) == (
        0.0,
        0.0,
        "3.0",
        None,
    )
    assert second["prediction"] == second["score"] == pytest.approx(1.0)


def test_a_refused_row_has_no_prediction() -> None:
    records = encoded(REGRESSION, [example(1.0), example(1.0, "text"), example(1.0)])

    assert [record is None for record in records] == [False, True, False]


def test_numbers_that_are_too_large_are_still_numbers() -> None:
    records = encoded(REGRESSION, [example(1e-3, 1e308), *[example(1e308, 1e308)] * 3, example(-1e308)])

    assert all(isinstance(record["score"], float) for record in records if record is not None)


def test_scores_and_probabilities_of_every_class_come_when_asked_for() -> None:
    *_, record = encoded(BINARY, [example(1.0, 1), example(-1.0, 0), example(1.0)], scores=True)

    assert record is not None and list(record) == [*KEYS, "scores", "probabilities"]
    assert record["scores"] == {"1": 1.0, "0": -1.0}
    assert sum(record["probabilities"].values()) == pytest.approx(1.0, abs=1e-9)


def test_a_shadow_says_that_it_is_one() -> None:
    [record] = encoded(BINARY, [example(1.0)], shadow=True)

    assert record is not None and list(record) == [*KEYS, "shadow"] and record["shadow"] is True


def test_a_dead_letter_is_the_record_with_its_reason() -> None:
    chunk = chunk_of(2, b"\xff{", [("traceparent", b"t"), ("none", None)])

    key, value, headers = dead_letter(chunk, 1, Reject(Reason.BAD_ENCODING, "not UTF-8 at byte 0"))

    assert (key, value) == (b"k", b"\xff{")
    assert headers == [
        ("traceparent", b"t"),
        ("none", None),
        ("olstream.reason", b"bad_encoding"),
        ("olstream.detail", b"not UTF-8 at byte 0"),
        ("olstream.topic", b"events"),
        ("olstream.partition", b"3"),
        ("olstream.offset", b"11"),
        ("olstream.timestamp", b"1001"),
    ]


def test_a_dead_letter_that_fails_again_and_again_stays_as_large_as_it_was() -> None:
    long = b"x" * (LONGEST_BYTES + 1)
    letter = dead_letter(chunk_of(1, long, [("trace", b"t")]), 0, Reject(Reason.TOO_LARGE, "too long"))

    again = letter
    for _ in range(100):
        _key, value, headers = again
        assert value is not None
        again = dead_letter(chunk_of(1, value, headers), 0, Reject(Reason.BAD_JSON, "cut off"))

    assert [name for name, _ in again[2]].count("olstream.reason") == 1
    assert sorted(name for name, _ in again[2]) == sorted(name for name, _ in letter[2])
    assert dict(again[2])["olstream.reason"] == b"bad_json"
    assert dict(again[2])["olstream.size"] == str(len(long)).encode()  # of what came first
    assert dict(again[2])["trace"] == b"t"


@pytest.mark.parametrize(("size", "is_cut"), [(LONGEST_BYTES, False), (LONGEST_BYTES + 1, True)])
def test_a_long_value_is_cut(size: int, is_cut: bool) -> None:
    value = bytes(i % 251 for i in range(size))

    _, kept, headers = dead_letter(chunk_of(1, value), 0, Reject(Reason.TOO_LARGE, ""))

    assert kept == (value[:CUT_BYTES] if is_cut else value)
    assert dict(headers).get("olstream.size") == (str(size).encode() if is_cut else None)


def test_a_long_key_is_cut_too() -> None:
    chunk = chunk_of(1, b"{")
    chunk.keys[0] = b"k" * (LONGEST_BYTES + 1)

    key, value, headers = dead_letter(chunk, 0, Reject(Reason.TOO_LARGE, ""))

    assert (key, value) == (b"k" * CUT_BYTES, b"{")
    assert dict(headers)["olstream.key_size"] == str(LONGEST_BYTES + 1).encode()


def test_headers_that_are_too_many_are_left_out() -> None:
    headers: Headers = [(f"h{i}", b"x" * 1000) for i in range(100)]

    _, _, kept = dead_letter(chunk_of(1, b"", headers), 0, Reject(Reason.EMPTY, ""))

    own = [(name, value) for name, value in kept if name.startswith("h")]
    assert own == headers[: len(own)]
    assert HEADERS_MAX_BYTES - 2000 < sum(len(name) + len(value or b"") for name, value in own) <= HEADERS_MAX_BYTES


def test_cutting_twice_changes_nothing() -> None:
    letter = Outgoing("dead-letters", b"k", b"v" * 5000, [("olstream.reason", b"bad_json")])

    once = cut(letter)

    assert once.value == b"v" * CUT_BYTES and ("olstream.size", b"5000") in once.headers
    assert cut(once) is once


def test_of_a_letter_that_is_still_too_large_the_key_is_cut() -> None:
    letter = Outgoing("dead-letters", b"k" * 5000, b"v" * 5000, [])

    twice = cut(cut(letter))

    assert (twice.key, twice.value) == (b"k" * CUT_BYTES, b"v" * CUT_BYTES)
    assert twice.headers == [("olstream.size", b"5000"), ("olstream.key_size", b"5000")]
    assert cut(twice) is twice
