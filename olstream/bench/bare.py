"""The ceiling: the same client moves records in and out, in transactions, and looks at none of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, Message, Producer

COMMIT_S = 0.2
BATCH_MAX = 500
CALL_S = 10.0

# A prediction as olstream writes it for these records.
RECORD = (
    b'{"id":"evt-123456","learner":"model","prediction":1,"score":0.36159505490948474,'
    b'"probability":0.5894264969612649,"label":-1,"loss":1.3615950549094847,"correct":false,"updated":true,'
    b'"updates":123462,"topic":"bench-1a2b3c4d-in","partition":0,"offset":123456,"ts":1764460800000}'
)


def bare_loop(consumer: Consumer, producer: Producer, source: str, target: str, n: int) -> float:
    """Consume n records and produce n of a prediction's size; seconds from the first record to the last commit."""
    producer.init_transactions(CALL_S)
    consumer.subscribe([source])
    first = _first(consumer)
    start_s = committed_s = time.perf_counter()
    pending, moved, open_transaction = [first], 0, False
    while moved < n:
        messages = [*pending, *consumer.consume(min(BATCH_MAX, n - moved) - len(pending), 0)]
        pending = []
        if messages:
            if not open_transaction:
                producer.begin_transaction()
                open_transaction = True
            send: Callable[..., Any] = producer.produce
            for key in map(Message.key, messages):
                send(target, RECORD, key)
            moved += len(messages)
        producer.poll(0)
        if open_transaction and (time.perf_counter() - committed_s >= COMMIT_S or moved >= n):
            position = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(position, consumer.consumer_group_metadata(), CALL_S)
            producer.commit_transaction(CALL_S)
            open_transaction = False
            committed_s = time.perf_counter()
        if moved < n and (message := consumer.poll(COMMIT_S)) is not None:
            pending = [message]
    return time.perf_counter() - start_s


def _first(consumer: Consumer) -> Message:
    deadline = time.monotonic() + 60.0
    while time.monotonic() < deadline:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            return message
    raise TimeoutError("no record came within a minute")
