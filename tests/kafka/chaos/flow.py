"""The stream that a scenario feeds while it does its worst: seeded, endless, of an even rate."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Final

from confluent_kafka import Producer

from tests.kafka.beside import Beside
from tests.kafka.events import events
from tests.kafka.topics import until

BAD_EVERY: Final = 97
NULL_EVERY: Final = 211
TICK_S: Final = 0.01
FLUSH_S: Final = 120.0  # a broker may be away for as long


def values(seed: int) -> Iterator[bytes | None]:
    """Good messages with and without labels, broken ones and tombstones; no two have the same bytes or id."""
    chunk, number = 1000, 0
    while True:
        for i, value in enumerate(events(chunk, seed + number, number), number):
            if i % BAD_EVERY == 5:
                yield b"{broken %d" % i
            elif i % NULL_EVERY == 7:
                yield None
            else:
                yield value
        number += chunk


class Flow(Beside):
    """A thread that writes the stream, `rate` records a second round all partitions, until it is ended."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, seed: int, rate: int) -> None:
        super().__init__()
        self.topic, self.partitions, self.rate = topic, partitions, rate
        self.fed = 0
        self._values = values(seed)
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5, "log_level": 0}
        )

    def feed(self, n: int) -> None:
        """The next n records, now."""
        for _ in range(n):
            self._producer.produce(self.topic, next(self._values), partition=self.fed % self.partitions)
            self.fed += 1
        self._producer.poll(0)

    def widen(self, partitions: int) -> None:
        """The topic has grown: feed the new partitions too."""
        until(lambda: len(self._producer.list_topics(self.topic).topics[self.topic].partitions) == partitions, "seen")
        self.partitions = partitions

    def flush(self) -> None:
        assert self._producer.flush(FLUSH_S) == 0, "the broker took not all of the stream"

    def _work(self) -> None:
        start_s, before = time.monotonic(), self.fed
        while not self._ended.wait(TICK_S):
            due = before + int((time.monotonic() - start_s) * self.rate) - self.fed
            self.feed(min(due, self.rate))  # after a stall of ours no flood

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        super().__exit__(kind, error, at)
        if error is None:
            self.flush()


def is_good(value: bytes | None) -> bool:
    return value is not None and not value.startswith(b"{broken")


def id_of(value: bytes) -> str:
    return str(json.loads(value)["id"])


def has_label(value: bytes) -> bool:
    return "label" in json.loads(value)
