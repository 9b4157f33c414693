"""The log as people and machines read it."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator
from typing import Literal

import pytest

from olstream import logs
from olstream.config import LogConfig
from olstream.logs import Repeats


@pytest.fixture(autouse=True)
def left_as_found() -> Iterator[None]:
    root = logging.getLogger("olstream")
    found = root.handlers[:], root.level, root.propagate
    yield
    root.handlers[:], root.propagate = found[0], found[2]
    root.setLevel(found[1])


def started(form: Literal["text", "json"] = "json", level: Literal["debug", "info"] = "info") -> io.StringIO:
    stream = io.StringIO()
    logs.setup(LogConfig(format=form, level=level), stream)
    return stream


def test_a_json_line_has_its_fields() -> None:
    stream = started()

    logging.getLogger("olstream.loop").info("checkpoint %s", "written", extra={"seq": 5, "message_bytes": 7})

    line = json.loads(stream.getvalue())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("time"))
    assert line == {
        "level": "info",
        "logger": "olstream.loop",
        "message": "checkpoint written",
        "seq": 5,
        "message_bytes": 7,
    }


def test_a_text_line_has_its_fields() -> None:
    stream = started("text")

    logging.getLogger("olstream.loop").warning("late", extra={"topic": "events"})

    assert re.fullmatch(r"\S+Z warning olstream\.loop: late topic=events\n", stream.getvalue())


@pytest.mark.parametrize("form", ["text", "json"])
def test_an_event_is_one_line_whatever_it_says(form: Literal["text", "json"]) -> None:
    stream = started(form)

    logging.getLogger("olstream.x").error("a\nb\r\nc\ud800 %s", 2**70, extra={"text": "\ud800\n", "nan": float("nan")})

    assert stream.getvalue().count("\n") == 1 and stream.getvalue().endswith("\n")


def test_an_exception_stands_in_its_json_line() -> None:
    stream = started()

    try:
        raise ValueError("boom")
    except ValueError:
        logging.getLogger("olstream.x").exception("failed")

    assert json.loads(stream.getvalue())["exception"][-1] == "ValueError: boom"


def test_below_the_level_nothing_is_written() -> None:
    stream = started()

    logging.getLogger("olstream.x").debug("detail")

    assert stream.getvalue() == ""


def test_payloads_are_told_by_their_length_above_debug() -> None:
    stream = started(level="debug")
    log = logging.getLogger("olstream.x")

    log.info("took %s", b"card 4111", extra={"value": b"secret"})
    log.debug("took %s", b"card 4111")

    told, debugged = map(json.loads, stream.getvalue().splitlines())
    assert (told["message"], told["value"]) == ("took <9 bytes>", "<6 bytes>")
    assert debugged["message"] == "took b'card 4111'"


def test_set_up_twice_writes_once() -> None:
    started()
    stream = started()

    logging.getLogger("olstream.x").info("once")

    assert len(stream.getvalue().splitlines()) == 1


def test_a_repeated_message_comes_once_an_interval_with_the_count_of_the_others() -> None:
    now_s = 0.0
    repeats = Repeats(lambda: now_s)

    def said(text: str) -> int | None:
        """How many are left out before it; None where it is left out itself."""
        record = logging.makeLogRecord({"msg": "no broker at %s", "args": (text,), "every_s": 10.0})
        return getattr(record, "left_out", 0) if repeats.filter(record) else None

    first = [said("a"), said("b"), said("c")]
    now_s = 10.0
    second = [said("a"), said("a")]
    now_s = 30.0

    assert (first, second, said("a")) == ([0, None, None], [2, None], 1)


def test_a_message_without_an_interval_is_never_left_out() -> None:
    repeats = Repeats(lambda: 0.0)

    assert all(repeats.filter(logging.makeLogRecord({"msg": "same"})) for _ in range(3))


def test_the_limiter_remembers_a_bounded_number_of_messages() -> None:
    repeats = Repeats(lambda: 0.0)

    for i in range(10_000):
        repeats.filter(logging.makeLogRecord({"msg": f"message {i}", "every_s": 10.0}))

    assert len(repeats._said) <= logs.REMEMBERED_MAX


def test_librdkafka_lines_that_differ_in_digits_are_one_message() -> None:
    stream = started()
    log = logs.librdkafka()

    for tries in (1, 2, 3):
        log.log(logging.ERROR, "%s [%s] %s", "FAIL", "rdkafka#consumer-1", f"connect failed after {tries} ms")
    log.log(logging.ERROR, "%s [%s] %s", "REQTMOUT", "rdkafka#consumer-1", "timed out")

    said = [json.loads(line)["message"] for line in stream.getvalue().splitlines()]
    assert said == [
        "FAIL [rdkafka#consumer-1] connect failed after 1 ms",
        "REQTMOUT [rdkafka#consumer-1] timed out",
    ]
