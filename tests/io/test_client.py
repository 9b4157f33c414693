"""Questions to Kafka that it does not answer at once."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException, TopicPartition

from olstream.config import parse
from olstream.errors import KafkaError
from olstream.io.client import Errors, answered, first_message, is_incremental, membership, watermarks


@dataclass
class FakeClient:
    """Fails with these codes, one a question, before it answers; complains where it is polled, and there alone."""

    failures: list[int]
    heard: list[str] = field(default_factory=list)

    def ask(self, timeout_s: float) -> str:
        if self.failures:
            raise KafkaException(ClientError(self.failures.pop(0)))
        return "the answer"

    def poll(self, timeout_s: float) -> None:
        self.heard.append("a complaint")


@dataclass
class FakeConsumer:
    """Has nothing at so many looks; remembers how long it was to wait, and whether it was asked who it is."""

    empty_looks: int
    waits_s: list[float] = field(default_factory=list)
    asked: int = 0

    def poll(self, timeout_s: float) -> str | None:
        self.waits_s.append(timeout_s)
        return "a record" if len(self.waits_s) > self.empty_looks else None

    def consumer_group_metadata(self) -> None:
        self.asked += 1


def ask(client: FakeClient, patience_s: float = 60.0) -> tuple[str, int]:
    """What was answered, and how often it was waited for."""
    waits: list[None] = []
    answer = answered(client, client.ask, "the time", patience_s, lambda: waits.append(None))  # type: ignore[arg-type]
    return answer, len(waits)


def test_a_question_is_repeated_until_a_broker_answers_and_complaints_are_heard_meanwhile() -> None:
    client = FakeClient([ClientError._TIMED_OUT, ClientError._UNKNOWN_PARTITION, ClientError._AUTHENTICATION])

    assert ask(client) == ("the answer", 3)
    assert len(client.heard) == 3


def test_who_may_not_know_does_not_ask_again() -> None:
    client = FakeClient([ClientError.TOPIC_AUTHORIZATION_FAILED, ClientError._TIMED_OUT])

    with pytest.raises(KafkaError, match="refuses to tell the time"):
        ask(client)

    assert client.failures == [ClientError._TIMED_OUT]


def test_patience_ends() -> None:
    with pytest.raises(KafkaError, match="did not tell the time for 0 s"):
        ask(FakeClient([ClientError._TIMED_OUT] * 9), patience_s=0.0)


class Clock:
    """A number that somebody moves."""

    at_s = 1000.0

    def __call__(self) -> float:
        return self.at_s


@pytest.mark.parametrize("code", [ClientError._AUTHENTICATION, ClientError._SSL])
def test_who_is_locked_out_for_more_than_ten_seconds_gives_up(code: int) -> None:
    clock = Clock()
    errors = Errors(monotonic=clock)

    for _ in range(3):
        errors(ClientError(code))
        errors.raise_if_refused()
        clock.at_s += 5.0
    errors(ClientError(code))

    with pytest.raises(KafkaError, match="check the credentials"):
        errors.raise_if_refused()


def test_a_refusal_that_is_heard_once_may_be_of_long_ago() -> None:
    clock = Clock()
    errors = Errors(monotonic=clock)

    errors(ClientError(ClientError._AUTHENTICATION))
    errors(ClientError(ClientError._AUTHENTICATION))
    clock.at_s += 3600.0

    errors.raise_if_refused()


def test_that_there_is_no_token_is_said_once_and_believed_all_the_same() -> None:
    clock = Clock()
    errors = Errors(monotonic=clock)
    no_token = ClientError(ClientError._AUTHENTICATION, "Failed to acquire SASL OAUTHBEARER token: denied")

    errors(no_token)
    clock.at_s += 11.0
    errors.raise_if_refused()
    clock.at_s += 2.0

    with pytest.raises(KafkaError, match=r"denied.*check the credentials"):
        errors.raise_if_refused()


def test_who_got_a_token_after_all_goes_on() -> None:
    clock = Clock()
    errors = Errors(monotonic=clock)
    errors(ClientError(ClientError._AUTHENTICATION, "Failed to acquire SASL OAUTHBEARER token: denied"))

    errors.accepted()
    clock.at_s += 3600.0

    errors.raise_if_refused()


def test_who_was_let_in_again_has_ten_seconds_the_next_time() -> None:
    clock = Clock()
    errors = Errors(monotonic=clock)
    errors(ClientError(ClientError._AUTHENTICATION))

    errors.accepted()
    clock.at_s += 3600.0
    errors(ClientError(ClientError._AUTHENTICATION))

    errors.raise_if_refused()


class FakeReader(FakeClient):
    """Asks the leader that it knows, which is gone, until it is told to look."""

    def __init__(self) -> None:
        super().__init__([])
        self.leader = "gone"

    def get_watermark_offsets(self, partition: TopicPartition, timeout_s: float) -> tuple[int, int]:
        if self.leader == "gone":
            raise KafkaException(ClientError(ClientError._TIMED_OUT))
        return 3, 5

    def list_topics(self, topic: str, timeout_s: float) -> None:
        self.leader = "found"


def test_a_partition_that_has_another_leader_now_is_found_there() -> None:
    reader = FakeReader()

    found = answered(
        reader,  # type: ignore[arg-type]
        lambda timeout_s: watermarks(reader, "in", 0, timeout_s),  # type: ignore[arg-type]
        "the offsets of in[0]",
        60.0,
        lambda: None,
    )

    assert found == (3, 5)


def test_a_record_is_waited_for_outside_the_client() -> None:
    """Whose own waits last an hour longer where the calendar is set back by one."""
    consumer = FakeConsumer(empty_looks=3)

    found: object = first_message(consumer, 60.0)  # type: ignore[arg-type]

    assert found == "a record"
    assert consumer.waits_s == [0] * 4


def test_while_nothing_comes_the_clients_own_thread_is_woken() -> None:
    consumer = FakeConsumer(empty_looks=1_000_000)

    found = first_message(consumer, 0.0)  # type: ignore[arg-type]

    assert found is None
    assert consumer.asked == 1


KIP_848 = "consumer: {group.protocol: consumer}"


@pytest.mark.parametrize(
    ("topics", "more", "joins_as"),
    [
        ("[a]", "", {"partition.assignment.strategy": "range", "group.instance.id": "g-0"}),
        ("[a, b]", "", {"partition.assignment.strategy": "range", "group.instance.id": "g-0"}),
        ("[a]", KIP_848, {}),
        ("[a, b]", KIP_848, {"group.remote.assignor": "range"}),
        ("[a, b]", "kafka: {group.protocol: consumer}", {"group.remote.assignor": "range"}),
    ],
)
def test_like_numbered_partitions_of_several_topics_are_asked_for_together(
    topics: str, more: str, joins_as: dict[str, str]
) -> None:
    config = parse(f"learners: {{a: }}\ngroup: g\ninput: {{topics: {topics}}}\n{more}", "c.yaml", {})

    assert membership(config) == joins_as
    assert is_incremental(config) == ("group.protocol" in more)
