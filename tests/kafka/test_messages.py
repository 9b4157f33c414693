"""A message can be wrong in any way: it becomes one dead letter, and nothing else changes."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterable
from typing import Any

from tests.kafka.events import events
from tests.kafka.service import Service, ServiceFactory, olstream
from tests.kafka.topics import Record, headers

HEADERS: list[tuple[str, bytes | None]] = [("traceparent", b"00-1-2-03"), ("binary", b"\x00\xff"), ("none", None)]


def random_strings(n: int, seed: int) -> list[bytes]:
    rng = random.Random(seed)
    return [rng.randbytes(rng.choice([0, 1, 2, 3, 10, 100, 1000])) for _ in range(n)]


def damaged(n: int, seed: int) -> list[bytes]:
    """Good messages with a few bytes exchanged, so that each is nearly right, or still is. None has a line end."""
    rng = random.Random(seed)
    values: list[bytes] = []
    for value in events(n, seed):
        spoilt = bytearray(value)
        for _ in range(rng.randint(1, 3)):
            spoilt[rng.randrange(len(spoilt))] = rng.choice(b'{}[]",:0e-.\\ \x00\xff\xc3ntf')
        values.append(bytes(spoilt))
    return values


class Replayed:
    """What `olstream replay` makes of the same values: models, predictions by line, refusals by line."""

    def __init__(self, service: Service, values: list[bytes]) -> None:
        directory = service.directory / "replay"
        directory.mkdir()
        config, lines = directory / "config.yaml", directory / "values.ndjson"
        config.write_text(json.dumps(service.config))
        lines.write_bytes(b"".join(value + b"\n" for value in values))
        out, dead = directory / "out", directory / "dead"
        files = ("--out", str(out), "--dead-letters", str(dead), "--state", str(directory / "state"))
        done = olstream("replay", str(config), str(lines), *files, "--json")
        assert done.returncode == 0, done.stderr
        inspected = olstream("inspect", str(directory / "state"), "--json")
        assert inspected.returncode == 0, inspected.stderr
        self.digest: str = json.loads(inspected.stdout)["digest"]
        self.predictions: list[dict[str, Any]] = [json.loads(line) for line in out.read_bytes().splitlines()]
        self.refused = {line["line"] - 1: line for line in map(json.loads, dead.read_bytes().splitlines())}


def without_origin(prediction: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in prediction.items() if key not in ("topic", "ts")}


def assert_letters(service: Service, wanted: Iterable[tuple[int, Record, str | None]]) -> None:
    """Exactly these dead letters: offset, the record as sent, and the reason where it is known."""
    letters = service.topics.read(service.dead_letters)
    expected = list(wanted)
    assert len(letters) == len(expected)
    for letter, (offset, record, reason) in zip(letters, expected, strict=True):
        sent = [(name, value) for name, value in headers(letter) if not name.startswith("olstream.")]
        told = dict(headers(letter))
        assert (letter.value() or b"", letter.key(), sent) == (record.value or b"", record.key, record.headers)
        assert told["olstream.offset"] == str(offset).encode()
        assert told["olstream.detail"]
        assert reason is None or told["olstream.reason"] == reason.encode()


def test_random_bytes_become_dead_letters_and_nothing_else(service: ServiceFactory) -> None:
    made = service().make_topics()
    good, bad = events(1000), random_strings(1000, seed=5)
    records: list[Record] = []
    for i in range(1000):
        records += [Record(bad[i], f"k{i}".encode(), HEADERS), Record(good[i])]
    made.topics.produce(made.input, records)

    made.run_to(2000)

    assert_letters(made, ((i, record, None) for i, record in enumerate(records) if i % 2 == 0))
    assert [p["offset"] for p in made.predicted()] == list(range(1, 2000, 2))
    assert made.inspect()["digest"] == Replayed(made, good).digest


def test_damaged_messages_are_judged_as_in_a_replay(service: ServiceFactory) -> None:
    made = service().make_topics()
    values = damaged(2000, seed=6)
    made.topics.produce(made.input, values)

    made.run_to(2000)

    replayed = Replayed(made, values)
    assert 100 < len(replayed.refused) < 1900
    assert_letters(made, ((i, Record(values[i]), line["reason"]) for i, line in sorted(replayed.refused.items())))
    assert all(base64.b64decode(line["value"]) == values[i] for i, line in replayed.refused.items())
    assert list(map(without_origin, made.predicted())) == list(map(without_origin, replayed.predictions))
    assert made.inspect()["digest"] == replayed.digest


def test_a_tombstone_is_only_counted(service: ServiceFactory) -> None:
    made = service().make_topics()
    made.topics.produce(made.input, [Record(None, b"k1"), *events(2), Record(None)])

    worker = made.start()
    made.until_committed(4, worker)

    assert worker.counted("olstream_tombstones_total") == 2
    worker.stop()
    assert [p["offset"] for p in made.predicted()] == [1, 2]
    assert made.topics.values(made.dead_letters) == []


def test_what_is_too_long_to_quote_is_cut(service: ServiceFactory) -> None:
    made = service()
    made.topics.create(made.input, max_message_bytes="20000000")
    made.make_topics()
    names = b",".join(b'"f%d":1' % i for i in range(300_000))
    too_large = b'{"features":{' + names + b"}}"
    quoted, cut = b"[" * 900_000, b"[" * 900_001
    made.topics.produce(made.input, [too_large, quoted, cut, *events(1)])

    made.run_to(4)

    letters = made.topics.read(made.dead_letters)
    told = [dict(headers(letter)) for letter in letters]
    assert [letter.value() for letter in letters] == [too_large[:1024], quoted, cut[:1024]]
    assert [t.get("olstream.size") for t in told] == [str(len(too_large)).encode(), None, b"900001"]
    assert told[0]["olstream.reason"] == b"too_large"
    assert [p["id"] for p in made.predicted()] == ["e0"]


def test_the_key_of_a_record_is_the_key_of_its_prediction(service: ServiceFactory) -> None:
    made = service().make_topics()
    made.topics.produce(made.input, [Record(events(1)[0], b"\x00key", HEADERS)])

    made.run_to(1)

    (prediction,) = made.topics.read(made.predictions)
    assert prediction.key() == b"\x00key"
    assert headers(prediction) == [("traceparent", b"00-1-2-03")]  # output.copy_headers
