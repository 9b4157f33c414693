"""Features on one topic and labels on another: partition i of both comes to one slot, or to nobody."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import Consumer

from tests.kafka.service import Service, ServiceFactory, Worker, olstream
from tests.kafka.topics import Record, until

PARTITIONS = 4
CLASSIC: dict[str, Any] = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 1000}
PROTOCOLS: dict[str, dict[str, Any]] = {"classic": CLASSIC, "consumer": {"group.protocol": "consumer"}}
ALL = set(range(PARTITIONS))


class Pair:
    """A service with two input topics, and what its workers do with them."""

    def __init__(self, made: Service, features: int = PARTITIONS, labels: int = PARTITIONS) -> None:
        self.service, self.features, self.labels = made, made.input, f"{made.group}-labels"
        made.configure(input={"topics": [self.features, self.labels]})
        made.make_topics(features)
        made.topics.create(self.labels, labels)
        self.produced = 0

    def produce(self, n: int) -> None:
        """`n` records a topic, as many in each partition: the label of an id is where its features are."""
        ids = range(self.produced, self.produced + n)
        features = [{"id": i, "features": {"x": i % 7 - 3}} for i in ids]
        labels = [{"id": i, "label": i % 7 > 3} for i in ids]
        for topic, messages in ((self.features, features), (self.labels, labels)):
            values = [json.dumps(message).encode() for message in messages]
            records = [Record(value, partition=i % PARTITIONS) for i, value in zip(ids, values, strict=True)]
            self.service.topics.produce(topic, records)
        self.produced += n

    def committed(self, topic: str) -> dict[int, int]:
        return self.service.topics.committed(self.service.group, topic)

    def all_committed(self) -> bool:
        wanted = dict.fromkeys(range(PARTITIONS), self.produced // PARTITIONS)
        return self.committed(self.features) == wanted and self.committed(self.labels) == wanted

    def until_all_committed(self, *workers: Worker) -> None:
        until(lambda: self.all_committed() or not all(w.alive for w in workers), "everything is committed", 90.0)
        assert all(worker.alive for worker in workers), workers[0].said()[-3000:]

    def read_by(self, worker: Worker) -> list[dict[str, set[int]]]:
        """{topic: partitions} that a worker reads, after each change that its log tells of."""
        read: dict[str, set[int]] = {self.features: set(), self.labels: set()}
        states = []
        for kind, told in re.findall(r"kafka_source: (assigned|revoked) (.*)", worker.said()):
            for topic, number in re.findall(r"([^ ,]+)\[(\d+)\]", told):
                (read[topic].add if kind == "assigned" else read[topic].discard)(int(number))
            states.append({topic: set(numbers) for topic, numbers in read.items()})
        return states

    def reads(self, worker: Worker, features: set[int], labels: set[int]) -> bool:
        states = self.read_by(worker)
        return bool(states) and states[-1] == {self.features: features, self.labels: labels}

    def until_reads(self, worker: Worker, features: set[int], labels: set[int]) -> None:
        until(lambda: self.reads(worker, features, labels) or not worker.alive, f"{features}, {labels}", 90.0)
        assert worker.alive, worker.said()[-3000:]

    def predicted(self) -> list[tuple[int, int]]:
        """Where the features are that were answered."""
        return sorted((p["partition"], p["offset"]) for p in self.service.predicted() if p["topic"] == self.features)

    def stranger(self, protocol: str) -> Consumer:
        """Somebody else in the group who reads the features alone."""
        how = {**PROTOCOLS[protocol], **({} if protocol == "classic" else {"group.remote.assignor": "range"})}
        bootstrap, group = self.service.topics.bootstrap, self.service.group
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False, **how})
        consumer.subscribe([self.features])
        return consumer

    def until_halved(self, worker: Worker, stranger: Consumer) -> int:
        """Until the stranger has half of the features, and the worker none of their labels; the first of its half."""

        def halved() -> bool:
            stranger.poll(0.05)
            theirs = {p.partition for p in stranger.assignment()}
            return len(theirs) == 2 and (self.reads(worker, ALL - theirs, ALL - theirs) or not worker.alive)

        until(halved, "the stranger has half of the features", 90.0)
        assert worker.alive, worker.said()[-3000:]
        return min(p.partition for p in stranger.assignment())


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> Iterator[str]:
    yield request.param


def test_different_partition_counts_are_refused_by_run_and_check(service: ServiceFactory) -> None:
    pair = Pair(service(), features=6, labels=4)
    told = f"{pair.features} has 6 partitions, {pair.labels} has 4 partitions"
    config = str(pair.service.write())

    checked = olstream("check", config)
    code = pair.service.start().wait(90)

    assert (checked.returncode, code) == (2, 2)
    assert f"FAIL  partitions: {told}" in checked.stdout
    assert (
        f"input.topics: {told}: features and labels of one key may"
        in pair.service.directory.joinpath("log").read_text()
    )
    assert not pair.service.topics.exists(f"{pair.service.group}-journal")


def test_different_partition_counts_that_are_allowed_are_warned_of_and_every_partition_is_read(
    service: ServiceFactory, protocol: str
) -> None:
    allowed = {"allow_partition_mismatch": True}
    pair = Pair(service(consumer=PROTOCOLS[protocol], join=allowed), features=6, labels=4)
    told = f"{pair.features} has 6 partitions, {pair.labels} has 4 partitions"
    other = pair.service.twin("other", slot=1)
    other.configure(checkpoint={"path": str(other.state)})

    first = pair.service.start().until_ready()
    try:
        second = other.start().until_ready()
        for topic, partitions in ((pair.features, 6), (pair.labels, 4)):
            records = [Record(b'{"id": 1, "features": {"x": 1}}', partition=p) for p in range(partitions)]
            pair.service.topics.produce(topic, records)
        until(
            lambda: len(pair.committed(pair.features)) == 6 and len(pair.committed(pair.labels)) == 4,
            "all partitions of both topics are committed",
            90.0,
        )
        checked = olstream("check", str(other.write()))
        second.stop()
    finally:
        other.end()
    first.stop()

    assert f"warn  partitions: {told}" in checked.stdout
    assert "FAIL" not in checked.stdout
    assert re.search(f"warning .*{re.escape(told)}", first.said())


def test_check_sees_keys_that_stand_in_different_partitions(service: ServiceFactory) -> None:
    pair = Pair(service())
    for topic, turn in ((pair.features, 0), (pair.labels, 1)):
        records = [Record(b"{}", key=b"%d" % i, partition=(i + turn * (i % 2)) % PARTITIONS) for i in range(20)]
        pair.service.topics.produce(topic, records)

    checked = olstream("check", str(pair.service.write()))

    assert checked.returncode == 0
    assert f"warn  keys: 10 of 20 that {pair.features} and {pair.labels} share are in different" in checked.stdout


def test_pairs_stay_together_while_a_member_joins_and_leaves(service: ServiceFactory, protocol: str) -> None:
    pair = Pair(service(consumer=PROTOCOLS[protocol]))
    other = pair.service.twin("other", slot=1)
    other.configure(checkpoint={"path": str(other.state)})
    pair.produce(4000)

    first = pair.service.start().until_ready()
    try:
        second = other.start().until_ready()
        until(lambda: any(len(s[pair.labels]) == 2 for s in pair.read_by(second)), "the second has its pairs", 90.0)
        pair.produce(4000)
        pair.until_all_committed(first, second)
        second.stop()
    finally:
        other.end()
    pair.produce(4000)
    pair.until_reads(first, ALL, ALL)
    pair.until_all_committed(first)
    first.stop()

    for worker in (first, second):
        assert all(state[pair.features] == state[pair.labels] for state in pair.read_by(worker))
    assert pair.predicted() == [(p, offset) for p in range(PARTITIONS) for offset in range(3000)]
    models = [each.inspect()["learners"]["model"] for each in (pair.service, other)]
    assert sum(model["seen"] for model in models) == pair.produced
    assert all(0 < model["labelled"] <= model["seen"] for model in models)  # labels found their features at both


def test_half_a_pair_waits_until_the_other_half_comes_back(service: ServiceFactory, protocol: str) -> None:
    pair = Pair(service(consumer=PROTOCOLS[protocol]))
    worker = pair.service.start().until_ready()
    pair.produce(400)
    pair.until_all_committed(worker)

    with closing(pair.stranger(protocol)) as stranger:
        low = pair.until_halved(worker, stranger)
        pair.produce(400)
        ours = [p for p in range(PARTITIONS) if p not in (low, low + 1)]
        until(lambda: all(pair.committed(pair.labels)[p] == 200 for p in ours), "our own labels are read", 90.0)
        meanwhile = pair.committed(pair.labels)
    pair.until_all_committed(worker)
    worker.stop()

    assert (meanwhile[low], meanwhile[low + 1]) == (100, 100)
    assert pair.predicted() == [(p, offset) for p in range(PARTITIONS) for offset in range(200)]


def test_a_split_that_stays_is_refused_with_what_is_missing(service: ServiceFactory) -> None:
    pair = Pair(service(consumer=CLASSIC))
    worker = pair.service.start().until_ready()

    with closing(pair.stranger("classic")) as stranger:
        low = pair.until_halved(worker, stranger)
        until(lambda: stranger.poll(0.05) is None and not worker.alive, "the worker gives up", 90.0)

    assert worker.wait(1) == 2
    assert (
        f"the group has given this slot {pair.labels}[{low}], {pair.labels}[{low + 1}] without {pair.features}[{low}], "
        f"{pair.features}[{low + 1}] for 21 s"
    ) in worker.said()
