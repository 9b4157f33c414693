"""Topics that vanish, or are made anew, under a running worker."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import pytest
from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException, TopicCollection

from olstream.config import Config
from olstream.errors import KafkaError, StateError
from olstream.io.client import Errors
from olstream.io.kafka_guard import TopicGuard

FACTS: dict[str, Any] = {"journal": {"topic": "j"}, "topic_ids": {"events": "e1", "j": "j1"}}


@dataclass
class Described:
    topic_id: str | None


@dataclass
class FakeAdmin:
    """Tells the ids of the topics it has."""

    ids: dict[str, str | None] = field(default_factory=lambda: {"events": "e1", "j": "j1", "out": "o1"})
    code: int = ClientError.UNKNOWN_TOPIC_OR_PART  # of what it has not

    def describe_topics(self, names: TopicCollection, request_timeout: float) -> dict[str, Future[Described]]:
        return {name: self._described(name) for name in names.topic_names}

    def _described(self, name: str) -> Future[Described]:
        answer: Future[Described] = Future()
        if name in self.ids:
            answer.set_result(Described(self.ids[name]))
        else:
            answer.set_exception(KafkaException(ClientError(self.code)))
        return answer


@dataclass
class Guarded:
    """A guard with what it says, and to whom."""

    admin: FakeAdmin = field(default_factory=FakeAdmin)
    errors: Errors = field(default_factory=Errors)
    said: list[str | None] = field(default_factory=list)

    def look(self, kafka_wait: str = "5m") -> None:
        config = Config.model_validate({"learners": {"a": {"algorithm": "arow"}}, "kafka_wait": kafka_wait})
        guard = TopicGuard(config, self.admin, FACTS, ["out"], self.errors, self.said.append)  # type: ignore[arg-type]
        guard.look()


def without(names: Iterable[str]) -> Guarded:
    guarded = Guarded()
    for name in names:
        del guarded.admin.ids[name]
    return guarded


def test_topics_that_are_there_and_the_same_are_no_trouble() -> None:
    guarded = Guarded()

    guarded.look()

    guarded.errors.raise_if_refused()
    assert guarded.said == [None]


@pytest.mark.parametrize("topic", ["events", "j"])
def test_an_input_or_the_journal_made_anew_ends_the_worker(topic: str) -> None:
    guarded = Guarded()
    guarded.admin.ids[topic] = "another"

    guarded.look()

    with pytest.raises(StateError, match=f"{topic} was made anew"):
        guarded.errors.raise_if_refused()


def test_an_output_may_be_made_anew() -> None:
    guarded = Guarded()
    guarded.admin.ids["out"] = "another"

    guarded.look()

    guarded.errors.raise_if_refused()


def test_a_missing_topic_is_told_and_waited_for() -> None:
    guarded = without(["events", "out"])

    guarded.look()

    guarded.errors.raise_if_refused()
    (why,) = guarded.said
    assert why is not None and why.startswith("there is no topic events, out:")
    assert guarded.errors.trouble == why


def test_a_topic_that_comes_back_is_no_trouble_any_more() -> None:
    guarded = without(["out"])
    guarded.look()
    guarded.admin.ids["out"] = "o2"

    guarded.look()

    assert guarded.said[-1] is None
    assert guarded.errors.trouble is None


def test_a_topic_that_stays_away_is_given_up_after_kafka_wait() -> None:
    guarded = without(["out"])

    guarded.look(kafka_wait="0s")

    with pytest.raises(KafkaError, match=r"gave up after kafka_wait.*no topic out"):
        guarded.errors.raise_if_refused()


@pytest.mark.parametrize("code", [ClientError._TIMED_OUT, ClientError.TOPIC_AUTHORIZATION_FAILED])
def test_what_no_broker_tells_is_not_missing(code: int) -> None:
    guarded = without(["events", "j", "out"])
    guarded.admin.code = code

    guarded.look()

    assert guarded.said == [None]


def test_ids_that_a_broker_does_not_know_are_no_change() -> None:
    guarded = Guarded(FakeAdmin({"events": "A" * 22, "j": None, "out": None}))

    guarded.look()

    guarded.errors.raise_if_refused()
    assert guarded.said == [None]
