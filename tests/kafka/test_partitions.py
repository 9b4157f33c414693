"""Partitions that come while the worker lives."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from tests.kafka.events import events
from tests.kafka.service import ServiceFactory
from tests.kafka.topics import Record, Topics, until


def grown(topics: Topics, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": topics.bootstrap})
    for done in admin.create_partitions([NewPartitions(topic, partitions)]).values():
        done.result(30)
    until(lambda: len(topics.partitions(topic)) == partitions, f"{topic} has {partitions} partitions")


def test_a_partition_added_under_a_running_worker_is_read_from_its_beginning(service: ServiceFactory) -> None:
    """Even where the group began at the end: `start: latest` is for topics that are new to it."""
    made = service(input={"start": "latest"}).make_topics()
    made.config["kafka"]["topic.metadata.refresh.interval.ms"] = 1000
    worker = made.start().until_ready()
    made.topics.produce(made.input, events(5))
    made.until_committed(5, worker)

    grown(made.topics, made.input, 2)
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

    grown(made.topics, made.input, 2)
    Topics(made.topics.bootstrap).produce(made.input, [Record(value, partition=1) for value in events(7)])
    worker = made.start().until_ready()
    until(
        lambda: made.topics.committed(made.group, made.input).get(1) == 7 or not worker.alive,
        "the new partition is committed",
    )
    worker.stop()

    assert made.inspect()["offsets"] == {made.input: {"0": 5, "1": 7}}
