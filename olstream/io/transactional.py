"""exactly_once: predictions, dead letters, journal line and offsets in one Kafka transaction.

"Commit raised" is not "not committed", and what was aborted may stand in the broker's log all the same: after a
failure the sink never begins another transaction on the same producer. It makes a new one with the same id (which
completes or aborts what is open and fences late requests), and then the journal is the witness: our line is there
or it is not. Until then the bytes of the transaction are kept, and sent again unchanged if it was not
committed. The same way out where another producer of the slot fenced us: `claim` says who goes on.

Why not abort and go on: records that a broker stored without our hearing of it lose their sequence numbers in the
abort, and those of the next transaction get them. Of as many records the broker says that it has them already, the
client that they are delivered, and the commit goes through without them (librdkafka 2.16: `ADVBASE` in its log).

"Commit returned" is not "committed" either. Brokers from 4.1 on confirm a commit while a partition has no leader, as
all of a single broker's have not while it stops, and never write its mark there (KAFKA-20734): the next mark of the
same id then commits or aborts what was confirmed. So each transaction is kept until the one after it is through, and
after a failure the journal tells of both. It cannot tell of a partition that was without a leader by itself.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException, Producer

from olstream import crash
from olstream.checkpoint import Partition
from olstream.config import Config
from olstream.errors import KafkaError
from olstream.io.claim import Claim
from olstream.io.client import (
    CALL_S,
    NOT_A_MEMBER,
    PAUSE_S,
    REFUSED,
    Errors,
    bounded,
    client_error,
    pauses,
    producer,
    transaction_timeout_of,
)
from olstream.io.kafka_admin import CREDENTIALS, to_grant
from olstream.io.kafka_read import KafkaJournal
from olstream.io.kafka_source import marked
from olstream.io.outbox import NOBODY, Group, Outbox, Told
from olstream.journal import Line
from olstream.messages import Outgoing, Records
from olstream.ports import Lost

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Sent:
    """A transaction whose commit was confirmed: what it takes to send it again."""

    columns: list[Records]
    singles: list[Outgoing]
    lines: list[Line]
    offsets: dict[Partition, int]
    begins: int  # its lines stand in the journal from here on
    line_offset: int  # the last of them stands there


class TransactionalSink:
    """exactly_once: one transactional producer for the slot, `transactional.id` = <group>-<slot>."""

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
        self.outbox = Outbox(config, journal, told)
        self._open = False
        self._begun_s = 0.0
        self._failure: ClientError | None = None
        self._last: Sent | None = None  # the transaction before this one
        self._again: Sent | None = None  # it was taken back, and is sent once more with this one
        self._claim = Claim(config, run, journal)
        self._client = self._ready_client()
        self._claim.read_from = journal.end()

    def open_run(self, line: Line, offsets: Mapping[Partition, int] | None = None) -> int:
        self._commit(line, offsets or {})
        self._claim.announced(self.outbox.line_offset)
        return self.outbox.line_offset

    def publish(self, records: Records) -> None:
        self.outbox.columns.append(records)
        self._attempt(lambda: self.outbox.send_columns(self._client, records))

    def publish_one(self, record: Outgoing) -> None:
        self.outbox.singles.append(record)
        self._attempt(lambda: self.outbox.send_single(self._client, record))

    def commit(self, line: Line | None, offsets: Mapping[Partition, int]) -> int:
        self._commit(line, offsets)
        return self._claim.read_from

    def look(self) -> int | None:
        self._hear()
        end = self._claim.look()
        if end is not None and self._last is not None and end > self._last.line_offset + 1 and not self._open:
            self._last = None  # what follows could be read: it is no longer open, and cannot be taken back
        return end

    def abandon(self) -> None:
        """Let go after Lost; raises FencedError where another worker has this slot now."""
        if self._open:
            self.told.outcome("lost")
        self._claim.lines()
        self.close()

    def close(self) -> None:
        """End what is open. The client itself goes with us: closing it in words would wait for its broker."""
        if self._open:
            self._open = False
            try:
                self._client.abort_transaction(CALL_S)
            except KafkaException as exception:
                log.debug("the open transaction was left to the next start: %s", client_error(exception).str())
        self._client.purge()

    def _commit(self, line: Line | None, offsets: Mapping[Partition, int]) -> None:
        outcome = "committed"
        give_up_s = time.monotonic() + self.config.kafka_wait_s
        pause = pauses()
        self._attempt(lambda: self._end_with(line, offsets))
        while self._failure is not None:
            failure, self._failure = self._failure, None
            log.warning(
                "commit did not go through, finding out what became of it: %s", failure.str(), extra={"every_s": 10.0}
            )
            self.outbox.heed(failure)
            if self._is_committed_after(failure, line):
                outcome = "resolved_committed"
                break
            if time.monotonic() > give_up_s:
                why = self.errors.trouble or failure.str()
                raise KafkaError(f"Kafka took no transaction for {self.config.kafka_wait_s:g} s: {why}")
            self.told.alive()
            time.sleep(next(pause))
            self.outbox.refusals.clear()
            self._attempt(lambda: self.outbox.send_all(self._client))
            self._attempt(lambda: self._end_with(line, offsets))
            outcome = "resolved_resent"
        self._open = False
        self._keep(line, offsets)
        self.outbox.clear()
        self.told.outcome(outcome)

    def _keep(self, line: Line | None, offsets: Mapping[Partition, int]) -> None:
        again, lines = self._again, self._lines_with(line)
        self._again = None
        if not lines:
            return
        at, begins = self.outbox.line_offset, again.begins if again else self._claim.read_from
        columns, singles = list(self.outbox.columns), list(self.outbox.singles)
        self._last = Sent(columns, singles, lines, {**(again.offsets if again else {}), **offsets}, begins, at)
        self._claim.read_from = at + 1

    def _lines_with(self, line: Line | None) -> list[Line]:
        return [*(self._again.lines if self._again else []), *([line] if line is not None else [])]

    def _attempt(self, action: Callable[[], None]) -> None:
        """Do it inside the transaction. After a failure nothing more is tried in it: the commit sorts it out."""
        if self._failure is not None:
            return
        try:
            if not self._open:
                self._client.begin_transaction()
                self._open = True
                self._begun_s = time.monotonic()
            action()
        except KafkaException as exception:
            self._failure = client_error(exception)

    def _end_with(self, line: Line | None, offsets: Mapping[Partition, int]) -> None:
        for each in self._lines_with(line):
            self.outbox.send_line(self._client, each)
        self._send_offsets({**(self._again.offsets if self._again else {}), **offsets})
        crash.point("commit.before")
        self._patiently(self._client.commit_transaction)
        crash.point("commit.after")

    def _send_offsets(self, offsets: Mapping[Partition, int]) -> None:
        if not offsets:
            return
        assert self.group is not None
        ours = marked(offsets, self.note)
        member = self.group.consumer.consumer_group_metadata()  # never cached: it changes with every rebalance
        # Retriable but not resumable: repeated with the very same arguments.
        send = self._client.send_offsets_to_transaction
        crash.point("offsets.before")
        self._patiently(lambda timeout_s: bounded(lambda: send(ours, member, timeout_s), 2 * timeout_s, self._wait))
        crash.point("offsets.after")

    def _patiently(self, call: Callable[[float], Any]) -> None:
        """Repeat a call that may be repeated, until the broker would have given the transaction up anyway."""
        while True:
            try:
                call(CALL_S)
                return
            except KafkaException as exception:
                error = client_error(exception)
                if not error.retriable() or error.txn_requires_abort() or self._is_over_age():
                    raise
            self._wait()

    def _wait(self) -> None:
        self._hear()
        self.told.alive()

    def _hear(self) -> None:
        """Complaints of the client come in a poll alone. That it failed for good is told again by its next call."""
        with suppress(KafkaException):
            self._client.poll(0)

    def _is_committed_after(self, error: ClientError, line: Line | None) -> bool:
        """After a failed commit: True if it happened all the same, False if it can be sent again; else raises."""
        self._raise_if_refused(error)
        if error.txn_requires_abort():
            self._abort()
        committed = self._resolve(line)
        if not committed and error.code() in NOT_A_MEMBER:
            self._give_up()
        return committed

    def _abort(self) -> None:
        """Else what is read in the journal next waits until the broker gives the open transaction up."""
        try:
            self._patiently(self._client.abort_transaction)
        except KafkaException as exception:
            log.warning("abort did not go through: %s", client_error(exception).str())
            return
        self._open = False
        self.told.outcome("aborted")

    def _resolve(self, line: Line | None) -> bool:
        """With a new producer of the same id, read in the journal what became of our transaction."""
        self._lines()  # who has lost the slot makes no producer: it would fence the one that holds it
        self._open = False
        del self._client  # before the new one: whatever it still had to say is fenced then
        self._client = self._ready_client()
        lines = self._lines()
        if lines is None:
            log.warning("a commit that was confirmed is still open: the next one ends it")
            return False
        if line is not None and (found := _found(line, lines)) is not None:
            self.outbox.line_offset = found.offset
            return True
        if self._last is not None and _found(self._last.lines[-1], lines) is None:
            self._send_again(self._last)
        return False

    def _lines(self) -> list[Line] | None:
        """Those of our last transaction too; None where that one is still open, and nothing behind it is committed."""
        last = self._last
        if last is None:
            return self._claim.lines()
        if self._claim.journal.stable_end() == last.line_offset:
            return None
        return self._claim.lines(last.begins)

    def _send_again(self, last: Sent) -> None:
        """Its partitions have to be ours still: somebody else goes on from where it began."""
        log.error("the broker took back a commit that it had confirmed (KAFKA-20734): sending it again")
        ours = self.group.consumer.assignment() if self.group is not None else []
        if not last.offsets.keys() <= {(each.topic, each.partition) for each in ours}:
            self._give_up()
        self.outbox.columns[:0], self.outbox.singles[:0] = last.columns, last.singles
        self._last, self._again = None, last

    def _give_up(self) -> None:
        self.outbox.clear()
        self.told.outcome("lost")
        raise Lost("the group gave our partitions away before the commit")

    def _raise_if_refused(self, error: ClientError) -> None:
        for refusal in [error, *self.outbox.refusals]:
            if refusal.code() in REFUSED:
                grants = to_grant(self.config, refusal)
                raise KafkaError(f"Kafka refuses what this worker has to write ({refusal.str()}): grant {grants}")
        self.told.alive()

    def _is_over_age(self) -> bool:
        return time.monotonic() - self._begun_s > transaction_timeout_of(self.config)

    def _ready_client(self) -> Producer:
        """A producer that has fenced every earlier one of this slot, and ended what that left open."""
        client = producer(self.config, self.errors)
        give_up_s = time.monotonic() + self.config.kafka_wait_s
        pause_s = 0.0
        crash.point("init.before")
        while True:
            try:
                client.poll(pause_s)  # as in `_hear`
                client.init_transactions(CALL_S)
                crash.point("init.after")
                self.errors.accepted()
                return client
            except KafkaException as exception:
                error = client_error(exception)
            if error.code() in REFUSED:
                raise KafkaError(
                    f"Kafka refuses transactions to {self.config.group}-{self.config.slot} ({error.str()}): "
                    "grant WRITE on that transactional id"
                )
            waits = error.retriable() or error.code() in CREDENTIALS
            if not waits or time.monotonic() > give_up_s:
                raise KafkaError(f"transactions cannot be set up: {error.str()}")
            pause_s = PAUSE_S
            self.told.alive()


def _found(line: Line, lines: list[Line]) -> Line | None:
    """The line as it stands in the journal."""
    return next((found for found in lines if replace(found, offset=line.offset) == line), None)
