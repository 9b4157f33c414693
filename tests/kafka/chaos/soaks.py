"""Many records and nothing else: what grows with time alone?"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka import Producer

from tests.kafka.chaos.scenario import scenario
from tests.kafka.chaos.stage import PATIENCE_S, Stage
from tests.kafka.events import events
from tests.kafka.service import Worker

HUNDRED_THOUSAND: Final = 100_000
AHEAD: Final = 400_000  # records that wait for the worker: it never idles
DISTINCT: Final = 20_000
SAMPLE_S: Final = 0.5
SETTLED: Final = 0.3  # of the records: by then everything is as large as it gets
GROWTH_MAX: Final = 1.03


@dataclass(frozen=True)
class Sample:
    done: int
    resident_kib: int
    files: int
    threads: int


@scenario(bounded=False, count=12, input={"batch_max": 500}, commit_interval="200ms", checkpoint={"interval": "1s"})
def soak(stage: Stage) -> None:
    """`count` hundred thousand records at speed: memory, open files and threads stay as they were."""
    n = stage.count * HUNDRED_THOUSAND
    worker = stage.service.start().until_ready()
    samples = _feed_and_watch(stage, worker, n)
    worker.stop()

    settled = [s for s in samples if s.done > SETTLED * n]
    early, late = settled[: len(settled) // 2], settled[len(settled) // 2 :]
    grown = max(s.resident_kib for s in late) / max(s.resident_kib for s in early)
    stage.notes.append(f"{n:,} records, resident {late[-1].resident_kib / 1024:.0f} MiB, x{grown:.3f} since settled")
    assert grown < GROWTH_MAX, f"resident memory grew by {grown:.3f}: {[s.resident_kib for s in settled]}"
    for what in ("files", "threads"):
        seen = {getattr(s, what) for s in settled}
        assert max(seen) - min(seen) <= 2, f"open {what} between {min(seen)} and {max(seen)}"  # a scrape, a write
    assert stage.service.inspect()["learners"]["model"]["seen"] == n


def _feed_and_watch(stage: Stage, worker: Worker, n: int) -> list[Sample]:
    values = events(DISTINCT, stage.seed)
    producer = Producer({"bootstrap.servers": stage.kafka.bootstrap, "linger.ms": 20, "log_level": 0})
    samples: list[Sample] = []
    fed = done = kept_from = 0
    deadline = time.monotonic() + PATIENCE_S
    while done < n:
        for i in range(fed, min(done + AHEAD, n)):
            try:
                producer.produce(stage.input, values[i % DISTINCT])
            except BufferError:
                break
            fed = i + 1
        producer.poll(SAMPLE_S)
        before, done = done, stage.committed()
        worker.metrics()  # somebody scrapes
        samples.append(_sample(worker, done))
        if done > before:
            deadline = time.monotonic() + PATIENCE_S
        assert worker.alive and time.monotonic() < deadline, f"{done} of {n}: {worker.said()[-3000:]}"
        if done - kept_from > 10 * AHEAD:  # the disk must not fill; what lies behind a checkpoint is not read again
            kept_from = done - 5 * AHEAD
            stage.topics.delete_before(stage.input, kept_from)
            stage.topics.delete_before(stage.service.predictions, kept_from)
    producer.flush()
    return samples


def _sample(worker: Worker, done: int) -> Sample:
    own = Path(f"/proc/{worker.pid}")
    status = dict(line.split(":", 1) for line in (own / "status").read_text().splitlines())
    resident = int(status["VmRSS"].split()[0])
    return Sample(done, resident, len(os.listdir(own / "fd")), int(status["Threads"]))
