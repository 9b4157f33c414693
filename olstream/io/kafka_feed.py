"""Sends records to one topic outside of any service: idempotent, and nothing is forgotten silently."""

from __future__ import annotations

from typing import Any, Final

from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException, Message, Producer

from olstream import logs, properties
from olstream.config import Config
from olstream.errors import KafkaError
from olstream.io.kafka_admin import refused_property

_POLL_EVERY: Final = 256  # records between two looks at what was delivered
_WAIT_S: Final = 0.5


class Out:
    """A producer for one topic; KafkaError as soon as a record is known to be lost."""

    def __init__(self, config: Config, topic: str) -> None:
        given: dict[str, Any] = {
            "client.id": f"olstream-{config.group}-feed",
            "linger.ms": 20,
            "delivery.timeout.ms": 60_000,
            "partitioner": "murmur2_random",  # as Java clients: equal keys, equal partitions
            **properties.for_client("producer", config.kafka, config.producer),
            "enable.idempotence": True,
        }
        given.pop("transaction.timeout.ms", None)
        try:
            self._producer = Producer(given, logger=logs.librdkafka())
        except KafkaException as error:
            raise refused_property(error, config) from None
        self.topic = topic
        self._taken = 0
        self._lost = 0
        self._first: ClientError | None = None

    def send(self, key: bytes | None, value: bytes) -> None:
        while True:
            try:
                self._producer.produce(self.topic, value, key, on_delivery=self._delivered)
                break
            except BufferError:  # the queue is full: room comes with what is delivered
                self._producer.poll(_WAIT_S)
                self._raise_if_lost()
            except KafkaException as error:
                raise KafkaError(f"topic {self.topic} does not take a record: {error.args[0].str()}") from None
        self._taken += 1
        if self._taken % _POLL_EVERY == 0:
            self._producer.poll(0)
            self._raise_if_lost()

    def finish(self) -> None:
        """Wait until every record is delivered or lost."""
        while self._producer.flush(_WAIT_S):
            continue
        self._raise_if_lost()

    def _delivered(self, error: ClientError | None, message: Message) -> None:
        if error is not None:
            self._lost += 1
            self._first = self._first or error

    def _raise_if_lost(self) -> None:
        if self._first is not None:
            raise KafkaError(
                f"{self._lost:,} of {self._taken:,} records did not reach topic {self.topic}: {self._first.str()}"
            )
