"""Partitions that come while the worker lives."""

from __future__ import annotations

import pytest

from tests.kafka.events import events
from tests.kafka.service import ServiceFactory
from tests.kafka.topics import Record, Topics, until


def test_a_partition_added_under_a_running_worker_is_read_from_its_beginning(service: ServiceFactory) -> None:
    """Even where the group began at the end: `start: latest` is for topics that are new to it."""
    made = service(input={"start": "latest"}).make_topics()
    made.config["kafka"]["topic.metadata.refresh.interval.ms"] = 1000
    worker = made.start().until_ready()
    made.topics.produce(made.input, events(5))
    made.until_committed(5, worker)

    made.topics.grow(made.input, 2)
    Topics(made.topics.bootstrap).produce(made.input, [Record(value, partition=1) for value in events(7)])
    until(
        lambda: made.topics.committed(made.group, made.input).get(1) == 7 or not worker.alive,
        "the new partition is committed",
    )
    worker.stop()

    assert sorted((p["partition"], p["offset"]) for p in made.predicted()) == sorted(
        [(0, i) for i in range(5)] + [(1, i) for i in range(7)]
    )
    assert made.inspect()["offsets"] == {made.input: {"0": 5, "1": 7}}


def test_a_partition_added_while_the_worker_was_away_is_found_at_its_return(service: ServiceFactory) -> None:
    """Back within the session's time, a static member gets its old partitions: it has to ask for the new one."""
    made = service().make_topics()
    made.topics.produce(made.input, events(5))
    made.run_to(5)

    made.topics.grow(made.input, 2)
    Topics(made.topics.bootstrap).produce(made.input, [Record(value, partition=1) for value in events(7)])
    worker = made.start().until_ready()
    until(
        lambda: made.topics.committed(made.group, made.input).get(1) == 7 or not worker.alive,
        "the new partition is committed",
    )
    worker.stop()

    assert made.inspect()["offsets"] == {made.input: {"0": 5, "1": 7}}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_a_worker_in_the_middle_of_a_commit_hands_its_partitions_over(
    service: ServiceFactory, guarantee: str, protocol: str
) -> None:
    n = 6000
    two_classes = {"model": {"algorithm": "arow", "task": "binary", "classes": [0, 1]}}
    made = service(
        guarantee=guarantee,
        consumer={"group.protocol": protocol},
        producer={"transaction.timeout.ms": 60_000},
        learners=two_classes,
    )
    made.make_topics(2)
    made.topics.produce(made.input, [Record(value, partition=i % 2) for i, value in enumerate(events(n))])
    first = made.start(commit_interval="30s")  # there is always something to commit when the second one comes
    until(lambda: first.counted("olstream_events_processed_total") > 0 or not first.alive, "it is at work")
    other = made.twin("other", slot=1, commit_interval="50ms")
    other.configure(checkpoint={"path": str(other.state)})

    second = other.start()
    try:
        second.until_ready()
        until(
            lambda: sum(made.topics.committed(made.group, made.input).values()) == n or not second.alive,
            "everything is committed",
        )
        second.stop()
    finally:
        other.end()
    first.stop()

    offsets = sorted((p["partition"], p["offset"]) for p in made.predicted())
    assert offsets == [(p, o) for p in range(2) for o in range(n // 2)]
    assert made.inspect()["learners"]["model"]["seen"] + other.inspect()["learners"]["model"]["seen"] == n
