"""What a member of the group reads of the partitions it is given, where two topics belong together.

The client and the reader beside it are imitations that say what they were asked; groups are in tests/kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from confluent_kafka import KafkaError as ClientError
from confluent_kafka import TopicPartition

from olstream import pairs
from olstream.checkpoint import Partition
from olstream.config import parse
from olstream.errors import ConfigError, KafkaError, StateError
from olstream.handover import Note, Taken
from olstream.io import kafka_source, kafka_starts
from olstream.io.client import Errors
from olstream.io.kafka_source import KafkaSource

Callback = Callable[[Any, list[TopicPartition]], None]
Read = dict[Partition, int]


class FakeMember:
    """Refuses to let go of what it does not have, as the client does."""

    def __init__(self) -> None:
        self.read: Read = {}  # what we told it to read, and from where
        self.asked: list[str] = []
        self.callbacks: dict[str, Callback] = {}

    def subscribe(self, topics: list[str], **callbacks: Callback) -> None:
        self.callbacks = callbacks

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        self.asked.append("incremental_assign")
        assert not self.read.keys() & {(tp.topic, tp.partition) for tp in partitions}
        self.read |= {(tp.topic, tp.partition): tp.offset for tp in partitions}

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        self.asked.append("incremental_unassign")
        for tp in partitions:
            del self.read[tp.topic, tp.partition]

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.asked.append("assign")
        self.read = {(tp.topic, tp.partition): tp.offset for tp in partitions}

    def unassign(self) -> None:
        self.asked.append("unassign")
        self.read = {}

    def poll(self, timeout_s: float) -> None: ...

    def consumer_group_metadata(self) -> None: ...

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        return [TopicPartition(tp.topic, tp.partition, self.read[tp.topic, tp.partition]) for tp in partitions]


@dataclass
class Listed:
    partitions: dict[int, None]


@dataclass
class Metadata:
    topics: dict[str, Listed]


@dataclass
class Cluster:
    """What there is: partitions by topic, each from 0 to its end, and what the group has committed with our mark."""

    counts: dict[str, int]
    committed: Read = field(default_factory=dict)
    ends: Read = field(default_factory=dict)
    lows: Read = field(default_factory=dict)
    notes: dict[Partition, str] = field(default_factory=dict)  # behind the mark


@dataclass
class FakeReader:
    cluster: Cluster

    def list_topics(self, topic: str, timeout_s: float) -> Metadata:
        return Metadata({topic: Listed(dict.fromkeys(range(self.cluster.counts[topic])))})

    def committed(self, partitions: list[TopicPartition], timeout_s: float) -> list[TopicPartition]:
        def one(at: Partition) -> TopicPartition:
            offset = self.cluster.committed.get(at)
            said = f"olstream{self.cluster.notes.get(at, '')}"
            return TopicPartition(*at) if offset is None else TopicPartition(*at, offset, metadata=said)

        return [one((tp.topic, tp.partition)) for tp in partitions]

    def get_watermark_offsets(self, tp: TopicPartition, timeout_s: float) -> tuple[int, int]:
        return self.of(tp.topic, tp.partition)

    def of(self, topic: str, partition: int) -> tuple[int, int]:
        return self.cluster.lows.get((topic, partition), 0), self.cluster.ends.get((topic, partition), 100)


class FakeJournal:
    """Of a group that has learnt nothing yet."""

    def __init__(self, watermarks: FakeReader) -> None:
        self.watermarks = watermarks

    def read_all_slots(self) -> Sequence[Any]:
        return []

    def alive(self) -> None: ...


class Bench:
    """A source that the group gives things to, and takes them from."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, more: str = "", cluster: Cluster | None = None, input_: str = ""
    ) -> None:
        self.cluster = cluster or Cluster({"f": 4, "l": 4})
        self.member, reader = FakeMember(), FakeReader(self.cluster)
        monkeypatch.setattr(kafka_source, "member", self._joined)
        monkeypatch.setattr(kafka_starts, "reader", lambda *_: reader)
        topics = [*self.cluster.counts]
        config = parse(f"learners: {{a: }}\ninput: {{topics: {topics}{input_}}}\n{more}", "c.yaml", {})
        self.told: list[tuple[str, set[Partition]]] = []
        self.source = KafkaSource(
            config,
            FakeJournal(reader),  # type: ignore[arg-type]
            {},
            Errors(),
            on_change=lambda kind, read: self.told.append((kind, set(read))),
        )
        self.commits = 0
        self.source.on_revoke(self._commit)

    def _joined(
        self, _config: object, _errors: Errors, _on_statistics: object, on_error: Callable[[ClientError], None]
    ) -> FakeMember:
        self.complain = on_error
        return self.member

    def _commit(self) -> None:
        self.commits += 1
        self.cluster.committed |= self.source.next

    def give(self, *partitions: Partition) -> Bench:
        self.member.callbacks["on_assign"](self.member, [TopicPartition(*at) for at in partitions])
        return self.turn()

    def take(self, *partitions: Partition) -> Bench:
        self.member.callbacks["on_revoke"](self.member, [TopicPartition(*at) for at in partitions])
        return self.turn()

    def turn(self) -> Bench:
        self.source.poll(10, 0.0)
        return self


F0, F1, L0, L1 = ("f", 0), ("f", 1), ("l", 0), ("l", 1)
KIP_848 = "consumer: {group.protocol: consumer}"


@pytest.fixture(params=["", KIP_848], ids=["classic", "consumer"])
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_whole_pairs_are_read_from_where_the_group_stands(monkeypatch: pytest.MonkeyPatch, protocol: str) -> None:
    bench = Bench(monkeypatch, protocol, Cluster({"f": 4, "l": 4}, committed={F0: 7, L0: 5}))

    bench.give(F0, F1, L0, L1)

    assert bench.member.read == bench.source.next == {F0: 7, F1: 0, L0: 5, L1: 0}
    assert bench.source.unmarked() == {F1: 0, L1: 0}


def test_half_a_pair_is_not_read(monkeypatch: pytest.MonkeyPatch, protocol: str) -> None:
    bench = Bench(monkeypatch, protocol)

    bench.give(F0, F1, L1)

    assert bench.member.read == {F1: 0, L1: 0}
    assert bench.told == [("assigned", {F1, L1})]


def test_half_a_pair_is_read_once_the_other_half_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, KIP_848).give(F0, F1, L1)

    bench.cluster.committed |= {L0: 30}
    bench.give(L0)

    assert bench.member.read == {F0: 0, F1: 0, L0: 30, L1: 0}


def test_the_half_that_stays_is_given_up_with_the_half_that_goes_and_read_on_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(monkeypatch, KIP_848).give(F0, F1, L0, L1)
    bench.source.next[L0] = 40  # up to there it was handed out

    bench.take(F0)
    alone = dict(bench.member.read)
    bench.give(F0)

    assert alone == {F1: 0, L1: 0}
    assert bench.commits == 1
    assert bench.member.read == {F0: 0, F1: 0, L0: 40, L1: 0}


def test_half_a_pair_that_was_never_read_can_be_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, KIP_848).give(F0, F1, L1)

    bench.take(F0)

    assert bench.member.read == {F1: 0, L1: 0}
    assert bench.source.given == {F1, L1}


def test_under_the_classic_protocol_everything_goes_and_comes_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch).give(F0, F1, L1)

    bench.take(F0, F1, L1).give(F0, L0)

    assert bench.member.read == {F0: 0, L0: 0}
    assert bench.member.asked == ["assign", "unassign", "assign"]


def test_where_half_a_pair_begins_is_settled_when_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """`start: latest` means the end as it was then: by the time the other half comes the topic is not new any more."""
    bench = Bench(monkeypatch, KIP_848, input_=", start: latest")

    bench.give(F0)
    begins = dict(bench.source.unmarked())
    bench.cluster.committed |= begins
    bench.cluster.ends |= {F0: 120, L0: 120}
    bench.give(L0)

    assert begins == {F0: 100}
    assert bench.member.read == {F0: 100, L0: 120}


def test_a_gap_before_half_a_pair_is_told_when_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster({"f": 1, "l": 1}, committed={F0: 3, L0: 0}, lows={F0: 10})
    bench = Bench(monkeypatch, KIP_848, cluster, ", on_gap: skip")
    lost: list[tuple[str, int]] = []
    bench.source.on_gap = lambda topic, n: lost.append((topic, n))

    bench.give(F0)
    before = dict(bench.source.unmarked())
    bench.give(L0)
    after = dict(bench.source.unmarked())

    assert (before, after) == ({}, {F0: 10})
    assert lost == [("f", 7)]


def test_a_split_that_stays_ends_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "_SHARE_OUT_S", -100.0)  # later than the session ends is before now
    bench = Bench(monkeypatch)

    with pytest.raises(ConfigError, match=r"f\[0\] without l\[0\]"):
        bench.give(F0)


def test_partitions_that_the_other_topic_does_not_have_are_read_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = "join: {allow_partition_mismatch: true}"
    bench = Bench(monkeypatch, allowed, Cluster({"f": 2, "l": 1}))

    bench.give(F0, F1)

    assert bench.member.read == {F0: 0, F1: 0}


def test_of_a_lone_topic_no_counts_are_asked(monkeypatch: pytest.MonkeyPatch, protocol: str) -> None:
    bench = Bench(monkeypatch, protocol, Cluster({"f": 2}, committed={F0: 0, F1: 0}))
    monkeypatch.delattr(FakeReader, "list_topics")

    bench.give(F0, F1)

    assert bench.member.read == {F0: 0, F1: 0}


def test_a_reset_partition_is_refused_though_its_other_half_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, KIP_848, Cluster({"f": 1, "l": 1}, committed={F0: 200}))

    with pytest.raises(StateError, match=r"offset 200 of f\[0\] lies past its end 100"):
        bench.give(F0)


def test_brokers_without_the_range_assignor_are_told_what_to_offer(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, KIP_848)
    said = f"Fatal error: {ClientError(ClientError.UNSUPPORTED_ASSIGNOR).str()}"

    bench.complain(ClientError(ClientError._FATAL, said))

    with pytest.raises(KafkaError, match=r"add range to their group\.consumer\.assignors"):
        bench.turn()


def test_what_moved_is_told_once_with_what_stood_beside_it(monkeypatch: pytest.MonkeyPatch, protocol: str) -> None:
    notes = {F0: '[1,4,null,{"f":3,"l":2}]', L0: "[1]"}
    bench = Bench(monkeypatch, protocol, Cluster({"f": 4, "l": 4}, committed={F0: 7, L0: 5, L1: 6}, notes=notes))

    before = bench.source.moved()
    moved = bench.give(F0, F1, L0, L1).source.moved()

    assert before is None and moved is not None
    assert moved.taken == {
        F0: Taken(7, Note(1, row=4, since={"f": 3, "l": 2})),
        L0: Taken(5, Note(1)),
        F1: Taken(0, None),
        L1: Taken(6, None),
    }
    assert (set(moved.given), set(moved.gone), moved.whole) == ({F0, F1, L0, L1}, set(), protocol == "")
    assert bench.source.moved() is None


def test_half_a_pair_is_taken_over_with_its_other_half(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, KIP_848).give(F0, F1, L0, L1)
    bench.source.moved()

    gone = bench.take(F0).source.moved()
    back = bench.give(F0).source.moved()

    assert gone is not None and (set(gone.taken), set(gone.gone), set(gone.given)) == (set(), {F0}, {F1, L0, L1})
    assert back is not None and (set(back.taken), set(back.gone)) == ({F0, L0}, set())


def test_members_that_give_up_all_tell_of_it_when_they_have_got_all_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch).give(F0, F1, L0, L1)
    bench.source.moved()

    between = bench.take(F0, F1, L0, L1).source.moved()
    after = bench.give(F0, L0).source.moved()

    assert between is None
    assert after is not None and (set(after.given), after.whole, set(after.taken)) == ({F0, L0}, True, {F0, L0})
