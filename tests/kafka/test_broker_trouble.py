"""The broker hangs, dies and comes back: the worker waits, goes on, and no record is lost or answered twice."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kafka.broker import BrokerUnavailable, Kafka
from tests.kafka.events import events
from tests.kafka.service import Service
from tests.kafka.topics import Topics, until

N = 10_000


@pytest.fixture(scope="module")
def own_broker(kafka: str) -> Iterator[Kafka]:
    """A broker that may be hurt. Whoever gave us one to test with has not allowed that."""
    try:
        with Kafka() as broker:
            yield broker
    except BrokerUnavailable as error:
        pytest.skip(f"no broker of our own to hurt: {error}")


@pytest.fixture
def hurt(own_broker: Kafka, name: str, tmp_path: Path) -> Iterator[Service]:
    """A service at work, with everything still to come already in its topic."""
    settings = {"input": {"batch_max": 50}, "producer": {"queue.buffering.max.messages": 100}}
    service = Service(name, Topics(own_broker.bootstrap), tmp_path / "service", settings).make_topics()
    service.topics.produce(service.input, events(N))
    yield service
    service.end()


def assert_nothing_shows(service: Service) -> None:
    assert [p["offset"] for p in service.predicted()] == list(range(N))
    assert service.inspect()["learners"]["model"]["seen"] == N


def test_a_broker_that_hangs_only_slows_the_worker_down(hurt: Service, own_broker: Kafka) -> None:
    worker = hurt.start()
    hurt.until_committed(500, worker)

    own_broker.pause()
    time.sleep(5)  # how long it hangs
    assert worker.alive
    own_broker.resume()

    hurt.until_committed(N, worker)
    worker.stop()
    assert_nothing_shows(hurt)


def test_a_broker_that_dies_and_comes_back_is_waited_for(hurt: Service, own_broker: Kafka) -> None:
    worker = hurt.start()
    hurt.until_committed(500, worker)

    own_broker.kill()
    until(lambda: worker.status("/ready") == 503 or not worker.alive, "it says that it is not ready")
    assert worker.status("/live") == 200
    own_broker.start()

    hurt.until_committed(N, worker)
    until(lambda: worker.status("/ready") == 200, "it says that it is ready again")
    worker.stop()
    assert_nothing_shows(hurt)


def test_an_idle_worker_stops_in_good_order_though_its_broker_is_dead(hurt: Service, own_broker: Kafka) -> None:
    worker = hurt.start()
    hurt.until_committed(N, worker)

    own_broker.kill()
    worker.stop()

    own_broker.start()
    assert_nothing_shows(hurt)


def test_a_worker_told_to_stop_does_not_wait_for_a_dead_broker_for_ever(hurt: Service, own_broker: Kafka) -> None:
    worker = hurt.start()
    hurt.until_committed(500, worker)

    own_broker.kill()
    worker.send(signal.SIGTERM)
    code = worker.wait(30)  # what orchestrators allow
    said = worker.said()
    own_broker.start()
    hurt.run_to(N)

    assert code == 3
    assert "told to stop while Kafka does not answer" in said
    assert_nothing_shows(hurt)
