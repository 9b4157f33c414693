"""Records of every kind that a topic may hold, and offsets at which no record stands."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice
from typing import Final

from confluent_kafka import Producer

from tests.kafka.chaos.flow import values
from tests.kafka.chaos.scenario import scenario
from tests.kafka.chaos.stage import PATIENCE_S, Stage
from tests.kafka.chaos.verdict import assert_whole, read_inputs
from tests.kafka.service import Worker
from tests.kafka.topics import Record, until

HEADERS: Final[list[list[tuple[str, str | bytes | None]]]] = [
    [],
    [("traceparent", b"00-ab")],
    [("h", None), ("h", b"\xff")],
]
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
LONG_BYTES: Final = 900_000
LONGEST_BYTES: Final = 10 * 1024 * 1024
ANSWER_S: Final = 30.0
SEGMENT_S: Final = 0.1
COMPACTED: Final = {
    "cleanup_policy": "compact",
    "segment_ms": str(int(1000 * SEGMENT_S)),
    "min_cleanable_dirty_ratio": "0.01",
}


@scenario(input={"batch_max": 7})
def records_of_every_kind(stage: Stage) -> None:
    """Batches of every codec, keys and headers or none, 900 kB values, the broker's timestamps: all in one topic."""
    remake_input(stage, message_timestamp_type="LogAppendTime")
    worker = stage.service.start()
    stream = values(stage.seed)
    for codec in CODECS:
        settings = {"bootstrap.servers": stage.kafka.bootstrap, "compression.type": codec, "linger.ms": 100}
        producer = Producer(settings)
        for value in islice(stream, stage.rng.randrange(20, 60)):
            key = stage.rng.choice([None, b"", b"key", b"\xff" * 500])
            headers = stage.rng.choice(HEADERS)
            producer.produce(stage.input, value, key, headers=headers)
        producer.produce(stage.input, long_message(codec, LONG_BYTES))
        assert producer.flush(ANSWER_S) == 0
    until_at_the_end(stage, worker)
    worker.stop()
    assert_whole(stage)


@scenario(bounded=False, input={"max_message_bytes": LONGEST_BYTES})
def records_as_long_as_they_may_be(stage: Stage) -> None:
    """The topic takes 11 MB and we 10: good ones are answered, broken ones and long keys are cut, nobody is stopped."""
    remake_input(stage, max_message_bytes=str(LONGEST_BYTES * 11 // 10))
    good = [long_message("one", LONGEST_BYTES - 1), long_message("two", LONGEST_BYTES), long_message("three", 1000)]
    broken = [b"{" + bytes(LONGEST_BYTES - 1), long_message("longer", LONGEST_BYTES + 1)]
    keyed = [Record(long_message("keyed", 1000), key=bytes(size)) for size in (1_000_000, 9_000_000)]
    stage.topics.produce(stage.input, [*good[:2], *broken, *keyed, good[2]])

    worker = stage.service.start()
    until_at_the_end(stage, worker)
    worker.stop()

    assert [p["id"] for p in stage.service.predicted()] == ["one", "two", "three"]
    letters = stage.topics.read(stage.service.dead_letters)
    sizes = [(len(letter.key() or b""), len(letter.value() or b"")) for letter in letters]
    assert sizes == [(0, 1024), (0, 1024), (1024, 1000), (1024, 1000)]
    stage.service.verify("--all")


@scenario(bounded=False)
def transactions_of_others(stage: Stage) -> None:
    """Others write in transactions: committed, aborted, left open, holes at the end. None is waited for, or counted."""
    stream = values(stage.seed)
    others = Others(stage)
    worker = stage.service.start().until_ready()
    others.commit(islice(stream, 100))
    others.abort(islice(stream, 100))
    until_at_the_end(stage, worker)

    others.begin(islice(stream, 50))
    stage.topics.produce(stage.input, [Record(value) for value in islice(stream, 100)])  # has to wait for its end
    worker.kill()
    worker = stage.service.start().until_ready()
    assert stage.committed() < stage.topics.end(stage.input) - 100
    others.producer.abort_transaction(ANSWER_S)
    until_at_the_end(stage, worker)
    others.abort(islice(stream, 3000))
    until_at_the_end(stage, worker)
    until(lambda: worker.counted("olstream_consumer_lag_messages") == 0, "there is no lag")
    worker.stop()
    stage.fault(4)

    assert len(read_inputs(stage)) == 200
    assert_whole(stage)
    stage.topics.delete_before(stage.input, stage.topics.end(stage.input))  # holes too, and no gap
    stage.service.start().until_ready().stop()


@scenario(bounded=False)
def input_compacted(stage: Stage) -> None:
    """Compaction left one record of ten: what is left is learnt, and learnt again, over the holes."""
    remake_input(stage, **COMPACTED)
    stream = values(stage.seed)
    stage.topics.produce(stage.input, [Record(value, b"%d" % (i // 10)) for i, value in enumerate(islice(stream, 600))])
    stage.work_on(2 * SEGMENT_S)
    stage.topics.produce(stage.input, [Record(next(stream), b"closes the segment")])
    until(lambda: len(read_inputs(stage)) == 61, "the input is compacted", PATIENCE_S)
    stage.fault()

    worker = stage.service.start(checkpoint={"interval": "1h"})
    stage.topics.produce(stage.input, [Record(value, b"new %d" % i) for i, value in enumerate(islice(stream, 200))])
    until_at_the_end(stage, worker)
    worker.kill()
    stage.service.start().until_ready().stop()
    assert_whole(stage)


class Others:
    """A transactional producer of somebody else's."""

    def __init__(self, stage: Stage) -> None:
        self.topic = stage.input
        settings = {"bootstrap.servers": stage.kafka.bootstrap, "transactional.id": f"{stage.group}-others"}
        self.producer = Producer(settings)
        self.producer.init_transactions(ANSWER_S)

    def begin(self, stream: Iterable[bytes | None]) -> None:
        self.producer.begin_transaction()
        for value in stream:
            self.producer.produce(self.topic, value)
        assert self.producer.flush(ANSWER_S) == 0

    def commit(self, stream: Iterable[bytes | None]) -> None:
        self.begin(stream)
        self.producer.commit_transaction(ANSWER_S)

    def abort(self, stream: Iterable[bytes | None]) -> None:
        self.begin(stream)
        self.producer.abort_transaction(ANSWER_S)


def remake_input(stage: Stage, **settings: str) -> None:
    stage.topics.delete(stage.input)
    stage.topics.create(stage.input, 1, **settings)


def until_at_the_end(stage: Stage, worker: Worker) -> None:
    """All of the input is done with, holes included."""
    stage.until_committed(stage.topics.end(stage.input), worker)


def long_message(name: str, size: int) -> bytes:
    """A good one of exactly that many bytes."""
    message = {"id": name, "features": {"amount": 1.0}, "label": 1, "pad": ""}
    message["pad"] = "p" * (size - len(json.dumps(message)))
    return json.dumps(message).encode()
