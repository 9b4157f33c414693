"""What was sent since the last commit, kept until its outcome is known, and the sending of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaException, Message, Producer
from confluent_kafka import KafkaError as ClientError

from olstream import crash
from olstream.config import Config
from olstream.encode import cut
from olstream.io.client import client_error
from olstream.io.kafka_read import KafkaJournal
from olstream.journal import Line
from olstream.messages import Outgoing, Records

log = logging.getLogger(__name__)


class Group(Protocol):
    """Who we are in the group at this moment."""

    consumer: Consumer
    is_rebalancing: bool  # inside a callback, where no other thread may call the consumer
    in_doubt: list[Line]  # of earlier lives, and not committed as far as we know


# By ourselves, when a transaction is aborted or a producer let go: nobody refused these.
WITHDRAWN: Final = frozenset({ClientError._PURGE_QUEUE, ClientError._PURGE_INFLIGHT})


@dataclass(frozen=True, slots=True)
class Told:
    """Whom a sink tells: of a wait on purpose, of how a transaction ended, of what a broker refused (topic, code)."""

    alive: Callable[[], None] = lambda: None
    outcome: Callable[[str], None] = lambda _: None
    refused: Callable[[str, str], None] = lambda _topic, _code: None


NOBODY: Final = Told()


class Outbox:
    """Records by columns, dead letters one by one, and the journal line."""

    def __init__(
        self,
        config: Config,
        journal: KafkaJournal,
        told: Told,
        on_failed: Callable[[ClientError], None] | None = None,
    ) -> None:
        """`on_failed` hears of each record that was not delivered; a transaction does without: its commit fails."""
        self.config = config
        self.on_failed = on_failed
        self.journal = journal
        self.told = told
        self.columns: list[Records] = []
        self.singles: list[Outgoing] = []
        self.refusals: list[ClientError] = []  # of dead letters and journal lines
        self.line_offset = -1  # where the last line stands in the journal, once it is delivered
        self._taken: tuple[int, float] | None = None  # the time of a line that a broker took, and our steady clock then
        self._is_ahead = False  # a broker refuses the time of this machine

    def heed(self, error: ClientError) -> None:
        """Brokers refuse records from the future. They take the last time that they took, and what passed since."""
        if error.code() == ClientError.INVALID_TIMESTAMP and not self._is_ahead:
            self._is_ahead = True
            log.error("Kafka refuses the time of this machine: set its clock; until then records get Kafka's own time")

    def send_columns(self, client: Producer, records: Records) -> None:
        topic = records.topic
        headers = records.headers or [None] * len(records.values)
        rows = zip(records.keys, records.values, headers, strict=True)
        pending = [row for row in rows if row[1] is not None]
        produce, done = client.produce, 0
        crash.point("produce.before")
        reports = self._stamp() if self.on_failed is None else {"on_delivery": self._delivered, **self._stamp()}
        while done < len(pending):
            try:
                for key, value, extra in pending[done:]:
                    if extra:
                        produce(topic, value, key, headers=extra, **reports)  # type: ignore[arg-type]
                    elif reports:
                        produce(topic, value, key, **reports)
                    else:
                        produce(topic, value, key)  # a third cheaper
                    done += 1
            except BufferError:
                self.wait_for_room(client)
        client.poll(0)
        crash.point("produce.after")

    def send_single(self, client: Producer, record: Outgoing) -> None:
        def delivered(error: ClientError | None, _message: Message) -> None:
            if error is None:
                return
            if error.code() == ClientError.MSG_SIZE_TOO_LARGE:
                shorten(record)  # for when it is sent again
            self._refused(record.topic, error)

        crash.point("produce.before")
        while True:
            try:
                self.produce(
                    client, record.topic, record.value, record.key, headers=record.headers, on_delivery=delivered
                )
                crash.point("produce.after")
                return
            except KafkaException as exception:
                error = client_error(exception)
                if error.code() != ClientError.MSG_SIZE_TOO_LARGE:
                    raise
                self._tell(record.topic, error)
                if not shorten(record):
                    raise

    def send_line(self, client: Producer, line: Line) -> None:
        def delivered(error: ClientError | None, message: Message) -> None:
            if error is not None:
                self._refused(self.journal.topic, error)
                return
            kind, at_ms = message.timestamp()
            if kind != TIMESTAMP_NOT_AVAILABLE:
                self._taken = at_ms, time.monotonic()
            offset = message.offset()
            # What was sent again and was there already may be confirmed without its place: then it is the last of ours.
            self.line_offset = self.journal.end() - 1 if offset is None or offset < 0 else offset

        key = str(self.config.slot).encode()
        partition = self.journal.partition
        crash.point("line.before")
        self.produce(client, self.journal.topic, line.to_bytes(), key, partition=partition, on_delivery=delivered)
        crash.point("line.after")

    def produce(self, client: Producer, topic: str, value: bytes | None, key: bytes | None, **more: Any) -> None:
        while True:
            try:
                client.produce(topic, value, key, **more, **self._stamp())
                return
            except BufferError:
                self.wait_for_room(client)

    def _stamp(self) -> dict[str, Any]:
        """Nothing where the client's own clock will do."""
        if not self._is_ahead or self._taken is None:
            return {}
        taken_ms, at_s = self._taken
        return {"timestamp": taken_ms + int(1000 * (time.monotonic() - at_s))}

    def _delivered(self, error: ClientError | None, message: Message) -> None:
        if error is not None and self.on_failed is not None:
            self._tell(message.topic() or "", error)
            self.on_failed(error)

    def _tell(self, topic: str, error: ClientError) -> None:
        if error.code() not in WITHDRAWN:
            self.told.refused(topic, error.name())

    def _refused(self, topic: str, error: ClientError) -> None:
        self._tell(topic, error)
        self.refusals.append(error)
        if self.on_failed is not None:
            self.on_failed(error)

    def wait_for_room(self, client: Producer) -> None:
        """The local queue is full: consumption waits until the broker has taken some of it."""
        self.told.alive()
        client.poll(0.05)

    def send_all(self, client: Producer) -> None:
        for records in self.columns:
            self.send_columns(client, records)
        for record in self.singles:
            self.send_single(client, record)

    def clear(self) -> None:
        self.columns.clear()
        self.singles.clear()
        self.refusals.clear()


def shorten(record: Outgoing) -> bool:
    """A record that is refused for its size is cut, never sent again unchanged. False where nothing is left to cut."""
    smaller = cut(record)
    if smaller is record:
        return False
    record.key, record.value, record.headers = smaller.key, smaller.value, smaller.headers
    return True
