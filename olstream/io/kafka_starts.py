"""Where each partition of ours begins: from the group's committed offsets, and the mark in their metadata.

Asked inside a rebalance callback, and so of a reader beside the member, never of the member itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from confluent_kafka import OFFSET_INVALID, TopicPartition

from olstream.checkpoint import Partition
from olstream.config import Config
from olstream.errors import KafkaError, StateError
from olstream.handover import Taken, read_note
from olstream.io.client import Errors, answered, is_incremental, reader, watermarks
from olstream.io.kafka_read import MARK, KafkaJournal
from olstream.journal import Line, ends, is_below, reached
from olstream.ports import Lost

T = TypeVar("T")

AS_THEY_STAND: Final = "with the offsets as they stand by `olstream state rollback CONFIG --to SEQ` (or empty)"


@dataclass(frozen=True, slots=True)
class Start:
    """Where a partition begins. `is_ours`: we have committed that; `lost`: so many records are gone before it.

    `taken`: what stood beside what was committed, where it was ours.
    """

    offset: int
    is_ours: bool
    lost: int = 0
    taken: Taken | None = None


class Starts:
    """Asks, and refuses what somebody has to decide about."""

    def __init__(
        self,
        config: Config,
        journal: KafkaJournal,
        learnt: Mapping[Partition, int],
        in_doubt: list[Line],
        errors: Errors,
    ) -> None:
        """`learnt`: how far this slot has learnt each partition; a committed offset below it is a reset.

        `in_doubt`: lines that did not count when the models were recovered, and will should they be committed yet;
        those that no longer can be are taken out of the list.
        """
        self.config = config
        self.journal = journal
        self.learnt = learnt
        self.in_doubt = in_doubt
        self._incremental = is_incremental(config)
        self._reader = reader(config, errors)

    def of(self, partitions: Collection[Partition]) -> dict[Partition, Start]:
        """For partitions that the group has just given us."""
        if not partitions:
            return {}
        self._settle(partitions)
        offsets: dict[Partition, int] = {}
        strangers: dict[Partition, int] = {}
        taken: dict[Partition, Taken] = {}
        for tp in self._committed(partitions):
            at, said = (tp.topic, tp.partition), tp.metadata or ""
            if tp.offset >= 0 and said.startswith(MARK):
                offsets[at] = tp.offset
                taken[at] = Taken(tp.offset, read_note(said.removeprefix(MARK)))
            else:
                strangers[at] = tp.offset
        if strangers:
            self._refuse_reset(strangers)
            fresh_topics = self._topics_without_any_offset({topic for topic, _ in strangers})
            for at, offset in strangers.items():
                offsets[at] = offset if offset >= 0 else self._first(at, at[0] in fresh_topics)
        return {at: self._begun(at, offset, taken.get(at)) for at, offset in offsets.items()}

    def counts(self) -> dict[str, int]:
        """How many partitions each input topic has."""
        topics = self.config.input.topics
        return self._ask(
            lambda timeout_s: {topic: len(self._listed(topic, timeout_s)) for topic in topics},
            "how many partitions the input topics have",
        )

    def past_gap(self, at: Partition, start: int) -> Start:
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
            return Start(start, True)
        lost = low - start
        if self.config.input.on_gap == "fail":
            raise StateError(
                f"retention took {lost} records of {where} that were not read yet (offsets {start} to {low}): "
                "set input.on_gap: skip to go on without them, or restore the topic"
            )
        return Start(low, False, lost)

    def _begun(self, at: Partition, offset: int, taken: Taken | None) -> Start:
        self._refuse_behind(at, offset)
        start = self.past_gap(at, offset)
        return Start(start.offset, taken is not None and start.is_ours, start.lost, taken)

    def _settle(self, taken: Collection[Partition]) -> None:
        """Whoever wrote the lines in doubt has committed by now, or cannot any more."""
        if not self.in_doubt:
            return
        committed = {(tp.topic, tp.partition): tp.offset for tp in self._committed(reached(self.in_doubt))}
        if any(is_below(line, committed) for line in self.in_doubt):
            raise Lost("an earlier life of this slot has committed after we had looked")
        # A static member has its forerunner's place; without names that one may still hold what was not taken yet.
        ours = set(taken)
        self.in_doubt[:] = [line for line in self.in_doubt if self._incremental and not ours & reached([line]).keys()]

    def _committed(self, partitions: Iterable[Partition]) -> list[TopicPartition]:
        asked = [TopicPartition(*at) for at in partitions]
        found = self._ask(
            lambda timeout_s: self._reader.committed(asked, timeout_s),
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
            partitions = [TopicPartition(topic, p) for p in self._listed(topic, timeout_s)]
            return self._reader.committed(partitions, timeout_s)

        return self._ask(ask, f"what group {self.config.group} has committed of {topic}")

    def _listed(self, topic: str, timeout_s: float) -> list[int]:
        return list(self._reader.list_topics(topic, timeout_s).topics[topic].partitions)

    def _first(self, at: Partition, fresh: bool) -> int:
        low: int
        high: int  # the stable end: what is in an open transaction is still to come
        low, high = self._ask(
            lambda timeout_s: watermarks(self._reader, *at, timeout_s),
            f"the offsets of {at[0]}[{at[1]}]",
        )
        return high if fresh and self.config.input.start == "latest" else low

    def _ask(self, ask: Callable[[float], T], what: str) -> T:
        return answered(self._reader, ask, what, self.config.kafka_wait_s, self.journal.alive)
