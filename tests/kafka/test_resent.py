"""What is sent again after a failure is there, whatever the broker already had, on a broker that may be hurt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from threading import Timer
from typing import Any

import pytest
from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException, Producer

from tests.kafka.broker import BrokerUnavailable, Kafka
from tests.kafka.chaos.proxy import PRODUCE, Proxy
from tests.kafka.test_sink import Bench
from tests.kafka.topics import Topics

AWAY_S = 1.0


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


def test_what_was_stored_unheard_does_not_stand_in_for_what_is_sent_again(
    proxy: tuple[Topics, Proxy], name: str
) -> None:
    """An abort gives the sequence numbers of such records to the next ones, which then pass for duplicates."""
    topics, way = proxy
    with ExitStack() as stack:
        bench = Bench(topics, name, stack, bootstrap=way.bootstrap)
        unheard = way.hold("answer", PRODUCE)
        bench.take()
        assert unheard.caught.wait(30)  # the broker has them
        bench.sink._client = CutOff(bench.sink._client, way)  # type: ignore[assignment]

        bench.commit()

        assert bench.outcomes == ["aborted", "resolved_resent"]
        assert bench.published() == [b"1", b"2", b"3"]
        assert bench.lines() == [1]
