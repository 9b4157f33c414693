"""The ceiling: the same client moves records in and out, in transactions, and looks at none of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition

from olstream.bench.span import Instant, Span
from olstream.config import Config
from olstream.errors import KafkaError
from olstream.io import client
from olstream.io.client import Errors

BATCH_MAX = 500
CALL_S = 10.0
FIRST_S = 60.0

# A prediction as olstream writes it for these records.
RECORD = (
    b'{"id":"evt-123456","learner":"model","prediction":1,"score":0.36159505490948474,'
    b'"probability":0.5894264969612649,"label":-1,"loss":1.3615950549094847,"correct":false,"updated":true,'
    b'"updates":123462,"topic":"bench-1a2b3c4d-in","partition":0,"offset":123456,"ts":1764460800000}'
)


def bare_loop(config: Config, target: str, n: int) -> Span:
    """Consume n records, produce n of a prediction's size; from the first record to the last commit."""
    errors = Errors()
    consumer = client.member(config, errors, lambda _: None)
    producer = client.producer(config, errors)
    producer.init_transactions(FIRST_S)
    try:
        return _move(consumer, producer, config, target, n)
    finally:
        consumer.close()


def _move(consumer: Consumer, producer: Producer, config: Config, target: str, n: int) -> Span:
    consumer.subscribe(config.input.topics, on_assign=_from_the_start)
    pending = [_first(consumer)]
    start = Instant.now()
    committed_s = time.perf_counter()
    moved, is_open = 0, False
    while moved < n:
        messages = [*pending, *consumer.consume(min(BATCH_MAX, n - moved) - len(pending), 0)]
        if messages and not is_open:
            producer.begin_transaction()
            is_open = True
        _pass_on(messages, producer, target)
        moved += len(messages)
        producer.poll(0)
        if is_open and (moved >= n or time.perf_counter() >= committed_s + config.commit_interval_s):
            position = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(position, consumer.consumer_group_metadata(), CALL_S)
            producer.commit_transaction(CALL_S)
            committed_s, is_open = time.perf_counter(), False
        left_s = committed_s + config.commit_interval_s - time.perf_counter()
        message = consumer.poll(max(0.0, left_s)) if moved < n else None
        pending = [message] if message is not None else []
    return Span(n, start, Instant.now())


def _pass_on(messages: list[Message], producer: Producer, target: str) -> None:
    """Take what every consumer takes of a record - its error, value and key - and produce one for each."""
    if any(map(Message.error, messages)):
        raise KafkaError("the broker has trouble: a record came as an error")
    values = list(map(Message.value, messages))
    send: Callable[..., Any] = producer.produce
    for _, key in zip(values, map(Message.key, messages), strict=True):
        try:
            send(target, RECORD, key)
        except BufferError:  # the queue is full: let some of it go
            producer.poll(0.1)
            send(target, RECORD, key)


def _from_the_start(consumer: Consumer, partitions: list[TopicPartition]) -> None:
    starts = [TopicPartition(p.topic, p.partition, 0) for p in partitions]
    consumer.incremental_assign(starts)  # the only form under group.protocol=consumer


def _first(consumer: Consumer) -> Message:
    deadline = time.monotonic() + FIRST_S
    while time.monotonic() < deadline:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            return message
    raise KafkaError(f"no record came within {FIRST_S:.0f} s")
