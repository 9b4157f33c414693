"""Sends the stream at a steady pace, never far ahead of the service: the embedded broker keeps little."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from typing import Final

from confluent_kafka import Producer

from olstream.errors import KafkaError

AHEAD_MAX: Final = 5000  # records; the mock keeps about 5 MiB a partition
PIECE_MAX: Final = 1000
FLUSH_S: Final = 30.0


class Feed:
    """The first `total` messages, spread evenly over `seconds`."""

    def __init__(
        self, bootstrap: str, topic: str, messages: Iterator[tuple[bytes, bytes]], total: int, seconds: float
    ) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "log_level": 0})
        self._topic, self._messages = topic, messages
        self.total, self._per_s = total, total / seconds
        self.sent = 0
        self._start_s = time.monotonic()

    def send_due(self, consumed: int) -> None:
        """Send what the clock allows and the service has room for."""
        by_clock = int((time.monotonic() - self._start_s) * self._per_s) + 1
        due = min(self.total, by_clock, consumed + AHEAD_MAX) - self.sent
        for key, value in islice(self._messages, min(due, PIECE_MAX)) if due > 0 else ():
            self._producer.produce(self._topic, value, key, 0)  # one partition: order is the point
            self.sent += 1
        self._producer.poll(0)

    def flush(self) -> None:
        left = self._producer.flush(FLUSH_S)
        if left:
            raise KafkaError(f"the broker did not take {left} records within {FLUSH_S:.0f} s")
