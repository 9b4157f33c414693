"""Topics that come late, go, come back under their old name, or grow."""

from __future__ import annotations

from typing import Any, Final

from tests.kafka.chaos.offsets import LEAVES
from tests.kafka.chaos.scenario import scenario
from tests.kafka.chaos.stage import Stage
from tests.kafka.chaos.verdict import (
    assert_answered,
    assert_as_if_undisturbed,
    assert_counted,
    assert_ended,
    assert_journal_covers,
    assert_verified,
    assert_whole,
    read_inputs,
)
from tests.kafka.service import Worker
from tests.kafka.topics import until

SOON: Final[dict[str, Any]] = {"kafka_wait": "6s"}  # so long a worker waits for a topic that was there before
SEES_GROWTH: Final[dict[str, Any]] = {
    "consumer": {"topic.metadata.refresh.interval.ms": 500},
    "learners": {"model": {"algorithm": "arow", "task": "binary", "classes": [0, 1]}},
}


@scenario(bounded=False)
def topics_made_late(stage: Stage) -> None:
    """No topic is there at the start; they are made one after the other, and the worker says what it waits for."""
    topics = [stage.input, stage.service.predictions, stage.service.dead_letters]
    for topic in topics:
        stage.topics.delete(topic)

    worker = stage.service.start()
    while topics:
        told = f"there is no topic {', '.join(topics)}:"
        until(lambda: told in worker.page("/ready") or not worker.alive, f"it waits for {topics}")  # noqa: B023
        assert worker.status("/live") == 200
        stage.topics.create(topics.pop(stage.rng.randrange(len(topics))))
        stage.fault()

    worker.until_ready()
    stage.flow().feed(500)
    stage.finish(worker)
    assert_whole(stage)


@scenario(bounded=False, **SOON)
def predictions_deleted_at_work(stage: Stage) -> None:
    """The predictions are deleted: not ready until they are made anew, or exit 3; all is learnt once."""
    delete_at_work(stage, stage.service.predictions)


@scenario(bounded=False, **SOON)
def dead_letters_deleted_at_work(stage: Stage) -> None:
    """The same with the dead letters."""
    delete_at_work(stage, stage.service.dead_letters)


@scenario(bounded=False, guarantee="at_least_once", **SOON)
def predictions_deleted_at_work_at_least_once(stage: Stage) -> None:
    """The same without transactions."""
    delete_at_work(stage, stage.service.predictions)


@scenario(bounded=False, **SOON)
def input_deleted_at_work(stage: Stage) -> None:
    """The input is deleted: exit 3; made anew it is another one: exit 4; a new group begins with it."""
    worker = at_work(stage)
    stage.topics.delete(stage.input)
    stage.fault()
    until(lambda: f"there is no topic {stage.input}:" in worker.page("/ready"), "it misses its input")
    assert worker.status("/live") == 200
    assert_ended(worker, 3, f"there is no topic {stage.input}:")

    stage.topics.create(stage.input)
    stage.flow().fed = 0
    refuse_other_input(stage)
    finish_in_a_new_group(stage)


@scenario(bounded=False, **SOON)
def input_made_anew(stage: Stage) -> None:
    """The input is deleted and made again with more records than before, at work and while away: exit 4."""
    worker = at_work(stage)
    fill_anew(stage)
    assert_ended(worker, 4, stage.input, "new `group`")
    refuse_other_input(stage)
    begin_new_group(stage)
    at_work(stage).stop()
    fill_anew(stage)
    refuse_other_input(stage)
    finish_in_a_new_group(stage)


@scenario(bounded=False, **SOON, **LEAVES)
def journal_made_anew(stage: Stage) -> None:
    """The journal is deleted and made again, at work and while away: exit 4, until a rollback or an empty slot."""
    journal = f"{stage.group}-journal"
    worker = at_work(stage)
    remake(stage, journal)
    assert_ended(worker, 4, f"the journal {journal} was made anew", "state rollback", "move the state directory away")
    stage.service.roll_back(stage.service.inspect()["seq"])
    stage.flow().feed(300)
    stage.finish(stage.service.start())
    inputs = read_inputs(stage)
    assert_answered(stage, inputs)
    assert_counted(stage, inputs)
    stage.service.verify()

    stage.topics.delete(journal)  # which the next start makes again
    stage.fault()
    assert_ended(stage.service.start(), 4, f"the journal {journal} was made anew")
    stage.service.state.rename(stage.directory / "away")
    before = stage.flow().fed
    stage.flow().feed(300)
    stage.finish(stage.service.start())
    inputs = read_inputs(stage)
    assert_answered(stage, inputs)
    assert_counted(stage, {place: value for place, value in inputs.items() if place[1] >= before})
    stage.service.verify("--all")


@scenario(partitions=2, bounded=False, **SEES_GROWTH)
def partitions_added_at_work(stage: Stage) -> None:
    """The input grows under load, under one worker, then under two."""
    with stage.flow() as flow:
        workers = [stage.slot(0).start().until_ready()]
        for partitions in (3, 5):
            grow(stage, partitions)
            flow.widen(partitions)
            until(lambda: assigned(*workers) == partitions, f"{partitions} partitions are shared out")  # noqa: B023
            if len(workers) == 1:
                workers.append(stage.slot(1).start().until_ready())
        stage.until_more(1000, *workers)
    stage.finish(*workers)
    assert_whole(stage)


@scenario(bounded=False, partitions=2, **SEES_GROWTH)
def partitions_added_while_away(stage: Stage) -> None:
    """The input grows while one of two workers is dead, then while both are: their return finds all of it."""
    with stage.flow() as flow:
        workers = [stage.slot(n).start() for n in range(2)]
        for worker in workers:
            worker.until_ready()
        for partitions, dead in ((3, workers[1:]), (5, workers)):
            for worker in dead:
                worker.kill()
                stage.fault()
            grow(stage, partitions)
            flow.widen(partitions)
            workers = [w if w.alive else stage.slot(n).start() for n, w in enumerate(workers)]
            until(lambda: assigned(*workers) == partitions, f"{partitions} partitions are shared out")  # noqa: B023
        stage.until_more(1000, *workers)
    stage.finish(*workers)
    assert_whole(stage)


def delete_at_work(stage: Stage, topic: str) -> None:
    worker = at_work(stage)
    stage.topics.delete(topic)
    stage.fault()
    until(lambda: f"there is no topic {topic}:" in worker.page("/ready"), f"it misses {topic}")
    stage.topics.create(topic)
    stage.flow().feed(200)
    stage.flow().flush()
    stage.until_committed(stage.flow().fed, worker)
    worker.until_ready()

    stage.topics.delete(topic)
    stage.fault()
    stage.flow().feed(200)
    assert_ended(worker, 3, f"there is no topic {topic}:", "check --create")
    stage.topics.create(topic)
    stage.finish(stage.service.start())
    assert_learnt(stage)


def at_work(stage: Stage) -> Worker:
    """A worker that has learnt some of the stream and waits for more."""
    worker = stage.service.start().until_ready()
    stage.flow().feed(stage.rng.randrange(200, 500))
    stage.flow().flush()
    stage.until_committed(stage.flow().fed, worker)
    return worker


def remake(stage: Stage, topic: str) -> None:
    stage.topics.delete(topic)
    stage.topics.create(topic)
    stage.fault()


def fill_anew(stage: Stage) -> None:
    """Another input under the old name, and where the group stood in the old one there is another record in it."""
    flow = stage.flow()
    before, flow.fed = flow.fed, 0
    remake(stage, stage.input)
    flow.feed(before + 500)
    flow.flush()


def refuse_other_input(stage: Stage) -> None:
    assert_ended(stage.service.start(), 4, f"topic {stage.input} was made anew", "new `group`", "start_from")


def begin_new_group(stage: Stage) -> None:
    service = stage.service
    service.group = stage.group = f"{stage.group}-next"
    service.state = service.directory / stage.group
    service.configure(group=stage.group, checkpoint={"path": str(service.state)})


def finish_in_a_new_group(stage: Stage) -> None:
    begin_new_group(stage)
    stage.flow().feed(300)
    stage.finish(stage.service.start())
    assert_learnt(stage)


def assert_learnt(stage: Stage) -> None:
    """What must be true where outputs were deleted: all of `assert_whole` that does not look at them."""
    inputs = read_inputs(stage)
    assert_counted(stage, inputs)
    assert_journal_covers(stage, inputs)
    assert_verified(stage)
    assert_as_if_undisturbed(stage, inputs)


def grow(stage: Stage, partitions: int) -> None:
    stage.topics.grow(stage.input, partitions)
    stage.partitions = partitions
    stage.fault()


def assigned(*workers: Worker) -> int:
    return int(sum(worker.counted("olstream_assigned_partitions") for worker in workers))
