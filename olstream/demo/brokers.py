"""Where the demo's topics live: the client's own mock cluster, or a real Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from olstream.errors import KafkaError

ANSWER_S = 30.0


@dataclass(frozen=True)
class Names:
    """The topics and the group of one run of the demo: nobody else's."""

    prefix: str

    @property
    def input(self) -> str:
        return f"{self.prefix}-events"

    @property
    def predictions(self) -> str:
        return f"{self.prefix}-predictions"

    @property
    def dead_letters(self) -> str:
        return f"{self.prefix}-dead-letters"

    @property
    def journal(self) -> str:
        return f"{self.prefix}-journal"

    @property
    def all(self) -> Sequence[str]:
        return (self.input, self.predictions, self.dead_letters, self.journal)


class Broker(Protocol):
    bootstrap: str
    guarantee: str
    explained: str

    def make(self, topics: Sequence[str]) -> None: ...


class Embedded:
    """librdkafka's mock cluster, in this process: it lives as long as the producer that holds it.

    It forgets transactions' offsets and shows aborted records, so no guarantee can rest on it.
    """

    guarantee = "at_least_once"
    explained = (
        "An embedded broker, for the demo only: it lives in this process, keeps a few megabytes, and keeps no "
        "guarantees. --bootstrap uses your Kafka, exactly once."
    )

    def __init__(self) -> None:
        self._holder = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "", "log_level": 0})
        found = self._holder.list_topics(timeout=ANSWER_S).brokers
        self.bootstrap = ",".join(f"{broker.host}:{broker.port}" for broker in found.values())

    def make(self, topics: Sequence[str]) -> None:
        for topic in topics:
            self._holder.list_topics(topic, timeout=ANSWER_S)  # asked for is made


class Real:
    """A Kafka of the user's: topics of our own on it, which stay."""

    guarantee = "exactly_once"

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.explained = f"Your Kafka at {bootstrap}, exactly once. The topics of this run stay there."

    def make(self, topics: Sequence[str]) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        try:
            for done in admin.create_topics([NewTopic(topic, 1) for topic in topics]).values():
                done.result(ANSWER_S)
        except KafkaException as error:
            raise KafkaError(f"the topics of the demo cannot be made at {self.bootstrap}: {error}") from None
