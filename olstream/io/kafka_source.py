"""Our part of the input topics, as this slot's member of the group.

Where each partition begins is asked in `Starts`, and which of them may be read, where topics belong together, in
`Pairs`. Rebalance callbacks run inside `poll` and never raise: what went wrong in one is kept and raised after it,
because an exception out of a callback loses messages in hand. In a callback our own consumer is asked for nothing but
who it is, to assign, to unassign and to commit, and only on the callback's thread: another question makes the client
abort the process at its next callback, and another thread waits for the poll that waits for it. A reader beside it
answers questions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from confluent_kafka import KafkaError as ClientError

from olstream import crash
from olstream.checkpoint import Partition
from olstream.config import Config
from olstream.errors import KafkaError, OlstreamError
from olstream.handover import Moved, Taken
from olstream.io.client import (
    REFUSED,
    Errors,
    client_error,
    first_message,
    is_for_good,
    is_incremental,
    member,
    tells_of,
    to_chunk,
)
from olstream.io.kafka_admin import to_grant
from olstream.io.kafka_read import MARK, KafkaJournal
from olstream.io.kafka_starts import Start, Starts
from olstream.journal import Line
from olstream.messages import Chunk
from olstream.pairs import Pairs, named
from olstream.ports import Lost

log = logging.getLogger(__name__)


class KafkaSource:
    """A consumer that belongs to the group, from joining to leaving."""

    def __init__(
        self,
        config: Config,
        journal: KafkaJournal,
        learnt: Mapping[Partition, int],
        errors: Errors,
        on_change: Callable[[str, Mapping[Partition, int]], None] = lambda _kind, _next: None,
        on_statistics: Callable[[str], None] = lambda _: None,
        on_gap: Callable[[str, int], None] = lambda _topic, _lost: None,
        in_doubt: Sequence[Line] = (),
    ) -> None:
        """`learnt`, `in_doubt`: see `Starts`."""
        self.config = config
        self.errors = errors
        self.on_change = on_change
        self.on_gap = on_gap
        self.given: set[Partition] = set()  # what the group gave us
        self.next: dict[Partition, int] = {}  # of each of them that we read: the next offset to hand out
        self._unmarked: dict[Partition, int] = {}
        self._gaps: dict[Partition, int] = {}  # before some of these: so many records were lost there
        self._taken: dict[Partition, Taken] = {}
        self._gone: set[Partition] = set()
        self._has_moved = False
        self._passed: set[Partition] = set()  # where `next` went over holes that no later record tells of
        self._overtaken: set[Partition] = set()  # retention took what they would hand out next
        self.is_rebalancing = False
        self._before_revoke: Callable[[], None] = lambda: None
        self._failure: Exception | None = None
        self._incremental = is_incremental(config)
        self._pairs = Pairs(config)
        self.in_doubt = list(in_doubt)
        self._starts = Starts(config, journal, learnt, self.in_doubt, errors)
        self.consumer: Consumer = member(config, errors, on_statistics, self._complained)
        crash.point("join.before")
        self.consumer.subscribe(
            list(config.input.topics), on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )
        crash.point("join.after")

    def on_revoke(self, before_revoke: Callable[[], None]) -> None:
        self._before_revoke = before_revoke

    def unmarked(self) -> Mapping[Partition, int]:
        starts, self._unmarked = self._unmarked, {}
        gaps, self._gaps = self._gaps, {}
        for (topic, p), lost in gaps.items():  # told here, where they are gone past for good, and so once
            begins = starts[topic, p]
            log.error(
                "retention took %d records of %s[%d]: going on at %d (input.on_gap: skip)", lost, topic, p, begins
            )
            self.on_gap(topic, lost)
        return starts

    def moved(self) -> Moved | None:
        if not self._has_moved:
            return None
        moved = Moved(self._taken, frozenset(self.given), frozenset(self._gone), not self._incremental)
        self._taken, self._gone, self._has_moved = {}, set(), False
        return moved

    def passed(self) -> Mapping[Partition, int]:
        passed, self._passed = self._passed, set()
        return {at: self.next[at] for at in passed if at in self.next}

    def is_settled(self) -> bool:
        return not self.in_doubt

    def poll(self, records_max: int, timeout_s: float) -> list[Chunk]:
        self._go_past_gaps()
        # consume(n, t) waits for n messages or all of t; this waits for the first and takes what is there.
        first = first_message(self.consumer, timeout_s)
        messages = []
        if first is not None:
            messages = [first, *self.consumer.consume(records_max - 1, 0)] if records_max > 1 else [first]
        self._raise_failure()
        self.errors.raise_if_refused()
        self._pairs.refuse_split()
        chunks = list(self._chunks(messages))
        if not chunks:
            self._go_over_holes()
        return chunks

    def close(self) -> None:
        """Static members do not leave: the slot keeps its partitions for the session timeout."""
        self._before_revoke = lambda: None
        crash.point("leave.before")
        self.consumer.close()
        crash.point("leave.after")

    def _chunks(self, messages: list[Message]) -> Iterator[Chunk]:
        by_partition: dict[Partition, list[Message]] = {}
        for message in messages:
            error = message.error()
            if error is not None:
                self._judge(error, message)
                continue
            at: Partition = (message.topic(), message.partition())  # type: ignore[assignment]
            if at in by_partition:
                by_partition[at].append(message)
            else:
                by_partition[at] = [message]
        for at in sorted(by_partition):
            # A rebalance inside this very poll can leave records in hand that went away, or will come again.
            expected = self.next.get(at)
            if expected is None:
                continue
            ours = by_partition[at]
            if ours[0].offset() < expected:  # type: ignore[operator]
                ours = [m for m in ours if m.offset() >= expected]  # type: ignore[operator]
            if ours:
                self.next[at] = ours[-1].offset() + 1  # type: ignore[operator]
                yield to_chunk(*at, ours)

    def _complained(self, error: ClientError) -> None:
        """What the consumer says on the side. That it failed for good may come here and nowhere else."""
        self.errors(error)
        if is_for_good(error) and self._failure is None:
            self._failure = self._fatal(error)

    def _fatal(self, error: ClientError) -> Exception:
        if tells_of(error, ClientError.FENCED_INSTANCE_ID):
            return Lost("somebody else has our name in the group")
        if tells_of(error, ClientError.UNSUPPORTED_ASSIGNOR):
            return KafkaError(
                "the brokers do not offer the range assignor, which keeps partition i of all topics together: add "
                "range to their group.consumer.assignors, or use group.protocol: classic"
            )
        return KafkaError(f"the consumer failed for good: {error.str()}")

    def _judge(self, error: ClientError, message: Message) -> None:
        code = error.code()
        if code == ClientError._PARTITION_EOF:
            return
        if is_for_good(error) or code == ClientError.FENCED_INSTANCE_ID:
            raise self._fatal(error)
        if code == ClientError._MAX_POLL_EXCEEDED:
            raise Lost(error.str())
        if code == ClientError._AUTO_OFFSET_RESET:
            self._overtaken.add((message.topic(), message.partition()))  # type: ignore[arg-type]
        elif code in REFUSED:
            grants = to_grant(self.config, error)
            raise KafkaError(f"Kafka refuses what group {self.config.group} needs ({error.str()}): grant {grants}")
        else:
            self.errors(error)

    # The callbacks. They run inside poll, on its thread.

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        # A static member that comes back gets its old partitions at first, also of topics that it reads no more.
        ours = [tp for tp in partitions if tp.topic in self.config.input.topics]
        self._guarded(lambda: self._take(consumer, ours))

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.is_rebalancing = True
        self._guarded(self._before_revoke)
        self.is_rebalancing = False
        self._guarded(lambda: self._give_up(consumer, partitions, "revoked"))

    def _lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._guarded(lambda: self._give_up(consumer, partitions, "lost"))
        if partitions and self._failure is None:
            self._failure = Lost("the group gave our partitions away")

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except (OlstreamError, Lost) as failure:
            self._failure = self._failure or failure
        except KafkaException as exception:
            self._failure = self._failure or KafkaError(f"Kafka failed in a rebalance: {client_error(exception).str()}")
        except Exception as failure:  # anything that leaves a callback would lose messages in hand
            self._failure = self._failure or failure

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _take(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        crash.point("take.before")
        new = {(tp.topic, tp.partition) for tp in partitions}
        self.given |= new
        if new and len(self.config.input.topics) > 1:
            self._pairs.count(self._starts.counts())
        self._pairs.look(self.given)
        begun = self.given - self._pairs.waiting - self.next.keys()
        for at, start in self._starts.of(sorted(new | begun)).items():
            if at in begun:
                self._begin_at(at, start)
                self._taken[at] = start.taken or Taken(start.offset, None)
            elif not start.is_ours and not start.lost:
                self._unmarked[at] = start.offset  # it begins here, whenever that will be
        if self._incremental:
            consumer.incremental_assign(self._with_offsets(begun))
        else:
            consumer.assign(self._with_offsets(self.next))
        self.errors.accepted()
        self._has_moved = True
        crash.point("take.after")
        log.info("assigned %s", ", ".join(f"{t}[{p}] from {self.next[t, p]}" for t, p in sorted(begun)) or "nothing")
        self.on_change("assigned", self.next)

    def _begin_at(self, at: Partition, start: Start) -> None:
        self.next[at] = start.offset
        if not start.is_ours:
            self._unmarked[at] = start.offset
        if start.lost:
            self._gaps[at] = start.lost

    def _give_up(self, consumer: Consumer, partitions: list[TopicPartition], kind: str) -> None:
        crash.point("revoke.before")
        gone = {(tp.topic, tp.partition) for tp in partitions}
        for at in gone:
            self._unmarked.pop(at, None)
            self._gaps.pop(at, None)
            self._taken.pop(at, None)
        self.given -= gone
        self._gone |= gone
        self._has_moved = self._incremental  # else nobody knows yet what stays
        self._pairs.look(self.given)
        gone |= self._pairs.waiting  # committed like the rest, and read on from there once the other half is back
        read = sorted(gone & self.next.keys())
        for at in read:
            del self.next[at]
        if self._incremental:
            consumer.incremental_unassign([TopicPartition(*at) for at in read])
        else:
            consumer.unassign()
        crash.point("revoke.after")
        log.info("%s %s", kind, named(gone))
        self.on_change(kind, self.next)

    # Between polls.

    def _go_over_holes(self) -> None:
        """Other people's transactions end in markers, and aborted ones are only holes: no record tells of them."""
        for tp in self.consumer.position([TopicPartition(*at) for at in self.next]):
            at = tp.topic, tp.partition
            if tp.offset > self.next[at]:
                self.next[at] = tp.offset
                self._passed.add(at)

    def _go_past_gaps(self) -> None:
        """What came before a gap has been handed out by now: it is committed, and a new line begins after the gap."""
        overtaken, self._overtaken = self._overtaken & self.next.keys(), set()
        if overtaken:
            self._before_revoke()
        for at in sorted(overtaken):
            start = self._starts.past_gap(at, self.next[at])
            self._begin_at(at, Start(start.offset, False, start.lost))
        if overtaken:  # the client has stopped fetching them and lets nobody seek there: they are assigned anew
            if self._incremental:
                self.consumer.incremental_unassign([TopicPartition(*at) for at in overtaken])
                self.consumer.incremental_assign(self._with_offsets(overtaken))
            else:
                self.consumer.assign(self._with_offsets(self.next))

    def _with_offsets(self, partitions: Iterable[Partition]) -> list[TopicPartition]:
        return [TopicPartition(*at, self.next[at]) for at in sorted(partitions)]


def marked(offsets: Mapping[Partition, int], note: Callable[[Partition], str]) -> list[TopicPartition]:
    """Offsets to commit, as ours."""
    return [TopicPartition(*at, offset, metadata=f"{MARK}{note(at)}") for at, offset in sorted(offsets.items())]
