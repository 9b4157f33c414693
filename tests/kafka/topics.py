"""Topics of a real broker as the tests see them: make, fill, read to the end, committed offsets."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec
from confluent_kafka.cimpl import NewPartitions, NewTopic

ANSWER_S = 30.0
SOON_S = 3.0


@dataclass(frozen=True)
class Record:
    value: bytes | None
    key: bytes | None = None
    headers: list[tuple[str, bytes | None]] = field(default_factory=list)
    partition: int = 0
    timestamp_ms: int = 0  # 0: when it is sent


def headers(message: Message) -> list[tuple[str, bytes | None]]:
    found = message.headers() or []
    assert isinstance(found, list)
    return [(name, value.encode() if isinstance(value, str) else value) for name, value in found]


def until(condition: Callable[[], bool], what: str, deadline_s: float = 60.0) -> None:
    """Wait until the condition holds; an assertion fails where it does not in time."""
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, f"not within {deadline_s:.0f} s: {what}"
        time.sleep(0.01)


class Topics:
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._client: dict[str, str | int | float] = {"bootstrap.servers": bootstrap, "log_level": 0}
        self._admin = AdminClient(dict(self._client))
        self._onlookers: dict[str, Consumer] = {}  # by group
        self._producer = Producer({**self._client, "linger.ms": 5, "acks": "all", "message.max.bytes": 20_000_000})

    def create(self, topic: str, partitions: int = 1, **settings: str) -> str:
        """Settings are the topic's own, with _ for a dot. Nothing expires: records of tests may be old."""
        config = {"retention.ms": "-1"} | {key.replace("_", "."): value for key, value in settings.items()}
        for done in self._admin.create_topics([NewTopic(topic, partitions, config=config)]).values():
            done.result(ANSWER_S)
        until(lambda: self.exists(topic), f"{topic} is there")
        return topic

    def exists(self, topic: str) -> bool:
        found = self._admin.list_topics(topic, timeout=ANSWER_S).topics[topic]
        return found.error is None and all(p.leader >= 0 for p in found.partitions.values())

    def leader(self, topic: str, partition: int = 0) -> int:
        """The node that leads a partition; -1 where none does, and where the node that we ask does not answer."""
        try:
            found = self._admin.list_topics(topic, timeout=SOON_S)
        except KafkaException:
            return -1
        return int(found.topics[topic].partitions[partition].leader)

    def delete(self, topic: str) -> None:
        for done in self._admin.delete_topics([topic]).values():
            done.result(ANSWER_S)
        until(lambda: topic not in self._admin.list_topics(timeout=ANSWER_S).topics, f"{topic} is gone")

    def grow(self, topic: str, partitions: int) -> None:
        for done in self._admin.create_partitions([NewPartitions(topic, partitions)]).values():
            done.result(ANSWER_S)
        until(lambda: len(self.partitions(topic)) == partitions, f"{topic} has {partitions} partitions")

    def delete_before(self, topic: str, offset: int, partition: int = 0) -> None:
        """As retention would: the records below `offset` are gone."""
        for done in self._admin.delete_records([TopicPartition(topic, partition, offset)]).values():
            done.result(ANSWER_S)

    def produce(self, topic: str, records: Iterable[Record | bytes]) -> None:
        """In order, and acknowledged when this returns."""
        failed: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failed.append(error)

        for record in records:
            r = Record(record) if isinstance(record, bytes) else record
            while True:
                try:
                    self._producer.produce(
                        topic, r.value, r.key, r.partition, delivered, timestamp=r.timestamp_ms, headers=list(r.headers)
                    )
                    break
                except BufferError:
                    self._producer.poll(0.1)
        assert self._producer.flush(ANSWER_S) == 0
        assert not failed, failed[0]

    def partitions(self, topic: str) -> list[TopicPartition]:
        found = self._admin.list_topics(topic, timeout=ANSWER_S).topics[topic].partitions
        return [TopicPartition(topic, p, 0) for p in sorted(found)]

    def end(self, topic: str) -> int:
        """How many offsets partition 0 has had, whatever stands there now."""
        found = self._admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.latest()})  # type: ignore[no-untyped-call]
        (done,) = found.values()
        return int(done.result(ANSWER_S).offset)

    def read(self, topic: str, isolation: str = "read_committed") -> list[Message]:
        """Every record, to the end of each partition as this reader sees it."""
        settings = {"group.id": "reader", "auto.offset.reset": "earliest", "enable.partition.eof": True}
        consumer = Consumer(
            {**self._client, **settings, "enable.auto.commit": False, "isolation.level": isolation},
        )
        partitions = self.partitions(topic)
        consumer.assign(partitions)
        records: list[Message] = []
        unfinished = {p.partition for p in partitions}
        deadline = time.monotonic() + ANSWER_S
        while unfinished:
            assert time.monotonic() < deadline, f"{topic}: no end of partitions {unfinished}"
            for message in consumer.consume(1000, 0.1):
                error = message.error()
                if error is None:
                    records.append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    unfinished.discard(message.partition())
                else:
                    raise AssertionError(error)
        consumer.close()
        return records

    def values(self, topic: str, isolation: str = "read_committed") -> list[bytes | None]:
        return [message.value() for message in self.read(topic, isolation)]

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """The group's offsets by partition, those of open transactions left out. Asking is not joining."""
        settings = {"group.id": group, "enable.auto.commit": False, "isolation.level": "read_uncommitted"}
        consumer = self._onlookers.get(group) or Consumer({**self._client, **settings})
        self._onlookers[group] = consumer
        partitions = self.partitions(topic)
        deadline = time.monotonic() + ANSWER_S
        while True:
            try:
                return {p.partition: p.offset for p in consumer.committed(partitions, ANSWER_S) if p.offset >= 0}
            except KafkaException as error:  # a coordinator that is still loading, or dead for a moment
                assert time.monotonic() < deadline, error
                time.sleep(0.05)

    def forget(self, group: str) -> None:
        """An operator deletes the group; it must have no members."""

        def deleted() -> bool:
            (done,) = self._admin.delete_consumer_groups([group]).values()
            return self._is_alone(done)

        until(deleted, f"{group} lets itself be deleted")

    def reset(self, group: str, topic: str, offset: int, partition: int = 0) -> None:
        """What an operator's tool does to a group without members: no mark, no transaction."""
        request = [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, partition, offset)])]
        until(lambda: self._altered(request), f"{group} lets its offset be moved")

    def _altered(self, request: list[ConsumerGroupTopicPartitions]) -> bool:
        (done,) = self._admin.alter_consumer_group_offsets(request).values()
        return self._is_alone(done)

    @staticmethod
    def _is_alone(done: Future[Any]) -> bool:
        """Whether nobody was in the group. A static member that left without a word is there until its session ends."""
        try:
            answer = done.result(ANSWER_S)
            errors = [p.error for p in answer.topic_partitions if p.error is not None] if answer else []
        except KafkaException as exception:
            errors = [exception.args[0]]
        assert all(e.code() in (KafkaError.UNKNOWN_MEMBER_ID, KafkaError.NON_EMPTY_GROUP) for e in errors), errors
        return not errors
