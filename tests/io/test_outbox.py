"""What goes to a producer, and with which time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import TIMESTAMP_CREATE_TIME
from confluent_kafka import KafkaError as ClientError

from olstream.config import Config
from olstream.io.outbox import Outbox, Told
from olstream.journal import Line
from olstream.messages import Outgoing, Records

LINE = Line(0, "run", "lineage", 1)


@dataclass
class FakeMessage:
    at_ms: int

    def offset(self) -> int:
        return 7

    def timestamp(self) -> tuple[int, int]:
        return TIMESTAMP_CREATE_TIME, self.at_ms


@dataclass
class FakeProducer:
    """Its broker takes every line, at noon."""

    stamps: list[int | None] = field(default_factory=list)

    def produce(
        self,
        _topic: str,
        _value: bytes,
        _key: bytes,
        on_delivery: Callable[[None, Any], None] | None = None,
        timestamp: int | None = None,
        **_more: object,
    ) -> None:
        self.stamps.append(timestamp)
        if on_delivery is not None:
            on_delivery(None, FakeMessage(NOON_MS))

    def poll(self, _timeout_s: float) -> None: ...


@dataclass
class FakeJournal:
    topic: str = "journal"
    partition: int = 0


NOON_MS = 1_796_040_000_000


def outbox() -> Outbox:
    config = Config.model_validate({"learners": {"a": {"algorithm": "arow"}}})
    return Outbox(config, FakeJournal(), Told())  # type: ignore[arg-type]


def send_everything(box: Outbox, client: Any) -> None:
    box.send_columns(client, Records("predictions", [None], [b"{}"], None))
    box.send_single(client, Outgoing("dead-letters", None, b"{", []))
    box.send_line(client, LINE)


def test_records_have_the_clients_own_time() -> None:
    box, client = outbox(), FakeProducer()

    box.heed(ClientError(ClientError._TIMED_OUT))
    send_everything(box, client)

    assert client.stamps == [None, None, None]


def test_where_a_broker_refuses_our_time_records_have_its_own() -> None:
    box, client = outbox(), FakeProducer()
    box.send_line(client, LINE)  # type: ignore[arg-type]

    box.heed(ClientError(ClientError.INVALID_TIMESTAMP))
    client.stamps.clear()
    send_everything(box, client)

    assert all(stamp is not None and NOON_MS <= stamp < NOON_MS + 60_000 for stamp in client.stamps)
    assert len(client.stamps) == 3


def test_before_any_line_was_taken_nobody_knows_the_brokers_time() -> None:
    box, client = outbox(), FakeProducer()

    box.heed(ClientError(ClientError.INVALID_TIMESTAMP))
    send_everything(box, client)

    assert client.stamps[0] is None
