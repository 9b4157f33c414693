"""The only broker is not there: stopped, killed, frozen, not up yet, or it does not let us in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from olstream.io.client import REFUSED_S
from tests.kafka.chaos.crew import KIP_848
from tests.kafka.chaos.scenario import scenario
from tests.kafka.chaos.stage import PATIENCE_S, SECRET, Stage
from tests.kafka.chaos.verdict import assert_whole
from tests.kafka.service import Worker
from tests.kafka.topics import ANSWER_S, until

RATE: Final = 300  # records a second: an outage leaves a heap, and all of it is learnt again for the verdict
START_S: Final = 4.0  # about as long as a start takes here, on a machine that has other things to do
DECLARED: Final = {"model": {"algorithm": "arow", "task": "binary", "classes": [0, 1]}}  # each slot sees other labels
SASL: Final = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256"}


@scenario(kafka_wait="2m")
def broker_stopped(stage: Stage) -> None:
    """The broker is stopped in good order for 30 s, and started again under load."""
    is_away(stage, stage.kafka.stop, lambda: 30.0)


@scenario(bounded=False, kafka_wait="2m")
def broker_killed(stage: Stage) -> None:
    """The broker is killed and comes back after 30 s."""
    is_away(stage, stage.kafka.kill, lambda: 30.0)


@scenario(bounded=False, count=3, kafka_wait="2m")
def broker_killed_again_and_again(stage: Stage) -> None:
    """The broker is killed, is away for some seconds or for none, comes back, and again."""
    is_away(stage, stage.kafka.kill, lambda: stage.rng.uniform(0, 4))


@scenario(count=3, bounded=False, kafka_wait="2m", **KIP_848)
def broker_killed_again_and_again_kip848(stage: Stage) -> None:
    """The same in a group of the consumer protocol."""
    is_away(stage, stage.kafka.kill, lambda: stage.rng.uniform(0, 4))


@scenario(count=3, bounded=False, kafka_wait="2m", guarantee="at_least_once")
def broker_killed_again_and_again_at_least_once(stage: Stage) -> None:
    """The same without transactions."""
    is_away(stage, stage.kafka.kill, lambda: stage.rng.uniform(0, 4))


@scenario(bounded=False, kafka_wait="2m", guarantee="at_least_once")
def broker_stopped_at_least_once(stage: Stage) -> None:
    """The broker is stopped for 30 s under a worker without transactions."""
    is_away(stage, stage.kafka.stop, lambda: 30.0)


@scenario(bounded=False, kafka_wait="3m")
def broker_down_for_longer_than_a_session(stage: Stage) -> None:
    """The broker is away for so long that the group forgets the worker."""
    is_away(stage, stage.kafka.kill, lambda: 60.0)


def is_away(stage: Stage, go: Callable[[], None], seconds: Callable[[], float]) -> None:
    with stage.flow(RATE):
        worker = stage.service.start().until_ready()
        for _ in range(stage.count):
            stage.until_more(1, worker)
            stage.work_on(stage.rng.uniform(0, 0.5))
            go()
            stage.fault()
            stage.work_on(seconds())
            assert worker.status("/live") == 200, worker.said()[-3000:]
            stage.kafka.start()
        stage.until_more(1, worker)
        until(lambda: worker.status("/ready") == 200, "it says that it is ready again")
    stage.finish(worker)
    assert_whole(stage)


@scenario(bounded=False, count=5, kafka_wait="2m")
def broker_killed_while_a_worker_starts(stage: Stage) -> None:
    """The broker is killed at some moment of a start, and is back some seconds later; again and again."""
    killed_at_starts(stage)


@scenario(bounded=False, count=5, kafka_wait="2m", guarantee="at_least_once")
def broker_killed_while_a_worker_starts_at_least_once(stage: Stage) -> None:
    """The same without transactions."""
    killed_at_starts(stage)


def killed_at_starts(stage: Stage) -> None:
    with stage.flow(RATE):
        for _ in range(stage.count):
            worker = stage.service.start()
            stage.work_on(stage.rng.uniform(0.5, START_S))
            stage.kafka.kill()
            stage.fault()
            stage.work_on(stage.rng.uniform(0, 8))
            stage.kafka.start()
            stage.until_more(1, worker)
            worker.kill()
        worker = stage.service.start()
    stage.finish(worker)
    assert_whole(stage)


@scenario(partitions=4, bounded=False, count=3, kafka_wait="2m", learners=DECLARED)
def broker_killed_under_two_workers(stage: Stage) -> None:
    """Two workers share four partitions while their broker is killed and comes back, again and again."""
    with stage.flow(RATE):
        workers = [stage.slot(n).start().until_ready() for n in range(2)]
        for _ in range(stage.count):
            stage.until_more(500, *workers)
            stage.kafka.kill()
            stage.fault()
            stage.work_on(stage.rng.uniform(0, 6))
            stage.kafka.start()
        stage.until_more(500, *workers)
    stage.finish(*workers)
    assert_whole(stage)


@scenario(bounded=False, kafka_wait="2m")
def broker_down_at_start(stage: Stage) -> None:
    """The worker starts some seconds before its broker."""
    starts_before(stage, 5.0)


@scenario(bounded=False, kafka_wait="2m")
def broker_down_at_start_for_a_minute(stage: Stage) -> None:
    """The worker starts a minute before its broker."""
    starts_before(stage, 60.0)


def starts_before(stage: Stage, seconds: float) -> None:
    stage.kafka.kill()
    stage.fault()
    with stage.flow(RATE):
        worker = stage.service.start()
        until(lambda: "no broker answers at" in worker.page("/ready"), "it says what it waits for")
        stage.work_on(seconds)
        assert worker.status("/live") == 200, worker.said()[-3000:]
        stage.kafka.start()
        worker.until_ready()
        stage.until_more(1, worker)
    stage.finish(worker)
    assert_whole(stage)


@scenario(bounded=False, kafka_wait="4s")
def broker_down_for_longer_than_kafka_wait(stage: Stage) -> None:
    """Nobody brings the broker back in time, neither at a start nor at work: the worker says so and ends."""
    with stage.flow(RATE):
        stage.kafka.kill()
        at_start = stage.service.start()
        assert_gave_up(at_start, "gave up after kafka_wait (4 s): no broker answers at")
        stage.kafka.start()
        at_work = stage.service.start()
        stage.until_more(1, at_work)
        stage.kafka.kill()
        assert_gave_up(at_work, " for 4 s")
        stage.fault(2)
        stage.kafka.start()
        worker = stage.service.start()
        stage.until_more(1, worker)
    stage.finish(worker)
    assert_whole(stage)


@scenario(bounded=False, kafka_wait="1m")
def topic_missing_at_start(stage: Stage) -> None:
    """One topic is not there yet when the worker starts, and is made later."""
    topic = f"{stage.group}-late"
    stage.service.predictions = topic
    stage.fault()
    with stage.flow(RATE):
        worker = stage.service.start(output={"predictions": topic})
        until(lambda: f"there is no topic {topic}: make it" in worker.page("/ready"), "it says what it waits for")
        stage.topics.create(topic)
        worker.until_ready()
        stage.until_more(1, worker)
    stage.finish(worker)
    assert_whole(stage)


@scenario(kafka=SASL)
def credentials_refused(stage: Stage) -> None:
    """The password is unknown at a start, then known, then no longer: a worker that is refused says so and ends."""
    guarded(stage)
    assert_gave_up(stage.service.start(), "Kafka refuses this client")
    permit(stage)
    with stage.flow(RATE):
        worker = stage.service.start()
        stage.until_more(1, worker)
        forbid(stage)
        assert_gave_up(worker, "Kafka refuses this client")
        permit(stage)
        worker = stage.service.start()
        stage.until_more(1, worker)
    stage.finish(worker)
    stage.fault(2)
    assert_whole(stage)


@scenario(count=2, bounded=False, kafka=SASL)
def credentials_refused_for_a_moment(stage: Stage) -> None:
    """The password is unknown for a moment, at work or to a worker without any: it goes on."""
    guarded(stage)
    permit(stage)
    flow = stage.flow(RATE)
    worker = stage.service.start()
    for idle in (False, True) * stage.count:
        flow.feed(RATE)
        flow.flush()
        if idle:
            stage.until_committed(flow.fed, worker)
        refuse_for_a_moment(stage, worker)
        stage.work_on(REFUSED_S + 2)
        stage.until_committed(flow.fed, worker)
    stage.finish(worker)
    assert_whole(stage)


def refuse_for_a_moment(stage: Stage, worker: Worker) -> None:
    def refused() -> float:
        return worker.counted("olstream_kafka_errors_total", code="_AUTHENTICATION")

    before = refused()
    forbid(stage)
    until(lambda: refused() > before, "the worker is refused")
    permit(stage)
    stage.fault()


def guarded(stage: Stage) -> None:
    stage.service.configure(kafka={"bootstrap.servers": stage.kafka.guarded, "sasl.username": stage.group})


def permit(stage: Stage) -> None:
    known = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    _alter(stage, UserScramCredentialUpsertion(stage.group, known, SECRET.encode()))


def forbid(stage: Stage) -> None:
    _alter(stage, UserScramCredentialDeletion(stage.group, ScramMechanism.SCRAM_SHA_256))


def _alter(stage: Stage, alteration: UserScramCredentialAlteration) -> None:
    admin = AdminClient({"bootstrap.servers": stage.kafka.bootstrap, "log_level": 0})
    for done in admin.alter_user_scram_credentials([alteration]).values():
        done.result(ANSWER_S)


def assert_gave_up(worker: Worker, sentence: str) -> None:
    code = worker.wait(PATIENCE_S)
    last = worker.said().splitlines()[-1]
    assert code == 3, f"exit {code}: {worker.said()[-3000:]}"
    assert sentence in last, f"it ended with {last!r}"
