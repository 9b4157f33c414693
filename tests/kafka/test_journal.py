"""Several partitions: the order of learning stands in the journal alone, and the model can be had from it again."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from tests.kafka.events import events
from tests.kafka.service import Service, ServiceFactory, Worker
from tests.kafka.topics import Record, until

N = 6000
PARTITIONS = 3


def until_all(service: Service, n: int, worker: Worker) -> None:
    """Wait until n records are committed over all partitions."""

    def committed() -> int:
        return sum(service.topics.committed(service.group, service.input).values())

    until(lambda: committed() >= n or not worker.alive, f"{n} committed", 90)
    assert worker.alive, worker.said()[-3000:]


def worked(service: ServiceFactory, end: Callable[[Worker], None] = Worker.kill, **settings: object) -> Service:
    """A service that learnt N records from three partitions in three lives, the first two ended on the way."""
    made = service(input={"batch_max": 50}, **settings).make_topics(PARTITIONS)
    records = [Record(value, partition=i % PARTITIONS) for i, value in enumerate(events(N))]
    for until_offset in (N // 3, 2 * N // 3):
        made.topics.produce(made.input, records[until_offset - N // 3 : until_offset])
        worker = made.start()
        until_all(made, until_offset - N // 6, worker)
        end(worker)
    made.topics.produce(made.input, records[2 * N // 3 :])
    worker = made.start().until_ready()
    until_all(made, N, worker)
    worker.stop()
    return made


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_a_lost_disk_is_made_good_by_the_journal(service: ServiceFactory, guarantee: str) -> None:
    made = worked(service, guarantee=guarantee)
    before = made.inspect()
    predictions = made.topics.values(made.predictions)

    shutil.rmtree(made.state)
    made.start(checkpoint={"on_missing": "replay"}).until_ready().stop()

    after = made.inspect()
    assert before["learners"]["model"]["seen"] == N
    assert (after["learners"], after["offsets"]) == (before["learners"], before["offsets"])
    assert made.topics.values(made.predictions) == predictions


def test_a_lost_disk_is_a_question_first(service: ServiceFactory) -> None:
    made = service().make_topics()
    made.topics.produce(made.input, events(20))
    made.run_to(20)

    shutil.rmtree(made.state)
    worker = made.start()

    assert worker.wait(60) == 4
    assert "on_missing" in worker.said()


def test_the_next_generation_group_protocol_works_too(service: ServiceFactory) -> None:
    # Told to stop, not killed: a member without a name of its own is waited for until its session ends.
    made = worked(service, Worker.stop, consumer={"group.protocol": "consumer"})

    offsets = sorted((p["partition"], p["offset"]) for p in made.predicted())
    assert offsets == [(p, o) for p in range(PARTITIONS) for o in range(N // PARTITIONS)]
    assert made.inspect()["learners"]["model"]["seen"] == N
