"""Slots that are added and taken away, die together, and lose their partitions while they stand still."""

from __future__ import annotations

from tests.kafka.chaos.crew import CLASSIC, KIP_848, PLAIN, SESSION_S, START_S, Crew
from tests.kafka.chaos.scenario import scenario
from tests.kafka.chaos.stage import Stage
from tests.kafka.chaos.verdict import assert_whole


@scenario(partitions=6, **CLASSIC)
def scaled_up_and_down(stage: Stage) -> None:
    """One worker, two, three, and one again: by kill -9 and in good order; partitions go away and come back."""
    scale(stage)


@scenario(partitions=6, bounded=False, **KIP_848)
def scaled_up_and_down_kip848(stage: Stage) -> None:
    """The same under the newer group protocol."""
    scale(stage)


@scenario(partitions=6, bounded=False, **PLAIN)
def scaled_up_and_down_at_least_once(stage: Stage) -> None:
    """The same without transactions."""
    scale(stage)


@scenario(bounded=False, partitions=6, count=2, **CLASSIC)
def killed_together(stage: Stage) -> None:
    """Of three workers two are killed at once, all are, and one while another one comes back to the group."""
    kill_together(stage)


@scenario(partitions=6, count=2, bounded=False, **KIP_848)
def killed_together_kip848(stage: Stage) -> None:
    """The same under the newer group protocol."""
    kill_together(stage)


@scenario(bounded=False, partitions=6, **CLASSIC)
def stopped_until_replaced(stage: Stage) -> None:
    """A worker stands still until other slots have its partitions: it drops what it had learnt, and goes on."""
    stand_still_until_replaced(stage)


@scenario(partitions=6, bounded=False, **KIP_848)
def stopped_until_replaced_kip848(stage: Stage) -> None:
    """The same under the newer group protocol."""
    stand_still_until_replaced(stage)


@scenario(partitions=6, bounded=False, **PLAIN)
def stopped_until_replaced_at_least_once(stage: Stage) -> None:
    """The same without transactions."""
    stand_still_until_replaced(stage)


def scale(stage: Stage) -> None:
    crew = Crew(stage)
    with stage.flow():
        crew.start(0)
        crew.until_all_move()
        for _ in range(stage.count):
            missing = [slot for slot in range(3) if slot not in crew.at_work]
            for slot in missing:
                crew.start(slot)
                stage.work_on(stage.rng.uniform(0, START_S))
            crew.until_ready()
            crew.until_each_works()
            leaving = stage.rng.sample(range(3), 2)
            crew.kill(leaving[0])
            stage.work_on(stage.rng.uniform(0, 1))
            crew.stop(leaving[1])
            crew.until_all_move()
    crew.finish()
    assert_whole(stage)


def kill_together(stage: Stage) -> None:
    crew = Crew(stage)
    with stage.flow():
        crew.start(0, 1, 2)
        crew.until_ready()
        for i in range(stage.count):
            crew.until_all_move()
            stage.work_on(stage.rng.uniform(0, 0.5))
            victims = stage.rng.sample(range(3), 3 if i % 2 else 2)
            crew.kill(*victims)
            crew.start(*victims)
            stage.work_on(stage.rng.uniform(0, 2 * START_S))  # at some time of which it joins
            crew.kill(stage.rng.choice([slot for slot in range(3) if slot != victims[0]]))
            crew.start(*(slot for slot in range(3) if slot not in crew.at_work))
        crew.until_ready()
        crew.until_all_move()
    crew.finish()
    assert_whole(stage)


def stand_still_until_replaced(stage: Stage) -> None:
    crew = Crew(stage)
    with stage.flow():
        crew.start(0, 1, 2)
        crew.until_ready()
        for _ in range(stage.count):
            crew.until_each_works()
            stage.work_on(stage.rng.uniform(0, 0.5))
            crew.freeze(stage.rng.randrange(3), SESSION_S + stage.rng.uniform(3, 6))
            crew.until_each_works()
    crew.finish()
    assert_whole(stage)
