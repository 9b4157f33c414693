"""An operator moves the group's committed offsets, or deletes the group, while nobody is at work."""

from __future__ import annotations

from typing import Any, Final

from tests.kafka.chaos.flow import is_good
from tests.kafka.chaos.scenario import scenario
from tests.kafka.chaos.stage import Stage
from tests.kafka.chaos.verdict import assert_ended, assert_whole, read_inputs

LEAVES: Final[dict[str, Any]] = {"consumer": {"group.protocol": "consumer"}}  # who stops leaves at once
STAYS: Final[dict[str, Any]] = {"consumer": {"session.timeout.ms": 6000}}  # a static member is waited for


@scenario(**LEAVES)
def offsets_moved(stage: Stage) -> None:
    """Reset back, reset forward, deleted: exit 4 each time. Put back where they were: all goes on."""
    move_offsets(stage)


@scenario(bounded=False, **STAYS)
def offsets_moved_under_a_static_member(stage: Stage) -> None:
    """The same under the classic group protocol."""
    move_offsets(stage)


@scenario(bounded=False, guarantee="at_least_once", **LEAVES)
def offsets_moved_at_least_once(stage: Stage) -> None:
    """The same without transactions."""
    move_offsets(stage)


@scenario(
    bounded=False,
    partitions=2,
    learners={"model": {"algorithm": "arow", "task": "binary", "classes": [0, 1]}},
    **LEAVES,
)
def offsets_moved_of_what_nobody_learnt(stage: Stage) -> None:
    """Of a partition that no line names the group's offset is the start, whoever committed it."""
    flow = stage.flow()
    flow.partitions = 1
    flow.feed(stage.rng.randrange(200, 400))
    stage.finish(stage.service.start())
    learnt = flow.fed
    flow.partitions = 2
    flow.feed(200)
    flow.flush()
    start = stage.rng.randrange(1, 100)
    stage.topics.reset(stage.group, stage.input, start, partition=1)
    stage.fault()

    worker = stage.service.start()
    stage.until_committed(learnt + 200, worker)
    worker.stop()

    answered = [p["offset"] for p in stage.service.predicted() if p["partition"] == 1]
    good = [offset for (partition, offset), value in read_inputs(stage).items() if partition == 1 and is_good(value)]
    assert answered == [offset for offset in sorted(good) if offset >= start]
    stage.service.verify()


def move_offsets(stage: Stage) -> None:
    stage.flow().feed(stage.rng.randrange(200, 500))
    stage.finish(stage.service.start())
    end = stage.flow().fed
    stage.flow().feed(100)
    stage.flow().flush()
    for moved_to in (stage.rng.randrange(1, end), end + stage.rng.randrange(1, 100)):
        stage.topics.reset(stage.group, stage.input, moved_to)
        stage.fault()
        assert_ended(stage.service.start(), 4, f"set to offset {moved_to}", f"set it to {end}", "state rollback")
    stage.topics.forget(stage.group)
    stage.fault()
    assert_ended(stage.service.start(), 4, "no committed offset any more", f"set it to {end}")

    stage.topics.reset(stage.group, stage.input, end)
    stage.fault()
    stage.finish(stage.service.start())
    assert_whole(stage)
