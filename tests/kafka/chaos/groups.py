"""Workers stopped for a while, and slots that two workers hold at the same time."""

from __future__ import annotations

import shutil
import signal
from typing import Final

from olstream.io.disk import slot_directory
from tests.kafka.chaos.crew import (
    CLASSIC,
    KIP_848,
    PLAIN,
    PLAIN_KIP_848,
    SESSION_S,
    START_S,
    TRANSACTION_S,
    settle,
)
from tests.kafka.chaos.scenario import scenario
from tests.kafka.chaos.stage import PATIENCE_S, Stage
from tests.kafka.chaos.verdict import assert_counted, assert_verified, assert_whole, read_inputs
from tests.kafka.service import Service, Worker
from tests.kafka.topics import until

LONGER_SESSION_S: Final = 10.0


@scenario(count=2, producer=CLASSIC["producer"], consumer={"session.timeout.ms": int(1000 * LONGER_SESSION_S)})
def stopped_alone(stage: Stage) -> None:
    """A lone worker stands still for longer than its transaction, then than its session, and goes on by itself."""
    stand_still(stage)


@scenario(count=2, bounded=False, **KIP_848)
def stopped_alone_kip848(stage: Stage) -> None:
    """The same under the newer group protocol."""
    stand_still(stage)


@scenario(count=2, bounded=False, **PLAIN)
def stopped_alone_at_least_once(stage: Stage) -> None:
    """The same without transactions."""
    stand_still(stage)


@scenario(count=3, bounded=False)
def stopped_alone_for_long(stage: Stage) -> None:
    """The same with the timeouts that we ship: 10 s for a transaction, 45 s for a session."""
    stand_still(stage, transaction_s=20, session_s=45)


@scenario(count=2, **CLASSIC)
def doubled_while_stopped(stage: Stage) -> None:
    """While a worker stands still a second one of its slot is started: one goes on, the other ends with 5."""
    double_while_stopped(stage)


@scenario(bounded=False, count=2, **KIP_848)
def doubled_while_stopped_kip848(stage: Stage) -> None:
    """The same under the newer group protocol, where both are members."""
    double_while_stopped(stage)


@scenario(count=2, bounded=False, **PLAIN)
def doubled_while_stopped_at_least_once(stage: Stage) -> None:
    """The same without transactions: only the group and the journal tell one from the other."""
    double_while_stopped(stage)


@scenario(count=2, bounded=False, **PLAIN_KIP_848)
def doubled_while_stopped_at_least_once_kip848(stage: Stage) -> None:
    """The same without transactions, both of them members: only the journal tells one from the other."""
    double_while_stopped(stage)


@scenario(bounded=False, **CLASSIC)
def doubled_while_idle(stage: Stage) -> None:
    """A second worker of a slot that has nothing to do: one of them finds out without a record."""
    double_while_idle(stage)


@scenario(bounded=False, **KIP_848)
def doubled_while_idle_kip848(stage: Stage) -> None:
    """The same under the newer group protocol, where both are members."""
    double_while_idle(stage)


@scenario(bounded=False, count=3, **CLASSIC)
def doubled_while_well(stage: Stage) -> None:
    """A second worker of a slot that is at work: with no state, with a journal to learn from, with a copy."""
    double_while_well(stage)


@scenario(count=3, bounded=False, **KIP_848)
def doubled_while_well_kip848(stage: Stage) -> None:
    """The same under the newer group protocol."""
    double_while_well(stage)


@scenario(count=3, bounded=False, **PLAIN)
def doubled_while_well_at_least_once(stage: Stage) -> None:
    """The same without transactions."""
    double_while_well(stage)


@scenario(count=6, bounded=False, **CLASSIC)
def doubled_for_ever(stage: Stage) -> None:
    """Two pods have the same slot, and whichever ends is started again: they take turns, and nothing is lost."""
    contend(stage)


@scenario(count=6, bounded=False, **KIP_848)
def doubled_for_ever_kip848(stage: Stage) -> None:
    """The same under the newer group protocol."""
    contend(stage)


@scenario(count=6, bounded=False, **PLAIN)
def doubled_for_ever_at_least_once(stage: Stage) -> None:
    """The same without transactions."""
    contend(stage)


def stand_still(stage: Stage, transaction_s: float = TRANSACTION_S, session_s: float = LONGER_SESSION_S) -> None:
    with stage.flow():
        worker = stage.service.start().until_ready()
        for i in range(stage.count):
            stage.until_more(1, worker)
            stage.work_on(stage.rng.uniform(0, 0.3))
            longer_than = (transaction_s, session_s, 0)[i % 3]
            freeze(stage, worker, longer_than + stage.rng.uniform(1.5, 3))
            stage.until_more(1, worker)
    stage.finish(worker)
    assert_whole(stage)


def double_while_stopped(stage: Stage) -> None:
    """Round after round, of any length; the second one starts while the first stands still, or as it goes on."""
    with stage.flow():
        first = stage.service, stage.service.start().until_ready()
        for i in range(stage.count):
            stage.until_more(1, first[1])
            stage.work_on(stage.rng.uniform(0, 0.3))
            first[1].send(signal.SIGSTOP)
            stage.fault()
            stage.work_on(stage.rng.choice((0, TRANSACTION_S + 1, SESSION_S + 1)))
            assert first[0].start().wait(PATIENCE_S) == 5, "the lock of a process that stands still is held"
            twin = stage.double()
            second = twin, twin.start()
            stage.work_on(stage.rng.uniform(0, START_S) + (TRANSACTION_S if i % 2 else 0))
            first[1].send(signal.SIGCONT)
            first, loser = settle(stage, 0, first, second)
            stage.until_more(500, first[1])
    stage.finish(first[1])
    assert_whole(stage)
    assert_loser_can_return(stage, loser[0])


def double_while_idle(stage: Stage) -> None:
    flow = stage.flow()
    flow.feed(500)
    first = stage.service, stage.service.start().until_ready()
    stage.until_committed(500, first[1])
    for stops in (True, False):
        if stops:
            first[1].send(signal.SIGSTOP)
        twin = stage.double()
        second = twin, twin.start()
        stage.fault()
        stage.work_on(stage.rng.uniform(0, 2 * START_S))
        first[1].send(signal.SIGCONT)
        first, loser = settle(stage, 0, first, second)
        flow.feed(500)
        flow.flush()
        stage.until_committed(flow.fed, first[1])
    stage.finish(first[1])
    assert_whole(stage)
    assert_loser_can_return(stage, loser[0])


def double_while_well(stage: Stage) -> None:
    with stage.flow():
        first = stage.service, stage.service.start().until_ready()
        for i in range(stage.count):
            stage.until_more(500, first[1])
            twin = stage.double(on_missing="fail" if i % 3 == 0 else "replay")
            if i % 3 == 2:
                copy_state(first[0], twin)
            second = twin, twin.start()
            stage.fault()
            if i % 3 == 0:
                code = second[1].wait(PATIENCE_S)
                assert code in (4, 5), f"exit {code} without any state: {second[1].said()[-3000:]}"
            else:
                first, _ = settle(stage, 0, first, second)
            stage.until_more(500, first[1])
    stage.finish(first[1])
    assert_whole(stage)


def contend(stage: Stage) -> None:
    pods, workers = [stage.service], [stage.service.start()]
    with stage.flow():
        until_more_is_done_by_any(stage, pods, workers)  # what the second one finds, so that both have one history
        pods.append(stage.double())
        workers.append(pods[1].start())
        for _ in range(stage.count):
            until_more_is_done_by_any(stage, pods, workers)
            freeze(stage, stage.rng.choice(workers), stage.rng.uniform(0, TRANSACTION_S + 2))
        workers.pop().send(signal.SIGTERM)
        until_more_is_done_by_any(stage, pods, workers)
    stage.finish(*workers)
    assert_whole(stage)


def until_more_is_done_by_any(stage: Stage, pods: list[Service], workers: list[Worker]) -> None:
    """Whoever ends is started again, as an orchestrator does."""
    goal = stage.committed() + 500

    def is_done() -> bool:
        for i, worker in enumerate(workers):
            if not worker.alive:
                assert worker.wait(1) == 5, worker.said()[-3000:]
                workers[i] = pods[i].start()
        return stage.committed() >= goal

    until(is_done, f"{goal} records done", PATIENCE_S)


def assert_loser_can_return(stage: Stage, loser: Service) -> None:
    """What is in the directory of the one that ended is still a beginning of the slot's model."""
    stage.services[0] = loser
    stage.flow().feed(100)
    stage.finish(loser.start())
    assert_counted(stage, read_inputs(stage))
    assert_verified(stage)


def freeze(stage: Stage, worker: Worker, seconds: float) -> None:
    worker.send(signal.SIGSTOP)
    stage.fault()
    stage.work_on(seconds)
    worker.send(signal.SIGCONT)


def copy_state(of: Service, to: Service) -> None:
    """As a backup would, while its owner writes: what goes away meanwhile is not in it."""
    source, target = (slot_directory(service.state, service.group, 0) for service in (of, to))
    for folder in sorted(source.glob("checkpoint-*")):
        try:
            shutil.copytree(folder, target / folder.name)
        except (OSError, shutil.Error):
            continue
