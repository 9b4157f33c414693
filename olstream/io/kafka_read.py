"""Reading Kafka outside the group: this slot's journal lines, and input records by range.

Both read committed records to a known offset. Neither waits for a record at that offset:
transaction markers and aborted records leave holes, so it is position and end-of-partition that tell.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from confluent_kafka import KafkaError as ClientError

from olstream import crash
from olstream.checkpoint import Partition
from olstream.config import Config
from olstream.errors import KafkaError, StateError
from olstream.io.client import REFUSED, Errors, answered, reader, to_chunk, watermarks
from olstream.journal import Line, Range
from olstream.messages import Chunk

log = logging.getLogger(__name__)

MARK: Final = "olstream"  # in the metadata of every offset we commit: without it somebody else moved the group
READ_MAX = 500
AT_ONCE_S = 1.0  # what is only good to know is not waited for longer

Record: TypeAlias = tuple[int, bytes | None, bytes]  # of the journal: offset, key, value


class Overtaken(Exception):
    """What was to be read next is no longer there."""


class Cursor:
    """One partition read forward from an offset by a consumer of its own."""

    def __init__(self, consumer: Consumer, topic: str, partition: int, start: int, patience_s: float) -> None:
        self.consumer = consumer
        self.topic = topic
        self.partition = partition
        self.patience_s = patience_s
        self.position = start  # all records before it were handed out or are holes
        self._ahead: list[Message] = []
        self._is_overtaken = False
        consumer.assign([TopicPartition(topic, partition, start)])

    def read_to(self, end: int, alive: Callable[[], None]) -> Iterator[list[Message]]:
        """Messages up to `end`, in batches; what was read past it is kept for the next call. May raise Overtaken."""
        deadline = time.monotonic() + self.patience_s
        while self.position < end:
            batch, self._ahead = self._ahead or self._consume(), []
            inside = [m for m in batch if _offset(m) < end]
            self._ahead = batch[len(inside) :]
            if inside:
                self.position = _offset(inside[-1]) + 1
                yield inside
                deadline = time.monotonic() + self.patience_s  # what was done with them meanwhile is not Kafka's time
            if self._ahead:
                self.position = end  # the next record lies past the end: the rest are holes
            elif time.monotonic() > deadline:
                raise KafkaError(
                    f"{self.topic}[{self.partition}] could not be read from offset {self.position} to {end} "
                    f"within {self.patience_s:g} s: check that its broker answers, or raise kafka_wait"
                )
            alive()

    def _consume(self) -> list[Message]:
        messages = []
        for message in self.consumer.consume(READ_MAX, 0.05):
            error = message.error()
            if error is None:
                messages.append(message)
            elif error.code() == ClientError._PARTITION_EOF:
                self.position = max(self.position, _offset(message)) if not messages else self.position
            elif error.code() == ClientError._AUTO_OFFSET_RESET:
                self._is_overtaken = True
            elif error.code() in REFUSED:
                on = "this group" if error.code() == ClientError.GROUP_AUTHORIZATION_FAILED else "it"
                raise KafkaError(f"Kafka refuses to let us read {self.topic} ({error.str()}): grant READ on {on}")
        if not messages:
            if self._is_overtaken:  # told once all that had come before is handed out
                raise Overtaken
            (here,) = self.consumer.position([TopicPartition(self.topic, self.partition)])
            self.position = max(self.position, here.offset)  # steps over markers; negative while unknown
        return messages


def _offset(message: Message) -> int:
    offset = message.offset()
    assert offset is not None
    return offset


class Watermarks:
    """Where a partition begins and ends now, open transactions included where nobody says otherwise.

    A handle of its own: callbacks may ask.
    """

    def __init__(
        self,
        config: Config,
        errors: Errors,
        alive: Callable[[], None] = lambda: None,
        isolation: str = "read_uncommitted",
    ) -> None:
        self.alive = alive
        self.patience_s = config.kafka_wait_s
        self.consumer = reader(config, errors, isolation)

    def at_once(self, topic: str, partition: int) -> tuple[int, int] | None:
        """The same, or None where no broker tells within a second."""
        try:
            return watermarks(self.consumer, topic, partition, AT_ONCE_S)
        except KafkaException:
            self.consumer.poll(0)  # what it complains of would pile up
            return None

    def of(self, topic: str, partition: int) -> tuple[int, int]:
        return answered(
            self.consumer,
            lambda timeout_s: watermarks(self.consumer, topic, partition, timeout_s),
            f"the offsets of {topic}[{partition}]",
            self.patience_s,
            self.alive,
        )


class KafkaJournal:
    """The lines of one slot. Its partition is the slot modulo the topic's partitions."""

    def __init__(
        self, config: Config, partitions: int, errors: Errors, alive: Callable[[], None] = lambda: None
    ) -> None:
        self.config = config
        self.topic = config.journal_topic
        self.partition = config.slot % partitions
        self.partitions = partitions
        self.errors = errors
        self.alive = alive
        self.watermarks = Watermarks(config, errors, alive)

    def read(self, start: int) -> list[Line]:
        """This slot's lines from an offset to the end as it is now."""
        crash.point("journal.before")
        found = self._own(self._records(self.partition, start))
        crash.point("journal.after")
        return found

    def read_all_slots(self) -> Iterator[Line]:
        """Every line of every slot that is still there."""
        for partition in range(self.partitions):
            for at, _, value in self._records(partition, 0):
                yield Line.from_bytes(value, at)

    def end(self) -> int:
        return self.watermarks.of(self.topic, self.partition)[1]

    def stable_end(self) -> int:
        """Up to where no transaction is open, of whichever slot: committed lines behind it cannot be read yet."""
        asking = Watermarks(self.config, self.errors, self.alive, "read_committed")
        try:
            return asking.of(self.topic, self.partition)[1]
        finally:
            asking.consumer.close()

    def read_at_once(self, start: int) -> tuple[list[Line], int] | None:
        """The lines from an offset that may be gone, and the end as it is now; None where that takes long."""
        found = self.watermarks.at_once(self.topic, self.partition)
        if found is None:
            return None
        low, high = found
        try:
            return self._own(self._read_to(high, self.partition, max(start, low), AT_ONCE_S)), high
        except (KafkaError, Overtaken):
            return None

    def is_cut(self) -> bool:
        """Whether its beginning has been taken away, by retention or by hand."""
        return self.watermarks.of(self.topic, self.partition)[0] > 0

    def _own(self, records: Iterable[Record]) -> list[Line]:
        key = str(self.config.slot).encode()
        return [Line.from_bytes(value, at) for at, name, value in records if name == key]

    def _records(self, partition: int, start: int) -> Iterator[Record]:
        low, high = self.watermarks.of(self.topic, partition)
        if start > high or 0 < start < low:
            raise self._cut(partition, start)
        try:
            yield from self._read_to(high, partition, max(start, low), self.config.kafka_wait_s)
        except Overtaken:
            raise self._cut(partition, start) from None

    def _read_to(self, end: int, partition: int, start: int, patience_s: float) -> Iterator[Record]:
        if start >= end:
            return
        consumer = reader(self.config, self.errors)
        try:
            cursor = Cursor(consumer, self.topic, partition, start, patience_s)
            for messages in cursor.read_to(end, self.alive):
                for message in messages:
                    value = message.value()
                    if value is not None:
                        yield _offset(message), message.key(), value
        finally:
            consumer.close()

    def _cut(self, partition: int, start: int) -> StateError:
        low, high = self.watermarks.of(self.topic, partition)
        return StateError(
            f"the journal {self.topic}[{partition}] holds offsets {low} to {high}, and is needed from {start}: it was "
            "cut or made anew; go on from a checkpoint with `olstream state rollback`, or move the state directory "
            "away and set checkpoint.on_missing: fresh to begin anew"
        )


class KafkaInputs:
    """Input records by range, one consumer a partition, so that going on where one stopped costs nothing."""

    def __init__(
        self,
        config: Config,
        errors: Errors,
        alive: Callable[[], None] = lambda: None,
        on_gap: Callable[[str, int], None] = lambda _topic, _lost: None,
    ) -> None:
        self.config = config
        self.errors = errors
        self.alive = alive
        self.on_gap = on_gap
        self.lost = 0
        self.watermarks = Watermarks(config, errors, alive)
        self._cursors: dict[Partition, Cursor] = {}

    def read(self, wanted: Range, records_max: int) -> Iterator[Chunk]:
        cursor = self._cursor_at(wanted)
        try:
            for messages in cursor.read_to(wanted.end, self.alive):
                messages = [m for m in messages if _offset(m) >= wanted.start]
                for i in range(0, len(messages), records_max):
                    yield to_chunk(wanted.topic, wanted.partition, messages[i : i + records_max])
        except Overtaken:
            self._cursors.pop((wanted.topic, wanted.partition)).consumer.close()
            yield from self.read(replace(wanted, start=max(wanted.start, cursor.position)), records_max)

    def committed(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        return {at: tp.offset for at, tp in self._committed(partitions).items()}

    def notes(self, partitions: Sequence[Partition]) -> dict[Partition, str]:
        said = {at: tp.metadata or "" for at, tp in self._committed(partitions).items()}
        return {at: text.removeprefix(MARK) for at, text in said.items() if text.startswith(MARK)}

    def _committed(self, partitions: Sequence[Partition]) -> dict[Partition, TopicPartition]:
        if not partitions:
            return {}
        consumer = reader(self.config, self.errors)
        try:
            found = answered(
                consumer,
                lambda timeout_s: consumer.committed([TopicPartition(*p) for p in partitions], timeout_s),
                f"what group {self.config.group} has committed",
                self.config.kafka_wait_s,
                self.alive,
            )
        finally:
            consumer.close()
        return {(tp.topic, tp.partition): tp for tp in found if tp.offset >= 0}

    def end(self, topic: str, partition: int) -> int:
        return self.watermarks.of(topic, partition)[1]

    def begin(self, topic: str, partition: int) -> int:
        return self.watermarks.of(topic, partition)[0]

    def close(self) -> None:
        for cursor in self._cursors.values():
            cursor.consumer.close()
        self._cursors.clear()

    def _cursor_at(self, wanted: Range) -> Cursor:
        at = wanted.topic, wanted.partition
        cursor = self._cursors.get(at)
        if cursor is not None and cursor.position <= wanted.start <= cursor.position + READ_MAX:
            return cursor  # reading over a few holes, or another slot's records, is cheaper than fetching anew
        start = self._start(wanted)
        consumer = cursor.consumer if cursor else reader(self.config, self.errors)
        self._cursors[at] = Cursor(consumer, *at, start, self.config.kafka_wait_s)
        return self._cursors[at]

    def _start(self, wanted: Range) -> int:
        low, high = self.watermarks.of(wanted.topic, wanted.partition)
        where = f"{wanted.topic}[{wanted.partition}]"
        if high < wanted.end:
            raise StateError(
                f"{where} ends at {high}, the journal says that it was learnt up to {wanted.end}: the topic was made "
                "anew or truncated; begin with a new `group`, or go on from a checkpoint with `olstream state rollback`"
            )
        if low <= wanted.start:
            return wanted.start
        lost = min(low, wanted.end) - wanted.start
        if self.config.input.on_gap == "fail":
            raise StateError(
                f"retention took {lost} records of {where} ({wanted.start} to {wanted.start + lost}) that have to be "
                "learnt again: restore the topic, set input.on_gap: skip to go on without them, or move the state "
                "directory away and set checkpoint.on_missing: fresh to begin anew"
            )
        log.error("%d records of %s are gone and cannot be learnt again (input.on_gap: skip)", lost, where)
        self.lost += lost
        self.on_gap(wanted.topic, lost)
        return min(low, wanted.end)
