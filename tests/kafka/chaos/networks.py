"""The broker is well, but the way to it is not, or it stands still at the worst moment of a commit."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from tests.kafka.chaos.brokers import RATE
from tests.kafka.chaos.crew import CLASSIC, KIP_848, TRANSACTION_S
from tests.kafka.chaos.proxy import END_TXN, INIT_PRODUCER_ID, KINDS, Direction, Proxy
from tests.kafka.chaos.scenario import scenario
from tests.kafka.chaos.stage import PATIENCE_S, Stage
from tests.kafka.chaos.verdict import assert_whole
from tests.kafka.service import Worker
from tests.kafka.topics import until

CAUGHT_S: Final = 5.0  # not every kind of request comes in every life
ORCHESTRATED_S: Final = 30.0  # from SIGTERM to SIGKILL, where nobody says otherwise


@contextmanager
def proxied(stage: Stage) -> Iterator[Proxy]:
    """The worker of this stage reaches the broker through a proxy."""
    with Proxy(*stage.kafka.proxied()) as proxy:
        stage.service.configure(kafka={"bootstrap.servers": proxy.bootstrap})
        yield proxy


@scenario(producer=CLASSIC["producer"])
def commits_in_doubt(stage: Stage) -> None:
    """The answer to a commit is lost, then a commit is so late that all is sent again before it arrives."""
    doubt(stage)


@scenario(bounded=False, **KIP_848)
def commits_in_doubt_kip848(stage: Stage) -> None:
    """The same in a group of the consumer protocol."""
    doubt(stage)


def doubt(stage: Stage) -> None:
    def stall(direction: Direction, outcome: str) -> None:
        stage.until_more(1, worker)
        hold = proxy.hold(direction, END_TXN, until=INIT_PRODUCER_ID)  # which a new producer begins with
        stage.fault()
        until(lambda: worker.counted("olstream_commits_total", outcome=outcome) == 1, outcome)
        hold.let_go()

    with proxied(stage) as proxy:
        with stage.flow(RATE):
            worker = stage.service.start().until_ready()
            stall("answer", "resolved_committed")
            stall("request", "resolved_resent")
            stage.until_more(1, worker)
        stage.finish(worker)
        assert_whole(stage)


@scenario(count=3, bounded=False)
def frozen_during_a_commit(stage: Stage) -> None:
    """The broker stands still for 3 s, a commit in its hands."""
    frozen(stage, 3.0)


@scenario(bounded=False, producer=CLASSIC["producer"])
def frozen_for_longer_than_a_transaction(stage: Stage) -> None:
    """The broker stands still, a commit in its hands, until it has to give the transaction up."""
    frozen(stage, TRANSACTION_S + 3)


@scenario(bounded=False)
def frozen_for_longer_than_our_transaction(stage: Stage) -> None:
    """The same with the 10 s that we ship."""
    frozen(stage, 13.0)


@scenario(bounded=False, kafka_wait="2m")
def frozen_for_longer_than_a_session(stage: Stage) -> None:
    """The broker stands still for so long that it forgets the worker."""
    frozen(stage, 60.0)


@scenario(bounded=False, kafka_wait="2m", **KIP_848)
def frozen_for_longer_than_a_session_kip848(stage: Stage) -> None:
    """The same in a group of the consumer protocol."""
    frozen(stage, 60.0)


@scenario(bounded=False, kafka_wait="2m", guarantee="at_least_once")
def frozen_for_longer_than_a_session_at_least_once(stage: Stage) -> None:
    """The same without transactions, at a moment of its own."""
    with stage.flow(RATE):
        worker = stage.service.start().until_ready()
        stage.until_more(1, worker)
        freeze(stage, worker, 60.0)
        stage.until_more(1, worker)
    stage.finish(worker)
    assert_whole(stage)


def frozen(stage: Stage, seconds: float) -> None:
    with proxied(stage) as proxy:
        with stage.flow(RATE):
            worker = stage.service.start().until_ready()
            for _ in range(stage.count):
                stage.until_more(1, worker)
                hold = proxy.hold("request", END_TXN)
                assert hold.caught.wait(PATIENCE_S)
                freeze(stage, worker, seconds, hold.let_go)
                stage.until_more(1, worker)
        stage.finish(worker)
        assert_whole(stage)


def freeze(stage: Stage, worker: Worker, seconds: float, meanwhile: Callable[[], None] = lambda: None) -> None:
    stage.kafka.pause()
    meanwhile()
    stage.fault()
    stage.work_on(seconds)
    assert worker.status("/live") == 200, worker.said()[-3000:]
    stage.kafka.resume()


@scenario(bounded=False)
def told_to_stop_while_frozen(stage: Stage) -> None:
    """A worker, at work or idle, is told to stop while the broker stands still: it does not wait for ever."""
    told_to_stop(stage)


@scenario(bounded=False, guarantee="at_least_once")
def told_to_stop_while_frozen_at_least_once(stage: Stage) -> None:
    """The same without transactions."""
    told_to_stop(stage)


def told_to_stop(stage: Stage) -> None:
    flow = stage.flow(RATE)
    with flow:
        at_work = stage.service.start()
        stage.until_more(1, at_work)
        stage.kafka.pause()
        stage.fault()
        stage.work_on(1.0)  # a commit comes more often
        at_work.send(signal.SIGTERM)
        assert at_work.wait(ORCHESTRATED_S) == 3, at_work.said()[-3000:]
        assert "told to stop while Kafka does not answer" in at_work.said()
        stage.kafka.resume()
    idle = stage.service.start()
    stage.until_committed(flow.fed, idle)
    stage.kafka.pause()
    stage.fault()
    idle.send(signal.SIGTERM)
    assert idle.wait(ORCHESTRATED_S) == 0, idle.said()[-3000:]
    stage.kafka.resume()
    assert_whole(stage)


@scenario(bounded=False, count=10)
def connections_cut(stage: Stage) -> None:
    """All connections end at moments nobody chose, on a network that is sometimes slow."""
    cut_again_and_again(stage)


@scenario(count=10, bounded=False, guarantee="at_least_once")
def connections_cut_at_least_once(stage: Stage) -> None:
    """The same without transactions."""
    cut_again_and_again(stage)


@scenario(count=10, bounded=False, **KIP_848)
def connections_cut_kip848(stage: Stage) -> None:
    """The same in a group of the consumer protocol."""
    cut_again_and_again(stage)


def cut_again_and_again(stage: Stage) -> None:
    with proxied(stage) as proxy:
        with stage.flow(RATE):
            worker = stage.service.start()
            for _ in range(stage.count):
                proxy.delay_s = stage.rng.choice((0.0, 0.0, 0.01, 0.05, 0.2))
                stage.work_on(stage.rng.uniform(0, 1.5))
                proxy.cut()
                stage.fault()
            proxy.delay_s = 0.0
            stage.until_more(1, worker)
        stage.finish(worker)
        assert_whole(stage)


@scenario(bounded=False, count=2, kafka_wait="2m")
def one_way_only(stage: Stage) -> None:
    """Nothing of one direction arrives for a while, then nothing of the other."""
    one_direction(stage)


@scenario(bounded=False, count=2, kafka_wait="2m", guarantee="at_least_once")
def one_way_only_at_least_once(stage: Stage) -> None:
    """The same without transactions."""
    one_direction(stage)


@scenario(bounded=False, count=2, kafka_wait="2m", **KIP_848)
def one_way_only_kip848(stage: Stage) -> None:
    """The same in a group of the consumer protocol."""
    one_direction(stage)


def one_direction(stage: Stage) -> None:
    directions: tuple[Direction, Direction] = ("request", "answer")
    with proxied(stage) as proxy:
        with stage.flow(RATE):
            worker = stage.service.start().until_ready()
            for i in range(stage.count):
                stage.until_more(1, worker)
                hold = proxy.hold(directions[i % 2])
                stage.fault()
                stage.work_on(stage.rng.uniform(5, 40))
                assert worker.status("/live") == 200, worker.said()[-3000:]
                hold.let_go()
            stage.until_more(1, worker)
        stage.finish(worker)
        assert_whole(stage)


@scenario(bounded=False, count=6, kafka_wait="2m")
def requests_stalled(stage: Stage) -> None:
    """At a start, or at work, requests of one kind do not get through, or their answers; then those of another."""
    stalled_in_turn(stage)


@scenario(bounded=False, count=6, kafka_wait="2m", guarantee="at_least_once")
def requests_stalled_at_least_once(stage: Stage) -> None:
    """The same without transactions."""
    stalled_in_turn(stage)


@scenario(bounded=False, count=6, kafka_wait="2m", **KIP_848)
def requests_stalled_kip848(stage: Stage) -> None:
    """The same in a group of the consumer protocol."""
    stalled_in_turn(stage)


def stalled_in_turn(stage: Stage) -> None:
    directions: tuple[Direction, Direction] = ("request", "answer")
    with proxied(stage) as proxy:
        with stage.flow(RATE):
            worker = stage.service.start().until_ready()
            for _ in range(stage.count):
                hold = proxy.hold(stage.rng.choice(directions), stage.rng.choice(KINDS))
                if stage.rng.random() < 0.5:
                    worker.kill()
                    worker = stage.service.start()
                hold.caught.wait(CAUGHT_S)
                stage.fault()
                stage.work_on(stage.rng.uniform(1, 15))
                assert worker.alive, worker.said()[-3000:]
                hold.let_go()
                stage.until_more(1, worker)
        stage.finish(worker)
        assert_whole(stage)
