"""The calendar is set an hour forward or back under a worker, and records have times of any century."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from itertools import islice
from pathlib import Path
from typing import Final

from confluent_kafka import Producer

from tests.kafka.chaos.disks import until_written
from tests.kafka.chaos.flow import values
from tests.kafka.chaos.records import ANSWER_S, remake_input, until_at_the_end
from tests.kafka.chaos.scenario import NotHere, scenario
from tests.kafka.chaos.stage import Stage
from tests.kafka.chaos.verdict import assert_whole
from tests.kafka.service import Worker

CLOCK: Final = Path(__file__).with_name("clock.c")
FORWARD, BACK = signal.SIGUSR1, signal.SIGUSR2
SESSION_S: Final = 6.0
HOUR_S: Final = 3600.0
DAY_MS: Final = 86_400_000
TIMES_MS: Final = {"none": -1, "1970": 1, "1999": 946_684_799_999, "2262": 9_223_372_036_854, "tomorrow": 2 * DAY_MS}


@scenario(bounded=False, count=4, consumer={"session.timeout.ms": int(1000 * SESSION_S)})
def clock_stepped(stage: Stage) -> None:
    """Back and forward an hour, at work and while nothing comes: nobody waits for an hour or leaves the group."""
    stage.service.environment = {"LD_PRELOAD": str(clock(stage.directory))}
    worker = stage.service.start().until_ready()
    moved_s = 0.0
    for step in stage.rng.sample([FORWARD, BACK] * (stage.count // 2), stage.count):
        stage.flow().feed(300)
        worker.send(step)  # in the middle of it
        moved_s += HOUR_S if step == FORWARD else -HOUR_S
        stage.fault()
        stage.flow().flush()
        stage.until_committed(stage.flow().fed, worker)
        until_written(stage, worker)
    worker.send(BACK)
    moved_s -= HOUR_S
    stage.fault()
    stage.work_on(1.5 * SESSION_S)  # idle: nothing that comes would wake who waits
    assert (worker.status("/live"), worker.status("/ready")) == (200, 200)
    until_written(stage, worker)
    assert_plausible(worker, moved_s)
    stage.finish(worker)
    assert_whole(stage)


@scenario(bounded=False)
def record_times_of_any_century(stage: Stage) -> None:
    """Records and messages from 1970, the future, or without a time: learnt like others, and no number is absurd."""
    remake_input(stage, message_timestamp_after_max_ms=str(2**63 - 1))
    worker = stage.service.start().until_ready()
    producer = Producer({"bootstrap.servers": stage.kafka.bootstrap})
    for value in islice(values(stage.seed), 400):
        name = stage.rng.choice(list(TIMES_MS))
        ahead_ms = int(1000 * time.time()) if name == "tomorrow" else 0
        producer.produce(stage.input, value, timestamp=TIMES_MS[name] + ahead_ms)
    assert producer.flush(ANSWER_S) == 0
    assert stage.topics.end(stage.input) == 400
    until_at_the_end(stage, worker)
    assert worker.counted("olstream_implausible_time_total") >= 300
    assert_plausible(worker, 0.0)
    worker.stop()
    assert_whole(stage)


def assert_plausible(worker: Worker, moved_s: float) -> None:
    """What is told of time is near what the worker's calendar says."""
    samples, now_s = worker.metrics(), time.time() + moved_s
    times = ("last_poll_timestamp_seconds", "checkpoint_last_success_timestamp_seconds")
    for name in times:
        assert abs(samples[f"olstream_{name}"] - now_s) < 60, f"{name}: {samples[f'olstream_{name}']}, it is {now_s}"
    assert worker.counted("olstream_consumer_lag_seconds") < 60
    assert worker.counted("olstream_checkpoint_duration_seconds_sum") < 60
    assert worker.counted("olstream_batch_duration_seconds_sum") < 60
    assert worker.counted("olstream_rebalances_total", kind="lost") == 0
    assert all(value >= 0 for name, value in samples.items() if "seconds" in name), samples


def clock(directory: Path) -> Path:
    """What moves the calendar of a process that it is preloaded into; its Python and its librdkafka alike."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise NotHere("there is no C compiler for what moves the clock of a process")
    made = directory / "clock.so"
    done = subprocess.run([compiler, "-shared", "-fPIC", "-o", str(made), str(CLOCK), "-ldl"], capture_output=True)
    if done.returncode != 0:
        raise NotHere(f"what moves the clock of a process cannot be compiled here: {done.stderr.decode()[-300:]}")
    return made
