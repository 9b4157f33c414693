"""Three nodes, of which one goes: the one that keeps our transactions, our group, or our input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.kafka.broker import FOR_TESTS
from tests.kafka.chaos.brokers import RATE
from tests.kafka.chaos.crew import KIP_848
from tests.kafka.chaos.scenario import scenario
from tests.kafka.chaos.stage import PATIENCE_S, Stage
from tests.kafka.chaos.verdict import assert_whole
from tests.kafka.topics import until


def transactions_at(stage: Stage) -> int:
    return _coordinator(stage, "__transaction_state", "transaction.state.log.num.partitions", f"{stage.group}-0")


def group_at(stage: Stage) -> int:
    return _coordinator(stage, "__consumer_offsets", "offsets.topic.num.partitions", stage.group)


def input_at(stage: Stage) -> int:
    return stage.topics.leader(stage.input)


ROLES: Final = (transactions_at, group_at, input_at)


def _coordinator(stage: Stage, topic: str, partitions: str, name: str) -> int:
    """The node that leads the partition in which a group or a transactional id is kept."""
    return stage.topics.leader(topic, abs(_java_hash(name)) % int(FOR_TESTS[partitions]))


def _java_hash(text: str) -> int:
    """What `String.hashCode` says of ASCII."""
    hashed = 0
    for byte in text.encode():
        hashed = (31 * hashed + byte) & 0xFFFFFFFF
    return hashed - (1 << 32) if hashed >> 31 else hashed


@scenario(nodes=3, count=2, commit_interval="300ms", kafka_wait="2m")
def coordinators_killed(stage: Stage) -> None:
    """The node of our transactions, that of our group, and with a count of 3 that of our input are killed, at work."""
    killed_in_turn(stage)


@scenario(nodes=3, count=3, bounded=False, guarantee="at_least_once", kafka_wait="2m")
def coordinators_killed_at_least_once(stage: Stage) -> None:
    """The same without transactions."""
    killed_in_turn(stage)


@scenario(nodes=3, count=3, bounded=False, commit_interval="300ms", kafka_wait="2m", **KIP_848)
def coordinators_killed_kip848(stage: Stage) -> None:
    """The same in a group of the consumer protocol."""
    killed_in_turn(stage)


def killed_in_turn(stage: Stage) -> None:
    with stage.flow(RATE):
        worker = stage.service.start().until_ready()
        for i in range(stage.count):
            stage.until_more(1, worker)
            stage.work_on(stage.rng.uniform(0, 0.3))
            node = moved(stage, ROLES[i % len(ROLES)], stage.kafka.kill)
            stage.until_more(1, worker)
            stage.kafka.start(node)
        stage.until_more(1, worker)
    stage.finish(worker)
    assert_whole(stage)


def moved(stage: Stage, role: Callable[[Stage], int], end: Callable[[int], None]) -> int:
    """End, or freeze, the node that has this role; when this returns another has it."""
    node = role(stage)
    end(node)
    stage.fault()
    until(lambda: role(stage) not in (-1, node), "another node takes over", PATIENCE_S)
    return node


@scenario(nodes=3, count=2, bounded=False, commit_interval="300ms", kafka_wait="2m")
def transactions_move_twice(stage: Stage) -> None:
    """The coordinator of our transactions is killed, and at once the one that took over."""
    with stage.flow(RATE):
        worker = stage.service.start().until_ready()
        for _ in range(stage.count):
            stage.until_more(1, worker)
            first = moved(stage, transactions_at, stage.kafka.kill)
            stage.kafka.start(first)
            second = moved(stage, transactions_at, stage.kafka.kill)
            stage.kafka.start(second)
        stage.until_more(1, worker)
    stage.finish(worker)
    assert_whole(stage)


@scenario(nodes=3, count=3, bounded=False, commit_interval="300ms", kafka_wait="2m")
def coordinators_frozen(stage: Stage) -> None:
    """The node of our transactions, of our group, of our input stands still until another takes over, then goes on."""
    with stage.flow(RATE):
        worker = stage.service.start().until_ready()
        for i in range(stage.count):
            stage.until_more(1, worker)
            moved(stage, ROLES[i % len(ROLES)], stage.kafka.pause)
            stage.work_on(stage.rng.uniform(0, 10))
            stage.kafka.resume()
        stage.until_more(1, worker)
    stage.finish(worker)
    assert_whole(stage)


@scenario(nodes=3, bounded=False, kafka_wait="2m")
def rolling_restart(stage: Stage) -> None:
    """Each node is stopped in good order and started again, one after the other."""
    one_after_the_other(stage)


@scenario(nodes=3, bounded=False, guarantee="at_least_once", kafka_wait="2m")
def rolling_restart_at_least_once(stage: Stage) -> None:
    """The same without transactions."""
    one_after_the_other(stage)


@scenario(nodes=3, bounded=False, kafka_wait="2m", **KIP_848)
def rolling_restart_kip848(stage: Stage) -> None:
    """The same in a group of the consumer protocol."""
    one_after_the_other(stage)


def one_after_the_other(stage: Stage) -> None:
    with stage.flow(RATE):
        worker = stage.service.start().until_ready()
        for _ in range(stage.count):
            for node in stage.kafka.nodes:
                stage.kafka.stop(node)
                stage.fault()
                stage.work_on(stage.rng.uniform(0, 3))
                stage.kafka.start(node)
        stage.until_more(1, worker)
    stage.finish(worker)
    assert_whole(stage)
