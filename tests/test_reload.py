"""What may change while the worker runs, and what is refused, and how that is told."""

from __future__ import annotations

from typing import Any

import pytest

from olstream.checkpoint import Position
from olstream.config import Config, parse
from olstream.errors import ConfigError, StateError
from olstream.recover import SINCE
from olstream.reload import changes, facts_under

FILE = """
kafka: {bootstrap.servers: "localhost:9092", sasl.password: "${PASSWORD}"}
input: {topics: [events]}
learners:
  first: {algorithm: arow}
  second: {algorithm: pa1}
routes:
  - {learner: first, shadows: [second]}
"""


def config(text: str = FILE, password: str = "hunter2") -> Config:
    return parse(text, "c.yaml", {"PASSWORD": password})


def with_(old: str, new: str) -> Config:
    assert old in FILE
    return config(FILE.replace(old, new))


def also(text: str) -> Config:
    return config(f"{FILE}\n{text}")


def refusal(now: Config) -> str:
    with pytest.raises((ConfigError, StateError)) as caught:
        changes(config(), now)
    return str(caught.value)


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (with_("learner: first, shadows: [second]", "learner: second"), "routes: "),
        (
            with_("second: {algorithm: pa1}", "second: {algorithm: pa1, learn: false}"),
            "learners.second.learn: true -> ",
        ),
        (
            with_("second: {algorithm: pa1}", "second: {algorithm: pa1, threshold: 0.5}"),
            "learners.second.threshold: 0.0",
        ),
        (
            with_("first: {algorithm: arow}", "first: {algorithm: arow}\n  third: {algorithm: cw}"),
            "learners.third.algor",
        ),
        (also("monitor: {window: 10}"), "monitor.window: 1000 -> 10"),
        (also("monitor: {on_drift: reset}"), "monitor.on_drift: "),
        (also("join: {ttl: 1m}"), "join.ttl: "),
        (also("log: {level: debug}"), 'log.level: "info" -> "debug"'),
        (also("commit_interval: 1s"), "commit_interval: "),
        (also("checkpoint: {interval: 1s, keep: 5}"), "checkpoint.interval: "),
        (also("output: {scores: true}"), "output.scores: false -> true"),
        (also("output: {copy_headers: [a]}"), "output.copy_headers: "),
    ],
)
def test_what_bears_on_learning_and_showing_is_taken_and_told(now: Config, told: str) -> None:
    assert any(change.startswith(told) for change in changes(config(), now))


@pytest.mark.parametrize(
    ("now", "key"),
    [
        (with_("localhost", "elsewhere"), "kafka.bootstrap.servers"),
        (with_("[events]", "[events, labels]"), "input.topics"),
        (also("group: another"), "group"),
        (also("slot: 1"), "slot"),
        (also("guarantee: at_least_once"), "guarantee"),
        (also("kafka_wait: 1s"), "kafka_wait"),
        (also("consumer: {fetch.min.bytes: 10}"), "consumer.fetch.min.bytes"),
        (also("output: {shadows: shadows}"), "output.shadows"),
        (also("checkpoint: {path: elsewhere}"), "checkpoint.path"),
        (also("http: {port: 1}"), "http.port"),
        (also("join: {allow_partition_mismatch: true}"), "join.allow_partition_mismatch"),
    ],
)
def test_what_needs_other_clients_or_another_place_is_refused_by_its_name(now: Config, key: str) -> None:
    assert refusal(now).startswith(f"{key} cannot change while the worker runs: put it back, or stop ")


def test_of_several_that_cannot_change_all_are_named() -> None:
    assert refusal(also("group: another\nslot: 1")).startswith("group, slot cannot change")


def test_a_secret_that_changed_is_not_told() -> None:
    said = refusal(config(password="swordfish"))

    assert said.startswith("kafka.sasl.password cannot change")
    assert "hunter2" not in said and "swordfish" not in said


@pytest.mark.parametrize(
    "now",
    [
        with_("{algorithm: pa1}", "{algorithm: pa1, params: {C: 2.0}}"),
        with_("{algorithm: pa1}", "{algorithm: pa1, scale: standard}"),
        with_("topics: [events]", "topics: [events], fields: {features: data}"),
        with_("topics: [events]", "topics: [events], exclude: [a]"),
    ],
)
def test_a_learner_stays_what_it_is(now: Config) -> None:
    assert "has learnt under other settings" in refusal(now)


def test_a_file_that_says_the_same_in_other_words_changes_nothing() -> None:
    assert changes(config(), with_("{algorithm: pa1}", "{algorithm: pa1, bias: true}")) == []
    assert changes(config(), with_("[events]", "[events], fields: {id: id}")) == []


def test_that_another_learner_stands_first_is_a_change() -> None:
    swapped = FILE.replace(
        "  first: {algorithm: arow}\n  second: {algorithm: pa1}", "  second: {algorithm: pa1}\n  first:"
    )

    assert changes(config(), config(swapped)) == ["learners: another order"]


def test_a_checkpoint_says_since_when_its_settings_hold() -> None:
    then: dict[str, Any] = {"group": "g", SINCE: ("a", 1)}
    here = Position("a", 7)

    assert facts_under(then, config(), also("monitor: {window: 10}"), here) == {"group": "g", SINCE: ("a", 7)}
    assert facts_under(then, config(), also("log: {level: debug}"), here) == then
