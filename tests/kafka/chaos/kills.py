"""SIGKILL at moments nobody chose."""

from __future__ import annotations

from tests.kafka.chaos.scenario import scenario
from tests.kafka.chaos.stage import Stage
from tests.kafka.chaos.verdict import assert_whole
from tests.kafka.service import Worker

START_S = 2.0  # about as long as a start takes here: half of the kills come before the first commit of a life


@scenario(count=8)
def sigkill(stage: Stage) -> None:
    """One worker is killed at random moments, at work and while it starts."""
    kill_again_and_again(stage)


@scenario(bounded=False, count=8, guarantee="at_least_once")
def sigkill_at_least_once(stage: Stage) -> None:
    """The same without transactions: nothing is lost, and learnt once."""
    kill_again_and_again(stage)


@scenario(partitions=6, count=9, learners={"model": {"algorithm": "arow", "task": "binary", "classes": [0, 1]}})
def sigkill_of_three(stage: Stage) -> None:
    """Three workers share six partitions; one after the other is killed and comes back at once."""
    slots = [stage.slot(n) for n in range(3)]
    with stage.flow():
        workers = [slot.start() for slot in slots]
        for worker in workers:
            worker.until_ready()
        for _ in range(stage.count):
            stage.work_on(stage.rng.uniform(0, START_S))
            victim = stage.rng.randrange(3)
            workers[victim].kill()
            stage.fault()
            workers[victim] = slots[victim].start()
            others = [w for i, w in enumerate(workers) if i != victim]
            stage.until_more(1, *others)
    stage.finish(*workers)
    assert_whole(stage)


def kill_again_and_again(stage: Stage) -> None:
    with stage.flow():
        stage.service.start().until_ready().kill()  # the first start has more to do than any other
        for i in range(stage.count):
            worker = stage.service.start()
            if i % 2:
                stage.until_more(1, worker)
                stage.work_on(stage.rng.uniform(0, 0.5))
            else:
                stage.work_on(stage.rng.uniform(0, START_S))
            assert worker.alive, worker.said()[-3000:]
            worker.kill()
            stage.fault()
        last = _until_it_works(stage)
    stage.finish(last)
    assert_whole(stage)


def _until_it_works(stage: Stage) -> Worker:
    worker = stage.service.start()
    stage.until_more(1, worker)
    return worker
