"""The records of the benchmark: 20 named numbers, an id and a label, about 480 bytes each."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from olstream.errors import KafkaError

FEATURES = 20
ANSWER_S = 30.0


def records(n: int, seed: int = 20) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values. The label follows a noisy linear rule, so that a learner has something to learn."""
    rng = random.Random(seed)
    rule = [rng.gauss(0, 1) for _ in range(FEATURES)]
    for i in range(n):
        x = [round(rng.gauss(0, 1), 6) for _ in range(FEATURES)]
        score = sum(a * b for a, b in zip(rule, x, strict=True)) + rng.gauss(0, 1)
        features = {f"feature_{j}": value for j, value in enumerate(x)}
        message = {"id": f"evt-{i}", "features": features, "label": 1 if score > 0 else -1}
        yield b"k%d" % (i % 1000), json.dumps(message, separators=(",", ":")).encode()


class Topics:
    """The topics of one run of the benchmark; deleted afterwards."""

    def __init__(self, kafka: dict[str, str | int | float], prefix: str) -> None:
        self.kafka, self.prefix = kafka, prefix
        self._admin = AdminClient(dict(kafka))
        self.input, self.bare = f"{prefix}-in", f"{prefix}-bare"
        self.predictions, self.dead_letters = f"{prefix}-predictions", f"{prefix}-dead"
        self._made: list[str] = []

    def make(self) -> None:
        # One partition and one copy: the loop is measured here, not the cluster.
        wanted = [self.input, self.bare, self.predictions, self.dead_letters]
        try:
            for topic, done in self._admin.create_topics([NewTopic(t, 1, 1) for t in wanted]).items():
                done.result(ANSWER_S)
                self._made.append(topic)
        except KafkaException as error:
            where = self.kafka["bootstrap.servers"]
            raise KafkaError(f"the topics of the benchmark cannot be made at {where}: {error}") from None

    def fill(self, n: int) -> int:
        """Write the input; the mean size of its values in bytes."""
        producer = Producer({**self.kafka, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000})
        total = 0
        for key, value in records(n):
            while True:
                try:
                    producer.produce(self.input, value, key)
                    break
                except BufferError:
                    producer.poll(0.1)
            total += len(value)
        if producer.flush(ANSWER_S):
            raise KafkaError(f"the broker did not take all records within {ANSWER_S:.0f} s")
        return total // n

    def delete(self, *more: str) -> None:
        if self._made:
            for done in self._admin.delete_topics([*self._made, *more]).values():
                done.exception(ANSWER_S)  # a topic that was never made is gone too
