"""How every Kafka client of a worker is set up, and what its errors mean.

Users' own properties win, but for those the guarantees rest on: `config` has refused those.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from threading import Event, Lock, Thread
from typing import Any, Final, Literal, TypeVar, overload

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka import KafkaError as ClientError

from olstream import logs
from olstream.config import Config
from olstream.errors import KafkaError, OlstreamError
from olstream.io.kafka_admin import CREDENTIALS, TRUST, refused_property
from olstream.messages import Chunk, Headers
from olstream.properties import for_client, transaction_timeout_s

log = logging.getLogger("olstream.kafka")

T = TypeVar("T")

CALL_S: Final = 5.0  # one blocking call; they are repeated while it makes sense
PAUSE_S: Final = 0.1  # before a call that failed at once is repeated
NAP_S: Final = 0.005  # a waiting loop looks so often whether a record came
REFUSED_S: Final = 10.0  # rejected credentials and certificates do not heal: give up after that
TOKEN_RETRY_S: Final = 12.0  # the client asks for a token every 10 s, and says once that it got none

# A group that no longer counts us in: FENCED_INSTANCE_ID because somebody else has our name.
NOT_A_MEMBER: Final = frozenset(
    {
        ClientError.ILLEGAL_GENERATION,
        ClientError.UNKNOWN_MEMBER_ID,
        ClientError.REBALANCE_IN_PROGRESS,
        ClientError.STALE_MEMBER_EPOCH,
        ClientError.FENCED_MEMBER_EPOCH,
        ClientError.FENCED_INSTANCE_ID,
    }
)
# What somebody has to grant first.
REFUSED: Final = frozenset(
    {
        ClientError.TOPIC_AUTHORIZATION_FAILED,
        ClientError.GROUP_AUTHORIZATION_FAILED,
        ClientError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ClientError.CLUSTER_AUTHORIZATION_FAILED,
    }
)


def answered(client: Consumer, ask: Callable[[float], T], what: str, patience_s: float, alive: Callable[[], None]) -> T:
    """Ask until a broker tells; `ask` is given a timeout. KafkaError where none does in time, or we may not know."""
    give_up_s = time.monotonic() + patience_s
    while True:
        try:
            return ask(CALL_S)
        except KafkaException as exception:
            error = client_error(exception)
        if error.code() in REFUSED:
            raise KafkaError(f"Kafka refuses to tell {what} ({error.str()}): grant DESCRIBE")
        if time.monotonic() > give_up_s:
            raise KafkaError(
                f"Kafka did not tell {what} for {patience_s:g} s ({error.str()}): check that its brokers answer"
            )
        client.poll(PAUSE_S)  # its complaints are heard in there alone, that it is refused among them
        alive()


def watermarks(client: Consumer, topic: str, partition: int, timeout_s: float) -> tuple[int, int]:
    """Where a partition begins and ends, as a client of this isolation sees it.

    By itself a client goes on asking a leader that is gone, for as long as metadata.max.age.ms: 15 minutes.
    """
    try:
        return client.get_watermark_offsets(TopicPartition(topic, partition), timeout_s)
    except KafkaException:
        client.list_topics(topic, timeout_s)  # for the next time
        raise


def is_for_good(error: ClientError) -> bool:
    return error.fatal() or error.code() == ClientError._FATAL


def tells_of(error: ClientError, code: int) -> bool:
    """Whether this is that error, or a failure for good because of it: the client gives its code no other way."""
    return error.code() == code or (is_for_good(error) and ClientError(code).str() in error.str())


class Errors:
    """Errors that clients report on the side, counted; remembers since when we are refused.

    The client only repeats such errors and raises nothing: the program has to decide to give up. An error may be
    heard long after it happened, so one that is heard once says nothing of now; but that there is no token is said
    once, however long there is none.
    """

    def __init__(
        self,
        on_error: Callable[[str], None] = lambda _: None,
        monotonic: Callable[[], float] = time.monotonic,
        explained: Callable[[ClientError], str] = ClientError.str,
    ) -> None:
        self.on_error = on_error
        self._explained = explained
        self._monotonic = monotonic
        self.trouble: str | None = None  # a sentence on what is known to be wrong just now
        self._refused_s: float | None = None  # when that was first heard
        self._no_token: ClientError | None = None
        self._end: OlstreamError | None = None
        self._mutex = Lock()

    def __call__(self, error: ClientError) -> None:
        with self._mutex:
            if error.code() in CREDENTIALS:
                now_s = self._monotonic()
                self._refused_s = now_s if self._refused_s is None else self._refused_s
                if _is_of_a_token(error):
                    self._no_token = error
                if now_s - self._refused_s > REFUSED_S:
                    self._give_up_refused(error)
        log.warning("%s: %s", error.name(), error.str(), extra={"every_s": 10.0})
        self.on_error(error.name())

    def accepted(self) -> None:
        """A broker answered: whatever refused us before does so no more."""
        self._refused_s = self._no_token = None

    def _give_up_refused(self, error: ClientError) -> None:
        self.give_up(KafkaError(f"Kafka refuses this client ({self._explained(error)}): {TRUST}"))

    def give_up(self, error: OlstreamError) -> None:
        """Somebody who looks on, or this, found what the worker must end with."""
        self._end = self._end or error

    def raise_if_refused(self) -> None:
        """Called by everything that waits, and once a poll."""
        no_token, since_s = self._no_token, self._refused_s
        if no_token is not None and since_s is not None and self._monotonic() - since_s > TOKEN_RETRY_S:
            self._give_up_refused(no_token)
        if self._end is not None:
            raise self._end


def _is_of_a_token(error: ClientError) -> bool:
    return "OAUTHBEARER token" in error.str()


def properties_of(kind: Literal["consumer", "producer"], config: Config, errors: Errors) -> dict[str, Any]:
    """What the user set for this kind of client, who we are, and where its complaints go."""
    own = config.consumer if kind == "consumer" else config.producer
    return {
        "client.id": f"olstream-{config.group}-{config.slot}",
        **for_client(kind, config.kafka, own),
        "error_cb": errors,
        "logger": logs.librdkafka(),
    }


def reader(config: Config, errors: Errors, isolation: str = "read_committed") -> Consumer:
    """A consumer outside the group's membership: it reads what it is told, and can ask for the group's offsets."""
    given = properties_of("consumer", config, errors)
    outside = {key: value for key, value in given.items() if not key.startswith(("group.", "partition.assignment"))}
    properties = {
        **outside,
        **_tied(config),
        "isolation.level": isolation,
        "enable.partition.eof": True,
        "fetch.queue.backoff.ms": 10,
        "queued.max.messages.kbytes": 16_384,  # there is one such reader a partition
    }
    return _made(Consumer, properties, config)


def member(
    config: Config,
    errors: Errors,
    on_statistics: Callable[[str], None],
    on_error: Callable[[ClientError], None] | None = None,
) -> Consumer:
    """The consumer that is this slot's member of the group."""
    properties = {
        "fetch.queue.backoff.ms": 10,  # default 1000: a fast loop drains the queue while the fetcher sleeps
        "queued.min.messages": 200_000,  # the byte limit of 64 MiB bounds memory, not the count
        "fetch.message.max.bytes": 4_000_000,
        "statistics.interval.ms": 2000,
        **membership(config),
        **properties_of("consumer", config, errors),
        **_tied(config),
        "stats_cb": on_statistics,
        "error_cb": on_error or errors,
    }
    return _made(Consumer, properties, config)


def call_for_rebalance(config: Config, errors: Errors) -> None:
    """Join the group for a moment, for no input, so that it shares out all partitions that there are now.

    A static member that comes back gets its old partitions without anybody looking for new ones.
    """
    shared_out = Event()
    given = properties_of("consumer", config, errors)
    given.pop("group.instance.id", None)
    passer_by = Consumer({**membership(config), **given, **_tied(config), "group.instance.id": ""})
    passer_by.subscribe([config.journal_topic], on_assign=lambda _consumer, _partitions: shared_out.set())
    give_up_s = time.monotonic() + config.kafka_wait_s
    while not shared_out.is_set() and time.monotonic() < give_up_s:
        passer_by.poll(0.1)
    passer_by.close()


def _tied(config: Config) -> dict[str, Any]:
    """What the guarantees rest on."""
    return {
        "group.id": config.group,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",  # a jump is for a person to decide: `input.on_gap`
        "isolation.level": "read_committed",  # also makes offset look-ups wait for open transactions
    }


def producer(config: Config, errors: Errors) -> Producer:
    """Idempotent; transactional, with the slot's own id, under exactly_once."""
    properties = {
        "linger.ms": 20,  # costs no visible latency: readers see records at the commit
        "retry.backoff.ms": 20,  # the default of 100 ms makes back-to-back transactions wait
        "partitioner": "murmur2_random",  # as Java clients: equal keys, equal partitions
        "queue.buffering.max.kbytes": 131_072,
        **properties_of("producer", config, errors),
        "enable.idempotence": True,
    }
    if config.guarantee == "exactly_once":
        properties |= {
            "transactional.id": f"{config.group}-{config.slot}",
            "transaction.timeout.ms": int(1000 * transaction_timeout_of(config)),
        }
    return _made(Producer, properties, config)


def _made(client: Callable[[dict[str, Any]], T], properties: dict[str, Any], config: Config) -> T:
    try:
        return client(properties)
    except KafkaException as error:
        raise refused_property(error, config) from None


def bounded(call: Callable[[], T], limit_s: float, alive: Callable[[], None]) -> T:
    """A call that may ignore its own timeout; past the limit it is left behind, with its thread and its client.

    send_offsets_to_transaction can wait for ever for a coordinator that is gone (confluentinc/librdkafka#5456).
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as exception:
            outcome.set_exception(exception)

    Thread(target=run, name="bounded call", daemon=True).start()
    give_up_s = time.monotonic() + limit_s
    while True:
        try:
            return outcome.result(timeout=0.5)
        except TimeoutError:
            if time.monotonic() > give_up_s:
                error = ClientError(ClientError._TIMED_OUT, f"the client did not come back within {limit_s:g} s")
                raise KafkaException(error) from None
        alive()


def pauses() -> Iterator[float]:
    """Seconds between one try and the next: what is refused at once may be so for minutes."""
    pause_s = 0.02
    while True:
        yield pause_s
        pause_s = min(2 * pause_s, 1.0)


def transaction_timeout_of(config: Config) -> float:
    """Seconds after which the broker gives an open transaction up."""
    return transaction_timeout_s({**config.kafka, **config.producer})


def is_incremental(config: Config) -> bool:
    """Whether the group assigns partitions step by step: KIP-848."""
    return for_client("consumer", config.kafka, config.consumer).get("group.protocol") == "consumer"


def membership(config: Config) -> dict[str, Any]:
    """Static under the classic protocol: a killed worker that comes back takes over at once.

    Like-numbered partitions of several topics come to one member by `range` alone.
    """
    if is_incremental(config):
        return {"group.remote.assignor": "range"} if len(config.input.topics) > 1 else {}
    return {"partition.assignment.strategy": "range", "group.instance.id": f"{config.group}-{config.slot}"}


def client_error(exception: KafkaException) -> ClientError:
    error = exception.args[0]
    assert isinstance(error, ClientError)
    return error


def first_message(consumer: Consumer, timeout_s: float) -> Message | None:
    """The next message, or None. We wait beside the client, whose own waits end by the calendar.

    Where that is set back an hour while nothing comes, whoever waits inside stands still for an hour: the loop, and
    the client's thread that sends the heartbeats. A question wakes that one.
    """
    give_up_s = time.monotonic() + timeout_s
    while (message := consumer.poll(0)) is None:
        if time.monotonic() >= give_up_s:
            consumer.consumer_group_metadata()
            break
        time.sleep(NAP_S)
    return message


def to_chunk(topic: str, partition: int, messages: list[Message]) -> Chunk:
    """Messages of one partition, in columns."""
    return Chunk(
        topic,
        partition,
        [m.offset() for m in messages],  # type: ignore[misc]
        [_timestamp(m) for m in messages],
        [m.key() for m in messages],
        [m.value() for m in messages],
        LazyHeaders(messages),
    )


def _timestamp(message: Message) -> int | None:
    kind, at_ms = message.timestamp()
    return at_ms if kind else None


class LazyHeaders(Sequence["Headers | None"]):
    """Headers are unpacked by the client only when asked for."""

    def __init__(self, messages: list[Message]) -> None:
        self._messages = messages

    def __len__(self) -> int:
        return len(self._messages)

    @overload
    def __getitem__(self, i: int) -> Headers | None: ...
    @overload
    def __getitem__(self, i: slice) -> LazyHeaders: ...
    def __getitem__(self, i: int | slice) -> Headers | LazyHeaders | None:
        if isinstance(i, slice):
            return LazyHeaders(self._messages[i])
        return self._messages[i].headers()  # type: ignore[return-value]
