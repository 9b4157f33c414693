"""Reading a stretch of a partition, from a consumer in memory."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import pytest

from olstream.io.kafka_read import Cursor


@dataclass
class FakeMessage:
    at: int

    def offset(self) -> int:
        return self.at

    def error(self) -> None:
        return None


@dataclass
class FakeConsumer:
    """Hands out one message a call."""

    waiting: list[FakeMessage] = field(default_factory=list)

    def assign(self, _partitions: object) -> None: ...

    def consume(self, _n: int, _timeout_s: float) -> list[FakeMessage]:
        return [self.waiting.pop(0)]


def test_the_time_that_learning_takes_is_no_time_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    consumer = FakeConsumer([FakeMessage(0), FakeMessage(1)])
    cursor = Cursor(consumer, "events", 0, 0, patience_s=5.0)  # type: ignore[arg-type]

    taken = []
    for messages in cursor.read_to(2, lambda: None):
        taken += [message.offset() for message in messages]
        now_s[0] += 60.0

    assert taken == [0, 1]
