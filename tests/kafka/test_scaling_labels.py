"""Workers come, go and die while half of the labels are still to come: each label is learnt once, somewhere."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.kafka.beside import Beside
from tests.kafka.service import ServiceFactory, Worker
from tests.kafka.topics import Record, Topics, until

PARTITIONS = 4
ONE_STEP = 0.3  # what one row changes the weight of its own feature by
LEARNER = {"algorithm": "pa1", "task": "regression", "params": {"C": ONE_STEP}, "bias": False}
PROTOCOLS: dict[str, dict[str, Any]] = {
    "classic": {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500},
    "consumer": {"group.protocol": "consumer"},
}


class Stream(Beside):
    """Features with a name of their own each, and later their labels in any order, partition by partition."""

    def __init__(self, bootstrap: str, features: str, labels: str) -> None:
        super().__init__()
        self.topics, self.features, self.labels = Topics(bootstrap), features, labels
        self.random = random.Random(3)
        self.owed: list[int] = []
        self.n = 0

    def produce(self, n: int) -> None:
        """So many features more, and labels of half of all that are owed."""
        new = range(self.n, self.n + n)
        self.n += n
        self.owed += new
        self.random.shuffle(self.owed)
        self._put(self.features, [(i, {"features": {f"x{i}": 1.0}}) for i in new])
        self._labels(len(self.owed) // 2)

    def finish(self) -> None:
        self._labels(len(self.owed))

    def _labels(self, n: int) -> None:
        now, self.owed = self.owed[:n], self.owed[n:]
        self._put(self.labels, [(i, {"label": 1.0}) for i in now])

    def _put(self, topic: str, messages: list[tuple[int, dict[str, Any]]]) -> None:
        values = [(i, json.dumps({"id": i, **message}).encode()) for i, message in messages]
        self.topics.produce(topic, [Record(value, partition=i % PARTITIONS) for i, value in values])

    def _work(self) -> None:
        while not self._ended.is_set():
            self.produce(20)


class Slots:
    """Two services of one group, and what has become of the labels in both."""

    def __init__(self, service: ServiceFactory, protocol: str) -> None:
        made = service(consumer=PROTOCOLS[protocol], learners={"model": LEARNER})
        self.first, labels, outcomes = made, f"{made.group}-labels", f"{made.group}-outcomes"
        made.configure(input={"topics": [made.input, labels]}, output={"outcomes": outcomes})
        made.make_topics(PARTITIONS)
        made.topics.create(labels, PARTITIONS)
        made.topics.create(outcomes)
        self.outcomes = outcomes
        self.second = made.twin("other", slot=1)
        self.second.configure(checkpoint={"path": str(self.second.state)})
        self.both = (self.first, self.second)
        self.stream = Stream(made.topics.bootstrap, made.input, labels)

    def until_committed(self, *workers: Worker) -> None:
        topics, group = self.first.topics, self.first.group

        def done() -> bool:
            committed = [sum(topics.committed(group, t).values()) for t in (self.stream.features, self.stream.labels)]
            return committed == [self.stream.n, self.stream.n - len(self.stream.owed)]

        alive_until(done, "everything is committed", *workers)

    def assert_learnt_once(self) -> None:
        wanted = [(f"x{i}", ONE_STEP) for i in range(self.stream.n)]
        found: Counter[tuple[str, float]] = Counter()
        for slot in self.both:
            found.update(slot.inspect("--weights")["learners"]["model"]["weights"].items())
        assert sorted(found.elements()) == sorted(wanted)
        predicted = Counter(p["id"] for p in self.first.predicted())
        assert predicted == Counter(range(self.stream.n))
        for slot in self.both:
            slot.verify()

    def lines(self) -> list[dict[str, Any]]:
        values = self.first.topics.values(f"{self.first.group}-journal")
        return [json.loads(value) for value in values if value is not None]

    def measured(self) -> int:
        """Labels that came behind their features, to the slot that had predicted."""
        return len(self.first.topics.values(self.outcomes))

    def met_a_label(self) -> int:
        """Features whose label was there before them."""
        return sum(p["label"] is not None for p in self.first.predicted())


def alive_until(condition: Callable[[], bool], what: str, *workers: Worker) -> None:
    until(lambda: condition() or not all(worker.alive for worker in workers), what, 90.0)
    for worker in workers:
        assert worker.alive, worker.said()[-3000:]


def has(worker: Worker, partitions: int) -> Callable[[], bool]:
    """Partitions of both topics."""
    return lambda: worker.counted("olstream_assigned_partitions") == partitions


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_labels_find_their_features_while_a_worker_comes_and_goes(service: ServiceFactory, protocol: str) -> None:
    slots = Slots(service, protocol)
    stream = slots.stream
    stream.produce(2000)
    first = slots.first.start().until_ready()
    slots.until_committed(first)

    try:
        with stream:
            second = slots.second.start().until_ready()
            alive_until(has(second, PARTITIONS), "the second has half", first, second)
        stream.produce(500)
        slots.until_committed(first, second)
        unmatched = second.counted("olstream_labels_unmatched_total")
        second_unmeasured = second.counted("olstream_labels_unmeasured_total")
        second.stop()
    finally:
        slots.second.end()
    with stream_of(slots) as more:
        alive_until(has(first, 2 * PARTITIONS), "the first has all", first)
    stream.n, stream.owed = more.n, more.owed
    stream.finish()
    slots.until_committed(first)
    unmatched += first.counted("olstream_labels_unmatched_total")
    unmeasured = second_unmeasured + first.counted("olstream_labels_unmeasured_total")
    first.stop()

    assert unmatched == 0
    slots.assert_learnt_once()
    assert 0 < second_unmeasured < unmeasured > 0
    assert slots.measured() + slots.met_a_label() + unmeasured == stream.n
    told = slots.lines()
    assert {line["slot"] for line in told if "adopted" in line} == {0, 1}
    assert {line["slot"] for line in told if "left" in line} == {0}


def stream_of(slots: Slots) -> Stream:
    """The same stream, on a thread once more."""
    old = slots.stream
    new = Stream(slots.first.topics.bootstrap, old.features, old.labels)
    new.n, new.owed, new.random = old.n, old.owed, old.random
    return new


def test_a_worker_that_dies_on_the_way_takes_over_what_waits_all_the_same(service: ServiceFactory) -> None:
    slots = Slots(service, "classic")
    slots.stream.produce(1000)
    first = slots.first.start().until_ready()
    slots.until_committed(first)

    try:
        # When it has got partitions; when it has gathered what waits there, and told nobody; when it just has.
        for point in ("take.after", "offsets.before:1", "commit.after:2"):
            slots.second.environment = {"OLSTREAM_CRASH": point}
            assert slots.second.start().wait(90) == -9, point
            slots.stream.produce(100)
        slots.second.environment = {}
        second = slots.second.start().until_ready()
        alive_until(has(second, PARTITIONS), "the second has half", first, second)
        slots.stream.finish()
        slots.until_committed(first, second)
        unmatched = sum(each.counted("olstream_labels_unmatched_total") for each in (first, second))
        second.stop()
    finally:
        slots.second.end()
    first.stop()

    assert unmatched == 0
    slots.assert_learnt_once()
    of_second = [line for line in slots.lines() if line["slot"] == 1 and "adopted" in line]
    assert len(of_second) == 1 and len(of_second[0]["adopted"]) == PARTITIONS
