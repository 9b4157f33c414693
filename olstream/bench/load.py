"""The records of the benchmark: 20 named numbers, an id and a label, about 480 bytes each."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import cycle, islice
from typing import Any, NamedTuple, Self

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from olstream.errors import KafkaError

FEATURES = 20
ANSWER_S = 30.0
MADE_MAX = 200_000  # more records than that are the same ones over again


class Lesson(NamedTuple):
    """What one record teaches."""

    features: dict[str, float]
    label: int


def lessons(n: int, seed: int = 20) -> Iterator[Lesson]:
    """The label follows a noisy linear rule, so that a learner has something to learn."""
    rng = random.Random(seed)
    rule = [rng.gauss(0, 1) for _ in range(FEATURES)]
    for _ in range(n):
        x = [round(rng.gauss(0, 1), 6) for _ in range(FEATURES)]
        score = sum(a * b for a, b in zip(rule, x, strict=True)) + rng.gauss(0, 1)
        yield Lesson({f"feature_{j}": value for j, value in enumerate(x)}, 1 if score > 0 else -1)


@cache
def _made(n: int) -> list[tuple[bytes, bytes]]:
    made = []
    for i, (features, label) in enumerate(lessons(n)):
        message = {"id": f"evt-{i}", "features": features, "label": label}
        made.append((b"k%d" % (i % 1000), json.dumps(message, separators=(",", ":")).encode()))
    return made


def records(n: int) -> Iterable[tuple[bytes, bytes]]:
    """Keys and values."""
    return islice(cycle(_made(min(n, MADE_MAX))), n)


class Topics:
    """The topics of one measurement; deleted afterwards."""

    def __init__(self, kafka: dict[str, str | int | float], prefix: str, partitions: int = 1) -> None:
        self.kafka, self.prefix, self.partitions = kafka, prefix, partitions
        self.admin = AdminClient(dict(kafka))
        self.input, self.bare = f"{prefix}-in", f"{prefix}-bare"
        self.predictions, self.dead_letters = f"{prefix}-predictions", f"{prefix}-dead"
        self._doomed: list[str] = []

    def __enter__(self) -> Self:
        wanted = [self.input, self.bare, self.predictions, self.dead_letters]
        # One copy of each: the loop is measured here, not the cluster.
        topics = [NewTopic(topic, self.partitions, 1) for topic in wanted]
        try:
            for topic, done in self.admin.create_topics(topics).items():
                done.result(ANSWER_S)
                self._doomed.append(topic)
        except KafkaException as error:
            self.__exit__()
            where = self.kafka["bootstrap.servers"]
            raise KafkaError(f"the topics of the benchmark cannot be made at {where}: {error}") from None
        return self

    def __exit__(self, *_: object) -> None:
        if self._doomed:
            for done in self.admin.delete_topics(self._doomed).values():
                done.exception(ANSWER_S)  # a topic that was never made is gone too

    def group(self, name: str) -> str:
        """A group's name; its journal goes with the topics."""
        group = f"{self.prefix}-{name}"
        self._doomed.append(f"{group}-journal")
        return group

    def fill(self, n: int) -> int:
        """Write n records into each partition of the input; the mean size of their values in bytes."""
        return self._write(Producer(self._properties()), n)

    def fill_at_once(self, n: int) -> None:
        """The same in one transaction: nobody can read any of them before all are there."""
        producer = Producer({**self._properties(), "transactional.id": self.prefix})
        producer.init_transactions(ANSWER_S)
        producer.begin_transaction()
        self._write(producer, n)
        producer.commit_transaction(ANSWER_S)

    def _properties(self) -> dict[str, Any]:
        return {**self.kafka, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000}

    def _write(self, producer: Producer, n: int) -> int:
        total = 0
        for partition in range(self.partitions):
            for key, value in records(n):
                produce(producer, self.input, value, key, partition)
                total += len(value)
        if producer.flush(ANSWER_S):
            raise KafkaError(f"the broker did not take all records within {ANSWER_S:.0f} s")
        return total // (n * self.partitions)


def produce(producer: Producer, *record: Any) -> None:
    """Send one record, in the order of the client's arguments; where the queue is full, let some of it go first."""
    while True:
        try:
            producer.produce(*record)
            return
        except BufferError:
            producer.poll(0.1)
