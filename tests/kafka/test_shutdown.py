"""Told to end, the worker ends: soon, with everything that it did committed and saved."""

from __future__ import annotations

import signal

import pytest

from tests.kafka.events import events
from tests.kafka.feeding import Feeder
from tests.kafka.service import ServiceFactory
from tests.kafka.topics import until


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_sigterm_under_load_commits_and_saves_what_was_consumed(service: ServiceFactory, guarantee: str) -> None:
    made = service(guarantee=guarantee, checkpoint={"interval": "1h"}).make_topics()
    worker = made.start().until_ready()

    with Feeder(made, events(200_000)) as feeder:
        until(lambda: feeder.committed > 5000, "the worker is at work")
        worker.send(signal.SIGTERM)
        assert worker.wait(10) == 0, worker.said()[-3000:]

    done = made.committed()
    assert done > 5000
    assert [p["offset"] for p in made.predicted()] == list(range(done))
    saved = made.inspect()
    assert saved["offsets"][made.input]["0"] == done
    assert saved["learners"]["model"]["seen"] == done


@pytest.mark.parametrize("what", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_worker_ends_at_once(service: ServiceFactory, what: signal.Signals) -> None:
    worker = service().make_topics().start().until_ready()

    worker.send(what)

    assert worker.wait(5) == 0, worker.said()[-3000:]


def test_everything_sent_before_the_end_is_answered(service: ServiceFactory) -> None:
    made = service().make_topics()
    made.topics.produce(made.input, events(1000))

    made.run_to(1000)

    assert [p["id"] for p in made.predicted()] == [f"e{i}" for i in range(1000)]
