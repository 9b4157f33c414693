"""What is sent again after a failure is there, whatever brokers and client believe, on brokers that may be hurt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from threading import Timer
from typing import Any

import pytest
from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException, Producer
from confluent_kafka.cimpl import NewTopic

from olstream.journal import Line
from olstream.messages import Records
from tests.kafka.broker import BrokerUnavailable, Kafka
from tests.kafka.chaos.proxy import PRODUCE, Proxy
from tests.kafka.test_sink import Bench
from tests.kafka.topics import ANSWER_S, Topics, until

AWAY_S = 1.0


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def proxy(kafka: str) -> Iterator[tuple[Topics, Proxy]]:
    """A broker of our own, and a way to it that may be hurt."""
    try:
        with Kafka() as broker, Proxy(*broker.proxied()) as proxy:
            yield Topics(broker.bootstrap), proxy
    except BrokerUnavailable as error:
        pytest.skip(f"no broker of our own to hurt: {error}")


class CutOff:
    """A producer whose broker is out of reach for a moment as the commit begins, and which then has to abort."""

    def __init__(self, client: Producer, proxy: Proxy) -> None:
        self._client, self._proxy, self._is_cut = client, proxy, False

    def __getattr__(self, name: str) -> object:
        return getattr(self._client, name)

    def send_offsets_to_transaction(self, *arguments: Any) -> None:
        if self._is_cut:
            self._client.send_offsets_to_transaction(*arguments)
            return
        self._is_cut = True
        self._proxy.cut()  # before the hold that is in place lets go of an answer
        way = self._proxy.hold("request")
        self._client.flush(AWAY_S)  # in vain: it hears that it is cut off
        Timer(AWAY_S, way.let_go).start()
        raise KafkaException(ClientError(ClientError._STATE, "aborted for a reason", txn_requires_abort=True))


class Placed(Topics):
    """Topics with their only copy on one node."""

    def __init__(self, bootstrap: str, node: int) -> None:
        super().__init__(bootstrap)
        self.node = node

    def create(self, topic: str, partitions: int = 1, **settings: str) -> str:
        new = NewTopic(topic, partitions, replica_assignment=[[self.node]] * partitions)
        for done in self._admin.create_topics([new]).values():
            done.result(ANSWER_S)
        until(lambda: self.exists(topic), f"{topic} is there")
        return topic


class Leaderless:
    """A producer whose next commit comes while the node with all that it wrote is down; the one after it fails."""

    def __init__(self, client: Producer, cluster: Kafka, topics: Placed, topic: str) -> None:
        self._client, self._cluster, self._topics, self._topic = client, cluster, topics, topic
        self.commits = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._client, name)

    def commit_transaction(self, timeout_s: float) -> None:
        self.commits += 1
        assert self._client.flush(timeout_s) == 0
        if self.commits > 1:
            raise KafkaException(ClientError(ClientError._STATE, "failed for a reason", fatal=True))
        self._cluster.kill(self._topics.node)
        until(lambda: self._topics.leader(self._topic) == -1, "there is no leader")
        self._client.commit_transaction(30)
        self._cluster.start(self._topics.node)
        until(lambda: self._topics.leader(self._topic) == self._topics.node, "it leads again")


@pytest.fixture(scope="module")
def cluster(kafka: str) -> Iterator[Kafka]:
    """Three nodes of our own: the others go on while one is down."""
    try:
        with Kafka(3) as nodes:
            yield nodes
    except BrokerUnavailable as error:
        pytest.skip(f"no broker of our own to hurt: {error}")


@pytest.fixture
def confirmed(cluster: Kafka, name: str, stack: ExitStack) -> Bench:
    """A sink with one commit, of three records, that brokers confirmed and left open (KAFKA-20734)."""
    topics = Placed(cluster.bootstrap, 3)
    bench = Bench(topics, name, stack)
    bench.take()
    leaderless = Leaderless(bench.sink._client, cluster, topics, bench.output)
    bench.sink._client = leaderless  # type: ignore[assignment]
    bench.commit()
    assert (leaderless.commits, bench.outcomes) == (1, ["committed"])
    return bench


def second(bench: Bench) -> Line:
    return replace(bench.line, seq=2, ranges=())


def test_a_confirmed_commit_that_the_next_failure_took_back_is_made_again(confirmed: Bench) -> None:
    confirmed.sink.publish(Records(confirmed.output, [None], [b"4"]))

    confirmed.sink.commit(second(confirmed), {})

    assert confirmed.outcomes == ["committed", "resolved_resent"]
    assert confirmed.published() == [b"1", b"2", b"3", b"4"]
    assert confirmed.lines() == [1, 2]
    assert confirmed.committed() == {0: 3}


def test_a_confirmed_commit_that_is_still_open_when_the_next_one_fails_is_ended_by_it(confirmed: Bench) -> None:
    confirmed.sink._client.produce = refuse  # type: ignore[method-assign]
    confirmed.sink.publish(Records(confirmed.output, [None], [b"4"]))

    confirmed.sink.commit(second(confirmed), {})

    assert confirmed.outcomes == ["committed", "resolved_resent"]
    assert confirmed.published() == [b"1", b"2", b"3", b"4"]
    assert confirmed.lines() == [1, 2]


def refuse(*_: object, **__: object) -> None:
    raise KafkaException(ClientError(ClientError._STATE, "failed before anything was sent", fatal=True))


def test_what_was_stored_unheard_does_not_stand_in_for_what_is_sent_again(
    proxy: tuple[Topics, Proxy], name: str, stack: ExitStack
) -> None:
    """An abort gives the sequence numbers of such records to the next ones, which then pass for duplicates."""
    topics, way = proxy
    bench = Bench(topics, name, stack, bootstrap=way.bootstrap)
    unheard = way.hold("answer", PRODUCE)
    bench.take()
    assert unheard.caught.wait(30)  # the broker has them
    bench.sink._client = CutOff(bench.sink._client, way)  # type: ignore[assignment]

    bench.commit()

    assert bench.outcomes == ["aborted", "resolved_resent"]
    assert bench.published() == [b"1", b"2", b"3"]
    assert bench.lines() == [1]
