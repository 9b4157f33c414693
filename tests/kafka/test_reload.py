"""SIGHUP on a real Kafka: another configuration is taken under load, and no record is lost, or learnt under another."""

from __future__ import annotations

import json
import signal
from typing import Any, Final

import pytest

from olstream import crash
from tests.kafka.events import events
from tests.kafka.feeding import Feeder
from tests.kafka.service import START_S, Service, ServiceFactory, Worker, olstream
from tests.kafka.topics import Record, until

MODEL: Final = {"model": {"algorithm": "arow", "task": "binary"}}
BOTH: Final = MODEL | {"next": {"algorithm": "pa1", "task": "binary"}}
SHADOW: Final = {"learners": BOTH, "routes": [{"when": {}, "learner": "model", "shadows": ["next"]}]}
PROMOTED: Final = {"learners": BOTH, "routes": [{"when": {}, "learner": "next", "shadows": ["model"]}]}

GUARANTEES = pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])


def reload(service: Service, worker: Worker, **settings: Any) -> None:
    service.configure(**settings)
    service.write()
    worker.send(signal.SIGHUP)


def until_reloaded(worker: Worker, result: str, times: int = 1) -> None:
    def counted() -> bool:
        return worker.counted("olstream_config_reloads_total", result=result) >= times

    until(lambda: counted() or not worker.alive, f"{result} of a reload", START_S)
    assert worker.alive, worker.said()[-3000:]


def answered_by(service: Service) -> list[str]:
    return [prediction["learner"] for prediction in service.predicted()]


@GUARANTEES
def test_a_shadow_is_added_and_promoted_under_load(service: ServiceFactory, guarantee: str) -> None:
    made = service(guarantee=guarantee, checkpoint={"interval": "300ms", "keep": 1000}).make_topics()
    worker = made.start().until_ready()

    with Feeder(made, events(100_000)) as feeder:
        until(lambda: feeder.committed > 2000, "the worker is at work", START_S)
        reload(made, worker, **SHADOW)
        until_reloaded(worker, "success")
        added = feeder.committed
        until(lambda: feeder.committed > added + 2000, "the shadow learns along", START_S)
        done = olstream("promote", str(made.directory / "config.yaml"), "next", "--write")
        assert done.returncode == 0, done.stderr
        worker.send(signal.SIGHUP)
        until_reloaded(worker, "success", 2)
        promoted = feeder.committed
        until(lambda: feeder.committed > promoted + 2000, "the new champion answers", START_S)
        info = [name for name, value in worker.metrics().items() if "learner_info" in name and value]
        worker.stop()

    n = made.committed()
    assert [p["offset"] for p in made.predicted()] == list(range(n))
    by = answered_by(made)
    assert by == sorted(by)  # model, then next
    assert by.count("next") > 2000
    learners = made.inspect()["learners"]
    assert learners["model"]["seen"] == n
    assert learners["next"]["seen"] < n - 2000  # it began where it was added
    assert [("next" in name) == ("champion" in name) for name in info] == [True, True]
    made.verify()
    made.verify("--all")


def test_a_wrong_file_leaves_all_as_it_was_and_the_log_says_why(service: ServiceFactory) -> None:
    made = service(**SHADOW).make_topics()
    worker = made.start().until_ready()
    right = made.write().read_text()
    wrong: dict[str, Any] = {
        "routes": [{"when": {}, "learner": "nobody"}],
        "group": "another",
        "learners": BOTH | {"next": {"algorithm": "pa2", "task": "binary"}},
    }

    for times, (key, value) in enumerate(wrong.items(), 1):
        (made.directory / "config.yaml").write_text(json.dumps(made.config | {key: value}))
        worker.send(signal.SIGHUP)
        until_reloaded(worker, "failure", times)
    (made.directory / "config.yaml").write_text("{")
    worker.send(signal.SIGHUP)
    until_reloaded(worker, "failure", 4)
    made.topics.produce(made.input, events(100))
    made.until_committed(100, worker)

    said = [line for line in worker.said().splitlines() if "the configuration stays as it was" in line]
    whys = ["'nobody' is no configured learner", "group cannot change", "has learnt under other settings", "line 1"]
    assert [why in line for why, line in zip(whys, said, strict=True)] == [True] * 4
    assert answered_by(made) == ["model"] * 100
    (made.directory / "config.yaml").write_text(right)
    reload(made, worker, **PROMOTED)
    until_reloaded(worker, "success")
    made.topics.produce(made.input, events(200)[100:])
    made.until_committed(200, worker)
    worker.stop()
    assert answered_by(made) == ["model"] * 100 + ["next"] * 100
    made.verify()


# What a reload of an idle worker passes: its line is the second of this life, the first checkpoint is its own.
POINTS = ("line.before:2", "commit.after:2", "rename.before", "rename.after")


def test_a_reload_that_died_on_the_way_is_finished_by_the_next_start(service: ServiceFactory) -> None:
    made = service(checkpoint={"interval": "1h", "keep": 1000}, **SHADOW).make_topics()
    made.topics.produce(made.input, events(100))
    made.run_to(100)

    for i, point in enumerate(POINTS, 1):
        made.environment = {crash.VARIABLE: point}
        armed = made.start().until_ready()
        reload(made, armed, **(PROMOTED if i % 2 else SHADOW))
        assert armed.wait(START_S) == -signal.SIGKILL, f"{point}: {armed.said()[-3000:]}"
        made.environment = {}
        made.topics.produce(made.input, events(100 * (i + 1))[100 * i :])
        made.run_to(100 * (i + 1))

    assert [p["offset"] for p in made.predicted()] == list(range(100 * (len(POINTS) + 1)))
    assert answered_by(made) == [name for name in ("model", "next") * 2 + ("model",) for _ in range(100)]
    made.verify()
    made.verify("--all")


@GUARANTEES
def test_killed_right_after_the_signal_under_load_nothing_is_lost(service: ServiceFactory, guarantee: str) -> None:
    made = service(guarantee=guarantee, checkpoint={"interval": "200ms", "keep": 1000}, **SHADOW).make_topics()

    with Feeder(made, events(100_000)) as feeder:
        for i in range(4):
            worker, before = made.start(), feeder.committed
            until(lambda: feeder.committed > before + 500, "the worker is at work", START_S)  # noqa: B023
            reload(made, worker, **(SHADOW if i % 2 else PROMOTED))
            if i >= 2:  # as soon as it is at it
                until(lambda: worker.said().count("was read again") == i - 1, "it was taken", START_S)  # noqa: B023
            worker.kill()
    worker = made.start()
    made.until_committed(feeder.fed, worker)
    worker.stop()

    offsets = [p["offset"] for p in made.predicted()]
    assert offsets == list(range(feeder.fed)) if guarantee == "exactly_once" else set(offsets) == set(range(feeder.fed))
    assert made.inspect()["learners"]["model"]["seen"] == feeder.fed
    made.verify()
    made.verify("--all")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_reloads_while_partitions_move_lose_nothing(service: ServiceFactory, protocol: str) -> None:
    classes = {"classes": [0, 1]}
    learners = {name: learner | classes for name, learner in BOTH.items()}
    shadow, promoted = SHADOW | {"learners": learners}, PROMOTED | {"learners": learners}
    made = service(consumer={"group.protocol": protocol}, checkpoint={"keep": 1000}, **shadow).make_topics(2)
    values = [Record(value, partition=i % 2) for i, value in enumerate(events(100_000))]
    first = made.start().until_ready()
    other = made.twin("other", slot=1)
    other.configure(checkpoint={"path": str(other.state)})
    second = other.start()

    n = reloads = 0
    while n < 5000 or second.status("/ready") != 200:
        made.topics.produce(made.input, values[n : n + 500])
        n, reloads = n + 500, reloads + 1
        reload(made, first, **(promoted if reloads % 2 else shadow))
        until_reloaded(first, "success", reloads)
    made.topics.produce(made.input, values[n : n + 1000])
    n += 1000
    try:
        until(lambda: sum(made.topics.committed(made.group, made.input).values()) == n, "all is committed", START_S)
        second.stop()
        other.verify()
    finally:
        other.end()
    first.stop()
    made.verify()

    assert sorted((p["partition"], p["offset"]) for p in made.predicted()) == [
        (p, offset) for p in range(2) for offset in range(n // 2)
    ]
    seen = [one.inspect()["learners"]["next"]["seen"] for one in (made, other)]
    assert sum(seen) == n and min(seen) > 0


def test_a_worker_that_has_lost_its_place_recovers_under_the_new_configuration(service: ServiceFactory) -> None:
    made = service(consumer={"session.timeout.ms": 6000}, **SHADOW).make_topics()
    made.topics.produce(made.input, events(100))
    worker = made.start()
    made.until_committed(100, worker)

    worker.send(signal.SIGSTOP)
    made.topics.reset(made.group, made.input, 100)  # its session has ended
    made.topics.produce(made.input, events(200)[100:])
    reload(made, worker, **PROMOTED)
    worker.send(signal.SIGCONT)
    made.until_committed(200, worker)
    until_reloaded(worker, "success")
    made.topics.produce(made.input, events(300)[200:])
    made.until_committed(300, worker)
    worker.stop()

    assert "dropping the models and recovering" in worker.said()
    assert [p["offset"] for p in made.predicted()] == list(range(300))
    assert answered_by(made)[200:] == ["next"] * 100
    made.verify()
