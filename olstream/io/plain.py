"""at_least_once: flush, then commit the offsets. A crash in between publishes some records twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException, TopicPartition

from olstream import crash
from olstream.checkpoint import Partition
from olstream.config import Config
from olstream.errors import KafkaError
from olstream.io.claim import Claim
from olstream.io.client import CALL_S, NOT_A_MEMBER, REFUSED, Errors, bounded, client_error, pauses, producer
from olstream.io.kafka_admin import to_grant
from olstream.io.kafka_read import KafkaJournal
from olstream.io.kafka_source import marked
from olstream.io.outbox import NOBODY, Group, Outbox, Told
from olstream.journal import Line
from olstream.messages import Outgoing, Records
from olstream.ports import Lost


class PlainSink:
    """An idempotent producer. Its client repeats what it may; what fails for good is sent again as a whole."""

    def __init__(
        self,
        config: Config,
        run: str,
        journal: KafkaJournal,
        errors: Errors,
        told: Told = NOBODY,
    ) -> None:
        self.config = config
        self.errors = errors
        self.told = told
        self.group: Group | None = None  # set once we have joined
        self.note: Callable[[Partition], str] = lambda _at: ""
        self.outbox = Outbox(config, journal, told, on_failed=self._failed)
        self._failures: list[ClientError] = []
        self._claim = Claim(config, run, journal)
        self._client = producer(config, errors)

    def open_run(self, line: Line, offsets: Mapping[Partition, int] | None = None) -> int:
        self._flush(line)
        self._claim.announced(self.outbox.line_offset)
        if offsets:
            self.commit(None, offsets)
        return self.outbox.line_offset

    def publish(self, records: Records) -> None:
        self.outbox.columns.append(records)
        self._attempt(lambda: self.outbox.send_columns(self._client, records))

    def publish_one(self, record: Outgoing) -> None:
        self.outbox.singles.append(record)
        self._attempt(lambda: self.outbox.send_single(self._client, record))

    def commit(self, line: Line | None, offsets: Mapping[Partition, int]) -> int:
        assert self.group is not None
        self._flush(line)
        if line is not None:
            self._make_sure_of_the_slot()
        if offsets:
            self._commit_offsets(self.group, marked(offsets, self.note))
        if line is not None:
            self.group.in_doubt.clear()  # it has taken their place
        self.told.outcome("committed")
        return self._claim.read_from

    def look(self) -> int | None:
        with suppress(KafkaException):  # that it failed for good is told again by its next call
            self._client.poll(0)  # what it complains of would pile up
        return self._claim.look()

    def abandon(self) -> None:
        """Let go after Lost; raises FencedError where another worker has this slot now."""
        self._claim.lines()
        self.close()

    def close(self) -> None:
        self._client.purge()  # what is not committed is learnt again and sent anew

    def _make_sure_of_the_slot(self) -> None:
        """Nothing fences an idempotent producer, and a line after another run's opening line does not count."""
        at = self.outbox.line_offset
        if at > self._claim.read_from:
            self._claim.lines()  # somebody else's line stands before ours
        self._claim.read_from = at + 1

    def _commit_offsets(self, group: Group, ours: list[TopicPartition]) -> None:
        def commit() -> None:
            group.consumer.commit(offsets=ours, asynchronous=False)

        give_up_s = time.monotonic() + self.config.kafka_wait_s
        while True:
            try:
                crash.point("offsets.before")
                if group.is_rebalancing:
                    commit()
                else:
                    bounded(commit, self.config.kafka_wait_s, self.told.alive)
                crash.point("offsets.after")
                return
            except KafkaException as exception:
                error = client_error(exception)
            if error.code() in NOT_A_MEMBER:
                self.told.outcome("lost")
                raise Lost("the group gave our partitions away before the commit")
            if error.code() in REFUSED or time.monotonic() > give_up_s:
                raise KafkaError(f"Kafka does not take the offsets of group {self.config.group}: {self._told(error)}")
            self.told.alive()

    def _flush(self, line: Line | None) -> None:
        """Everything since the last commit, and the line, is with the broker."""
        give_up_s = time.monotonic() + self.config.kafka_wait_s
        pause = pauses()
        if line is not None:
            self._attempt(lambda: self.outbox.send_line(self._client, line))
        crash.point("flush.before")
        while self._client.flush(CALL_S) > 0 or self._failures:
            failures, self._failures = self._failures, []
            for error in failures:
                if error.code() in REFUSED or error.fatal() or time.monotonic() > give_up_s:
                    why = self.errors.trouble or self._told(error)
                    raise KafkaError(f"Kafka does not take what this worker writes: {why}")
            if failures:
                time.sleep(next(pause))
                self._attempt(lambda: self.outbox.send_all(self._client))
                if line is not None:
                    self._attempt(lambda: self.outbox.send_line(self._client, line))
            self.told.alive()
        crash.point("flush.after")
        self.outbox.clear()

    def _told(self, error: ClientError) -> str:
        return f"{error.str()}: grant {to_grant(self.config, error)}" if error.code() in REFUSED else error.str()

    def _attempt(self, send: Callable[[], None]) -> None:
        """What the client refuses at once is a failure like one that it reports later: all is sent again."""
        try:
            send()
        except KafkaException as exception:
            self._failures.append(client_error(exception))

    def _failed(self, error: ClientError) -> None:
        self.outbox.heed(error)
        self._failures.append(error)
