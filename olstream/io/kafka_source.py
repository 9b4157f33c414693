"""Our part of the input topics, as this slot's member of the group.

Where each partition begins is decided here, from the group's committed offsets and the mark in
their metadata. Rebalance callbacks run inside `poll` and never raise: what went wrong in one is
kept and raised after it, because an exception out of a callback loses messages in hand. In a callback our
own consumer is asked for nothing but who it is, to assign, to unassign and to commit, and only on the callback's
thread: another question makes the client abort the process at its next callback, and another thread waits for
the poll that waits for it. A reader beside it answers questions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, Message, TopicPartition
from confluent_kafka import KafkaError as ClientError

from olstream import crash
from olstream.checkpoint import Partition
from olstream.config import Config
from olstream.errors import KafkaError, OlstreamError, StateError
from olstream.io.client import (
    REFUSED,
    Errors,
    answered,
    client_error,
    first_message,
    is_for_good,
    member,
    membership,
    reader,
    tells_of,
    to_chunk,
    watermarks,
)
from olstream.io.kafka_admin import to_grant
from olstream.io.kafka_read import KafkaJournal
from olstream.journal import Line, ends, is_below, reached
from olstream.messages import Chunk
from olstream.ports import Lost

log = logging.getLogger(__name__)

T = TypeVar("T")

AS_THEY_STAND: Final = "with the offsets as they stand by `olstream state rollback CONFIG --to SEQ` (or empty)"
MARK: Final = "olstream"  # in the metadata of every offset we commit: without it somebody else moved the group


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
        """`learnt`: how far this slot has learnt each partition; a committed offset below it is a reset.

        `in_doubt`: lines that did not count when the models were recovered, and will should they be committed yet.
        """
        self.config = config
        self.journal = journal
        self.learnt = learnt
        self.errors = errors
        self.on_change = on_change
        self.on_gap = on_gap
        self.next: dict[Partition, int] = {}  # of each partition that is ours: the next offset to hand out
        self._unmarked: dict[Partition, int] = {}
        self._gaps: dict[Partition, int] = {}  # before some of these: so many records were lost there
        self._passed: set[Partition] = set()  # where `next` went over holes that no later record tells of
        self._overtaken: set[Partition] = set()  # retention took what they would hand out next
        self.is_rebalancing = False
        self.in_doubt = list(in_doubt)
        self._before_revoke: Callable[[], None] = lambda: None
        self._failure: Exception | None = None
        self._incremental = not membership(config)  # KIP-848 assigns step by step
        self._reader = reader(config, errors)  # for questions about the group's offsets
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
        starts = self._starts(partitions) if partitions else {}
        self.next.update(starts)
        if self._incremental:
            consumer.incremental_assign(_with_offsets(starts))
        else:
            consumer.assign(_with_offsets(starts))
        self.errors.accepted()
        crash.point("take.after")
        log.info("assigned %s", _told(starts))
        self.on_change("assigned", self.next)

    def _give_up(self, consumer: Consumer, partitions: list[TopicPartition], kind: str) -> None:
        crash.point("revoke.before")
        for tp in partitions:
            self.next.pop((tp.topic, tp.partition), None)
            self._unmarked.pop((tp.topic, tp.partition), None)
            self._gaps.pop((tp.topic, tp.partition), None)
        if self._incremental:
            consumer.incremental_unassign(partitions)
        else:
            consumer.unassign()
        crash.point("revoke.after")
        log.info("%s %s", kind, ", ".join(f"{tp.topic}[{tp.partition}]" for tp in partitions))
        self.on_change(kind, self.next)

    # Where a partition begins.

    def _starts(self, partitions: list[TopicPartition]) -> dict[Partition, int]:
        self._settle(partitions)
        starts: dict[Partition, int] = {}
        strangers: dict[Partition, int] = {}
        for tp in self._committed(partitions):
            at = tp.topic, tp.partition
            if tp.offset >= 0 and (tp.metadata or "").startswith(MARK):
                starts[at] = tp.offset
            else:
                strangers[at] = tp.offset
        if strangers:
            self._refuse_reset(strangers)
            fresh_topics = self._topics_without_any_offset({topic for topic, _ in strangers})
            for at, offset in strangers.items():
                starts[at] = offset if offset >= 0 else self._first(at, at[0] in fresh_topics)
        for at, start in starts.items():
            self._refuse_behind(at, start)
            starts[at] = self._past_gap(at, start)
            if at in strangers or starts[at] > start:
                self._unmarked[at] = starts[at]
        return starts

    def _settle(self, taken: Iterable[TopicPartition]) -> None:
        """Whoever wrote the lines in doubt has committed by now, or cannot any more."""
        if not self.in_doubt:
            return
        named = [TopicPartition(*at) for at in reached(self.in_doubt)]
        committed = {(tp.topic, tp.partition): tp.offset for tp in self._committed(named)}
        if any(is_below(line, committed) for line in self.in_doubt):
            raise Lost("an earlier life of this slot has committed after we had looked")
        # A static member has its forerunner's place; without names that one may still hold what was not taken yet.
        ours = {(tp.topic, tp.partition) for tp in taken}
        self.in_doubt = [line for line in self.in_doubt if self._incremental and not ours & reached([line]).keys()]

    def _committed(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        found = self._ask(
            lambda timeout_s: self._reader.committed(partitions, timeout_s),
            f"what group {self.config.group} has committed",
        )
        for tp in found:
            if tp.error is not None:
                raise KafkaError(f"cannot read the committed offset of {tp.topic}[{tp.partition}]: {tp.error.str()}")
        return found

    def _refuse_reset(self, strangers: Mapping[Partition, int]) -> None:
        """An offset without our mark, of a partition that some slot's journal names: the group was reset.

        Where it is the very offset up to which the group has learnt, it was put back, and all is well.
        """
        for (topic, partition), end in sorted(ends(self.journal.read_all_slots(), strangers).items()):
            offset = strangers[topic, partition]
            if offset == end:
                continue
            found = "has no committed offset any more" if offset == OFFSET_INVALID else f"was set to offset {offset}"
            raise StateError(
                f"group {self.config.group} has learnt {topic}[{partition}] up to offset {end}, which now {found} by "
                f"other hands: stop all its workers and set it to {end}, or go on {AS_THEY_STAND}"
            )

    def _refuse_behind(self, at: Partition, start: int) -> None:
        if self.config.guarantee == "exactly_once" and start < self.learnt.get(at, 0):
            raise StateError(
                f"the committed offset {start} of {at[0]}[{at[1]}] lies below what this slot has learnt "
                f"({self.learnt[at]}): stop all its workers and set it to that, or go on {AS_THEY_STAND}"
            )

    def _topics_without_any_offset(self, topics: set[str]) -> set[str]:
        """`input.start` is for topics that are new to the group; a partition added later starts at its beginning."""
        fresh = set()
        for topic in topics:
            if all(tp.offset < 0 for tp in self._committed_everywhere(topic)):
                fresh.add(topic)
        return fresh

    def _committed_everywhere(self, topic: str) -> list[TopicPartition]:
        def ask(timeout_s: float) -> list[TopicPartition]:
            partitions = self._reader.list_topics(topic, timeout_s).topics[topic].partitions
            return self._reader.committed([TopicPartition(topic, p) for p in partitions], timeout_s)

        return self._ask(ask, f"what group {self.config.group} has committed of {topic}")

    def _first(self, at: Partition, fresh: bool) -> int:
        low: int
        high: int  # the stable end: what is in an open transaction is still to come
        low, high = self._ask(
            lambda timeout_s: watermarks(self._reader, *at, timeout_s),
            f"the offsets of {at[0]}[{at[1]}]",
        )
        return high if fresh and self.config.input.start == "latest" else low

    def _past_gap(self, at: Partition, start: int) -> int:
        """`start`, or where the partition begins now if retention was faster than we."""
        low, high = self.journal.watermarks.of(*at)
        where = f"{at[0]}[{at[1]}]"
        if start > high:
            raise StateError(
                f"the committed offset {start} of {where} lies past its end {high}: the topic was made anew or "
                "truncated; begin with a new `group`, or stop all workers and go on at the end with `olstream state "
                "rollback`"
            )
        if start >= low:
            return start
        lost = low - start
        if self.config.input.on_gap == "fail":
            raise StateError(
                f"retention took {lost} records of {where} that were not read yet (offsets {start} to {low}): "
                "set input.on_gap: skip to go on without them, or restore the topic"
            )
        self._gaps[at] = lost
        return low

    def _ask(self, ask: Callable[[float], T], what: str) -> T:
        return answered(self._reader, ask, what, self.config.kafka_wait_s, self.journal.alive)

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
            self.next[at] = self._unmarked[at] = self._past_gap(at, self.next[at])
        if overtaken:  # the client has stopped fetching them and lets nobody seek there: they are assigned anew
            if self._incremental:
                self.consumer.incremental_unassign([TopicPartition(*at) for at in overtaken])
                self.consumer.incremental_assign(_with_offsets({at: self.next[at] for at in overtaken}))
            else:
                self.consumer.assign(_with_offsets(self.next))


def marked(offsets: Mapping[Partition, int]) -> list[TopicPartition]:
    """Offsets to commit, as ours."""
    return [TopicPartition(topic, p, offset, metadata=MARK) for (topic, p), offset in sorted(offsets.items())]


def _with_offsets(starts: Mapping[Partition, int]) -> list[TopicPartition]:
    return [TopicPartition(topic, p, offset) for (topic, p), offset in sorted(starts.items())]


def _told(starts: Mapping[Partition, int]) -> str:
    return ", ".join(f"{topic}[{p}] from {offset}" for (topic, p), offset in sorted(starts.items())) or "nothing"
