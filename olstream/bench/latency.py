"""What the service adds to the time from a record's timestamp to its prediction, at half load.

Feeder, worker and reader are three processes, as they are in life. A partition keeps the order, so
the i-th prediction is that of the i-th record, and nobody has to look into a record.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import numpy as np
from confluent_kafka import Message, Producer, TopicPartition

from olstream.bench.load import Topics, produce, records
from olstream.bench.ours import configuration, our_loop
from olstream.bench.part import Bench, Part, Row
from olstream.bench.side import BARE, KINDS, processes, until_shared_out, work
from olstream.config import Config
from olstream.errors import KafkaError
from olstream.io import client
from olstream.io.client import Errors
from olstream.learners._jit import F64

PAIRS_MAX: Final = 3
SETTLING: Final = 0.25  # of the records: the first ones are not counted
DIFFERENT: Final = 20_000  # records; then the same again
BURST_S: Final = 0.005  # the feeder sends what is due so often
BATCH_MAX: Final = 500
WAIT_S: Final = 60.0  # for the next record


def measure(bench: Bench, seconds: float = 8.0) -> Part:
    rate = _full_rate(bench) / 2
    percentiles: dict[str, list[F64]] = {kind: [] for kind in KINDS}
    for i in range(min(bench.repetitions, PAIRS_MAX)):
        for kind in KINDS:
            waited_ms = _waited_ms(bench, f"latency-{i}-{kind.split()[0]}", kind, rate, int(rate * seconds))
            found = np.percentile(waited_ms, [50, 99])
            percentiles[kind].append(found)
            bench.say(f"latency, {kind} at {rate:,.0f}/s: {_shown(found)}")
    bare, ours = (np.array(percentiles[kind]) for kind in KINDS)
    added = np.median(ours - bare, axis=0)
    part = Part(f"latency: at {rate:,.0f} records a second, from a record's timestamp to its prediction at a reader")
    part.rows = [Row(kind, _shown(np.median(percentiles[kind], axis=0))) for kind in KINDS]
    part.rows.append(Row("added", _shown(added)))
    part.numbers = {
        "rate": round(rate),
        "bare_ms": np.round(bare, 1).tolist(),
        "olstream_ms": np.round(ours, 1).tolist(),
        "added_ms": {"p50": round(float(added[0]), 1), "p99": round(float(added[1]), 1)},
    }
    return part


def _shown(percentiles: F64) -> str:
    return f"p50 {percentiles[0]:.0f} ms, p99 {percentiles[1]:.0f} ms"


def _full_rate(bench: Bench) -> float:
    """Records per second where all of them are there already, as in the part `loop`; the second of two runs."""
    with Topics(bench.kafka, f"{bench.prefix}-latency-full") as topics:
        topics.fill(bench.records)
        for name in ("warm-up", "full"):
            with tempfile.TemporaryDirectory(prefix="olstream-bench-") as state:
                run = our_loop(configuration(topics, topics.group(name), Path(state)), bench.records)
    return 1e6 / run.span.us


def _waited_ms(bench: Bench, name: str, kind: str, rate: float, n: int) -> F64:
    """Of each record after the first ones."""
    with (
        Topics(bench.kafka, f"{bench.prefix}-{name}") as topics,
        tempfile.TemporaryDirectory(prefix="olstream-bench-") as state,
        processes(2) as pool,
    ):
        group = topics.group("worker")
        config = configuration(topics, group, Path(state))
        worker = pool.submit(work, kind, config, topics.bare, n)
        until_shared_out(topics.admin, group, [worker])
        feeder = pool.submit(feed, config, rate, n)
        seen_ms: list[float] = []
        for messages in _read(config, topics.bare if kind == BARE else topics.predictions, n, [worker, feeder]):
            seen_ms += [time.time() * 1000] * len(messages)
        sent_ms = [m.timestamp()[1] for messages in _read(config, topics.input, n, []) for m in messages]
    waited_ms: F64 = np.array(seen_ms) - np.array(sent_ms)
    return waited_ms[int(n * SETTLING) :]


def feed(config: Config, rate: float, n: int) -> None:
    """Send n records at a rate; each gets its timestamp here, when it is sent."""
    producer = Producer({**config.kafka, "linger.ms": 5})
    made = cycle(list(records(DIFFERENT)))
    start_s, sent = time.monotonic(), 0
    while sent < n:
        due = min(n, int(rate * (time.monotonic() - start_s)))
        for _ in range(due - sent):
            key, value = next(made)
            produce(producer, config.input.topics[0], value, key)
        sent = due
        producer.poll(BURST_S)
    producer.flush(WAIT_S)


def _read(config: Config, topic: str, n: int, others: Sequence[Future[Any]]) -> Iterator[list[Message]]:
    """The first n committed records of partition 0, as they come. A failure of the others ends it."""
    consumer = client.reader(config, Errors())
    consumer.assign([TopicPartition(topic, 0, 0)])
    left, last_s = n, time.monotonic()
    while left:
        first = consumer.poll(0.5)  # `consume` waits until it has all that it is asked for
        given = [first, *consumer.consume(min(left, BATCH_MAX) - 1, 0)] if first is not None else []
        messages = [message for message in given if message.error() is None]
        if messages:
            left, last_s = left - len(messages), time.monotonic()
            yield messages
        for other in others:
            if other.done():
                other.result()
        if time.monotonic() > last_s + WAIT_S:
            raise KafkaError(f"no record came in {topic} within {WAIT_S:.0f} s, {left} are missing")
    consumer.close()
