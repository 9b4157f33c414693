"""What became of a transaction whose commit did not return cleanly, on a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, TIMESTAMP_NOT_AVAILABLE, KafkaException, Producer
from confluent_kafka import KafkaError as ClientError

from olstream.config import Config
from olstream.errors import FencedError
from olstream.io.client import Errors
from olstream.io.kafka_read import KafkaJournal
from olstream.io.kafka_source import KafkaSource
from olstream.io.outbox import Told
from olstream.io.plain import PlainSink
from olstream.io.transactional import TransactionalSink
from olstream.journal import Line, Range
from olstream.messages import Outgoing, Records
from olstream.ports import Lost
from tests.kafka.topics import Topics, until

LINE = Line(0, "run", "lineage", 1, (Range("in", 0, 0, 3),))


class Bench:
    """One slot's sink, joined to its group, with three records taken from the input."""

    def __init__(
        self,
        topics: Topics,
        name: str,
        stack: ExitStack,
        timeout_ms: int = 10_000,
        guarantee: str = "exactly_once",
        bootstrap: str | None = None,
    ) -> None:
        """`bootstrap` is the sink's own way to the broker, where it has one."""
        self.topics = topics
        self.stack = stack
        self.input, self.output, self.dead = f"{name}-in", f"{name}-out", f"{name}-dead"
        self.config = Config.model_validate(
            {
                "kafka": {"bootstrap.servers": bootstrap or topics.bootstrap},
                "kafka_wait": "30s",
                "group": name,
                "guarantee": guarantee,
                "input": {"topics": [self.input]},
                "output": {"predictions": self.output, "dead_letters": self.dead},
                "learners": {"model": {}},
            }
        ).model_copy(update={"producer": {"transaction.timeout.ms": timeout_ms}})  # shorter than a user may set it
        topics.create(self.input)
        topics.create(self.output)
        topics.create(self.dead, max_message_bytes="3000")
        topics.create(self.config.journal_topic)
        topics.produce(self.input, [b"a", b"b", b"c"])
        self.outcomes: list[str] = []
        self.refused: list[tuple[str, str]] = []
        errors = Errors()
        self.journal = KafkaJournal(self.config, 1, errors)
        self.sink = self.sink_of("run")
        self.sink.open_run(Line(0, "run", "lineage", first_of_lineage=True))
        self.source = KafkaSource(self.config, self.journal, {}, errors)
        stack.callback(self.source.close)
        self.sink.group = self.source
        self.outcomes.clear()

    def sink_of(self, run: str) -> TransactionalSink | PlainSink:
        """Another worker of the slot would have one of its own."""
        told = Told(outcome=self.outcomes.append, refused=lambda topic, code: self.refused.append((topic, code)))
        kind = TransactionalSink if self.config.guarantee == "exactly_once" else PlainSink
        sink = kind(self.config, run, self.journal, Errors(), told)
        self.stack.callback(sink.close)
        return sink

    def take(self) -> None:
        """Poll the three records, and publish an answer to each."""
        taken: list[bytes | None] = []
        while len(taken) < 3:
            for chunk in self.source.poll(10, 0.1):
                taken += chunk.values
        self.sink.publish(Records(self.output, [None] * 3, [b"1", b"2", b"3"]))

    @property
    def line(self) -> Line:
        return replace(LINE, ranges=(Range(self.input, 0, 0, 3),))

    def commit(self) -> int:
        return self.sink.commit(self.line, {(self.input, 0): 3})

    def published(self) -> list[bytes | None]:
        return [message.value() for message in self.topics.read(self.output)]

    def committed(self) -> dict[int, int]:
        return self.topics.committed(self.config.group, self.input)

    def lines(self) -> list[int | None]:
        return [line.seq for line in self.journal.read(0) if not line.is_opening]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


class Forgetful:
    """A producer whose first commit succeeds at the broker and fails on the way back."""

    def __init__(self, client: Producer) -> None:
        self._client = client

    def __getattr__(self, name: str) -> object:
        return getattr(self._client, name)

    def commit_transaction(self, timeout_s: float) -> None:
        self._client.commit_transaction(timeout_s)
        raise KafkaException(ClientError(ClientError._STATE, "the answer got lost", fatal=True))


def test_a_commit_that_failed_after_the_broker_made_it_is_not_repeated(
    topics: Topics, name: str, stack: ExitStack
) -> None:
    bench = Bench(topics, name, stack)
    bench.take()
    bench.sink._client = Forgetful(bench.sink._client)  # type: ignore[assignment]

    bench.commit()

    assert bench.outcomes == ["resolved_committed"]
    assert bench.published() == [b"1", b"2", b"3"]
    assert bench.lines() == [1]


def test_a_transaction_the_broker_gave_up_is_sent_again_unchanged(topics: Topics, name: str, stack: ExitStack) -> None:
    bench = Bench(topics, name, stack, timeout_ms=1000)
    bench.take()
    bench.sink._client.flush(10)

    until(lambda: bench.journal.watermarks.of(bench.output, 0)[1] == 3 + 1, "three records and the abort's marker", 30)
    after = bench.commit()

    assert bench.outcomes == ["resolved_resent"]
    assert bench.published() == [b"1", b"2", b"3"]
    assert bench.lines() == [1]
    assert bench.journal.read(after) == []


def test_another_worker_of_the_slot_ends_this_one_alone(topics: Topics, name: str, stack: ExitStack) -> None:
    bench = Bench(topics, name, stack)
    bench.take()
    other = bench.sink_of("other")
    other.open_run(Line(0, "other", "lineage"))

    with pytest.raises(FencedError, match="another worker holds slot 0"):
        bench.commit()

    assert bench.published() == []
    assert bench.lines() == []
    other.commit(Line(0, "other", "lineage", 1, LINE.ranges), {})
    assert bench.outcomes == ["committed", "committed"]  # nobody fenced the other one


def test_a_producer_that_failed_before_the_commit_is_replaced_and_all_is_sent_again(
    topics: Topics, name: str, stack: ExitStack
) -> None:
    bench = Bench(topics, name, stack, timeout_ms=1000)
    bench.take()
    bench.sink._client.flush(10)
    until(lambda: bench.journal.watermarks.of(bench.output, 0)[1] == 3 + 1, "three records and the abort's marker", 30)

    for _ in range(3):  # the first of them meets the old epoch, the later ones a producer that failed for good
        bench.sink.publish(Records(bench.output, [None], [b"4"]))
        with suppress(KafkaException):
            bench.sink._client.flush(10)
    bench.commit()

    assert bench.outcomes == ["resolved_resent"]
    assert bench.published() == [b"1", b"2", b"3", b"4", b"4", b"4"]
    assert bench.lines() == [1]


def test_a_producer_whose_worker_never_announced_itself_is_fenced_in_turn(
    topics: Topics, name: str, stack: ExitStack
) -> None:
    """A second pod without state ends before it has the slot: the first one must not end because of it."""
    bench = Bench(topics, name, stack)
    bench.take()
    other = bench.sink_of("other")

    bench.commit()

    assert bench.outcomes == ["resolved_resent"]
    assert bench.published() == [b"1", b"2", b"3"]
    assert bench.lines() == [1]
    with pytest.raises(FencedError):
        other.open_run(Line(0, "other", "lineage"))


def test_of_two_workers_that_start_at_once_the_one_that_announces_itself_goes_on(
    topics: Topics, name: str, stack: ExitStack
) -> None:
    bench = Bench(topics, name, stack)
    first, second = bench.sink_of("first"), bench.sink_of("second")  # which fences the first one

    first.open_run(Line(0, "first", "lineage"))
    with pytest.raises(FencedError):
        second.open_run(Line(0, "second", "lineage"))

    first.commit(Line(0, "first", "lineage", 1, LINE.ranges), {})
    assert bench.outcomes == ["resolved_resent", "committed"]


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_a_worker_without_work_finds_out_that_another_one_has_its_slot(
    topics: Topics, name: str, stack: ExitStack, guarantee: str
) -> None:
    bench = Bench(topics, name, stack, guarantee=guarantee)
    until(
        lambda: bench.sink.look() == bench.journal.end(), "it has looked to the end, which a mark may just have moved"
    )

    bench.sink_of("other").open_run(Line(0, "other", "lineage"))

    with pytest.raises(FencedError):
        bench.sink.look()


def test_without_transactions_nothing_is_committed_once_another_worker_has_the_slot(
    topics: Topics, name: str, stack: ExitStack
) -> None:
    """Its line does not count after the other one's opening line: were its offsets committed, nobody would learn it."""
    bench = Bench(topics, name, stack, guarantee="at_least_once")
    bench.take()
    bench.sink_of("other").open_run(Line(0, "other", "lineage"))

    with pytest.raises(FencedError):
        bench.commit()

    assert bench.committed() == {}


def test_a_dead_letter_that_the_topic_finds_too_large_is_cut_and_sent_once(
    topics: Topics, name: str, stack: ExitStack
) -> None:
    bench = Bench(topics, name, stack)
    bench.take()
    bench.sink.publish_one(Outgoing(bench.dead, None, b"x" * 5000, [("olstream.reason", b"bad_json")]))

    bench.commit()

    (letter,) = topics.read(bench.dead)
    assert letter.value() == b"x" * 1024
    assert bench.refused == [(bench.dead, "MSG_SIZE_TOO_LARGE")]
    assert dict(letter.headers() or [])["olstream.size"] == b"5000"
    assert bench.published() == [b"1", b"2", b"3"]
    assert bench.lines() == [1]


@pytest.mark.parametrize("size", [5000, 1_500_000], ids=["for the broker", "for the client"])
@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
def test_of_a_dead_letter_whose_key_is_too_large_the_key_is_cut_too(
    topics: Topics, name: str, stack: ExitStack, guarantee: str, size: int
) -> None:
    bench = Bench(topics, name, stack, guarantee=guarantee)
    bench.take()
    bench.sink.publish_one(Outgoing(bench.dead, b"k" * size, b"x" * 5000, [("olstream.reason", b"bad_json")]))

    bench.commit()

    (letter,) = topics.read(bench.dead)
    assert (letter.key(), letter.value()) == (b"k" * 1024, b"x" * 1024)
    assert bench.refused == [(bench.dead, "MSG_SIZE_TOO_LARGE")] * 2


def test_offsets_carry_our_mark(topics: Topics, name: str, stack: ExitStack) -> None:
    bench = Bench(topics, name, stack)
    bench.take()

    bench.commit()

    (committed,) = bench.source.consumer.committed(bench.source.consumer.assignment(), 30)
    assert (committed.offset, committed.metadata) == (3, "olstream")


def test_a_commit_that_comes_after_the_next_life_has_looked_makes_that_one_recover_again(
    topics: Topics, name: str, stack: ExitStack
) -> None:
    """Without transactions: a line that did not count when the models were recovered does so now."""
    bench = Bench(topics, name, stack, guarantee="at_least_once")
    bench.take()
    bench.commit()
    late = KafkaSource(bench.config, bench.journal, {}, Errors(), in_doubt=[bench.line])
    stack.callback(late.close)

    with pytest.raises(Lost):
        until(lambda: bool(late.poll(10, 0.1)), "there is nothing to poll")


def test_a_line_of_an_earlier_life_is_in_doubt_until_its_place_in_the_group_is_taken(
    topics: Topics, name: str, stack: ExitStack
) -> None:
    bench = Bench(topics, name, stack, guarantee="at_least_once")
    bench.take()
    next_life = KafkaSource(bench.config, bench.journal, {}, Errors(), in_doubt=[bench.line])
    stack.callback(next_life.close)

    before = next_life.is_settled()
    until(lambda: bool(next_life.poll(10, 0.1)), "it takes the records anew")

    assert (before, next_life.is_settled()) == (False, True)


class Placeless:
    """A producer whose broker has what it sends already: such a record is confirmed without its offset."""

    def produce(self, _topic: str, _value: bytes, _key: bytes, *, on_delivery: Any, **_: Any) -> None:
        on_delivery(None, self)

    def offset(self) -> int:
        return OFFSET_INVALID

    def timestamp(self) -> tuple[int, int]:
        return TIMESTAMP_NOT_AVAILABLE, -1


def test_a_line_that_is_confirmed_without_its_place_stands_at_the_end_of_the_journal(
    topics: Topics, name: str, stack: ExitStack
) -> None:
    bench = Bench(topics, name, stack, guarantee="at_least_once")
    topics.produce(bench.config.journal_topic, [bench.line.to_bytes()])

    bench.sink.outbox.send_line(Placeless(), bench.line)  # type: ignore[arg-type]

    assert bench.sink.outbox.line_offset == 1  # after the opening line
