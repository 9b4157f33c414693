"""The guarantee itself: SIGKILL at work, again and again, and nothing shows afterwards."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.kafka.events import events, labelled
from tests.kafka.feeding import Feeder
from tests.kafka.service import Service, ServiceFactory, Worker
from tests.kafka.topics import Topics, headers, until

N = 20_000
KILLS = 6
BAD_EVERY = 1000
COMMIT_S = 0.05


def stream() -> list[bytes]:
    """N messages, some of which are none."""
    values = events(N)
    values[BAD_EVERY // 2 :: BAD_EVERY] = [b"{broken %d" % i for i in range(N // BAD_EVERY)]
    return values


def good(i: int) -> bool:
    return i % BAD_EVERY != BAD_EVERY // 2


@dataclass
class Straight:
    """One run that nothing disturbed."""

    digest: str
    seen: int
    labelled: int
    predictions: dict[str, dict[str, Any]]


def without_place(prediction: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in prediction.items() if key != "topic"}


@pytest.fixture(scope="module")
def straight(topics: Topics, tmp_path_factory: pytest.TempPathFactory) -> Straight:
    directory = tmp_path_factory.mktemp("straight") / "service"
    service = Service(f"straight-{random.SystemRandom().getrandbits(32):x}", topics, directory, {}).make_topics()
    topics.produce(service.input, stream())
    try:
        service.run_to(N)
    finally:
        service.end()
    model = service.inspect()["learners"]["model"]
    predictions = {p["id"]: without_place(p) for p in service.predicted()}
    return Straight(model["digest"], model["seen"], model["labelled"], predictions)


def disturbed(service: Service, seed: int) -> None:
    """Feed the stream, kill the worker KILLS times while it works, and let the last one finish."""
    rng = random.Random(seed)
    steps = [rng.randrange(1, N // 2 // KILLS) for _ in range(KILLS)]
    with Feeder(service, stream()) as feeder:
        for step in steps:
            threshold = feeder.committed + step
            worker = service.start()
            until(lambda: feeder.committed >= threshold or not worker.alive, f"{threshold} committed", 90)  # noqa: B023
            assert worker.alive, worker.said()[-3000:]
            time.sleep(rng.uniform(0, 2 * COMMIT_S))  # not to wait for anything: where in a transaction it dies
            worker.kill()
            assert feeder.committed < N
        worker = service.start()
        service.until_committed(N, worker)
        worker.stop()


def test_the_undisturbed_run_counts_what_came_in(straight: Straight) -> None:
    assert straight.seen == sum(map(good, range(N))) == len(straight.predictions)
    assert straight.labelled == sum(good(i) and labelled(i) for i in range(N))


def test_six_kills_leave_no_trace(service: ServiceFactory, straight: Straight) -> None:
    made = service(input={"batch_max": 50}, checkpoint={"interval": "100ms"}).make_topics()

    disturbed(made, seed=11)

    model = made.inspect()["learners"]["model"]
    assert (model["digest"], model["seen"], model["labelled"]) == (straight.digest, straight.seen, straight.labelled)
    predictions = made.predicted()
    assert [p["offset"] for p in predictions] == [i for i in range(N) if good(i)]
    assert {p["id"]: without_place(p) for p in predictions} == straight.predictions
    assert made.topics.values(made.dead_letters) == [value for i, value in enumerate(stream()) if not good(i)]


def test_six_kills_lose_nothing_with_at_least_once(service: ServiceFactory, straight: Straight) -> None:
    made = service(guarantee="at_least_once", input={"batch_max": 50}, checkpoint={"interval": "100ms"}).make_topics()

    disturbed(made, seed=12)

    model = made.inspect()["learners"]["model"]
    assert (model["digest"], model["seen"], model["labelled"]) == (straight.digest, straight.seen, straight.labelled)
    copies = Counter(json.dumps(without_place(p), sort_keys=True) for p in made.predicted())
    assert set(copies) == {json.dumps(p, sort_keys=True) for p in straight.predictions.values()}
    assert set(made.topics.values(made.dead_letters)) == {v for i, v in enumerate(stream()) if not good(i)}


def test_a_kill_while_recovering_changes_nothing(service: ServiceFactory, straight: Straight) -> None:
    """No checkpoint but the first: every start learns the whole stream again, and dies at it."""
    made = service(checkpoint={"interval": "1h"}, input={"batch_max": 50}).make_topics()
    made.topics.produce(made.input, stream())
    worker = made.start()
    made.until_committed(N, worker)
    worker.kill()

    for threshold in (1, N // 4, N // 2):
        worker = made.start()
        until(lambda: replayed(worker) >= threshold or not worker.alive, f"{threshold} learnt again", 90)  # noqa: B023
        worker.kill()
    made.run_to(N)

    assert made.inspect()["learners"]["model"]["digest"] == straight.digest
    assert [p["offset"] for p in made.predicted()] == [i for i in range(N) if good(i)]


def replayed(worker: Worker) -> float:
    return worker.counted("olstream_events_processed_total", kind="replayed")


def test_an_untouched_restart_reads_nothing_again(service: ServiceFactory) -> None:
    made = service(learners={"model": {"algorithm": "pa1", "task": "multiclass"}}).make_topics()
    poison = b'{"id":"p2","features":{"x":1},"label":"a"'
    good_ones = [b'{"id":"p1","features":{"x":1},"label":"a"}', b'{"id":"p3","features":{"x":1}}']
    made.topics.produce(made.input, [good_ones[0], poison, good_ones[1]])

    made.run_to(3)
    first = made.inspect()
    worker = made.start().until_ready()
    worker.stop()

    assert [(p["id"], p["prediction"]) for p in made.predicted()] == [("p1", None), ("p3", "a")]
    letters = made.topics.read(made.dead_letters)
    assert [letter.value() for letter in letters] == [poison]
    told = dict(headers(letters[0]))
    place = {"topic": made.input.encode(), "partition": b"0", "offset": b"1", "reason": b"bad_json"}
    assert {name: told[f"olstream.{name}"] for name in place} == place
    assert made.committed() == 3
    assert made.inspect()["learners"] == first["learners"]


def test_a_second_worker_on_the_same_directory_is_refused(service: ServiceFactory) -> None:
    made = service().make_topics()
    first = made.start().until_ready()
    port = made.twin("second").config["http"]

    second = made.start(http=port)

    assert second.wait(60) == 5
    assert first.alive
    first.stop()


def test_a_duplicate_of_the_slot_elsewhere_ends_one_of_them(service: ServiceFactory, tmp_path: Path) -> None:
    """Another host has another directory: only Kafka can tell, and the earlier one learns that it was fenced."""
    made = service().make_topics()
    first = made.start().until_ready()
    made.topics.produce(made.input, events(10))
    made.until_committed(10, first)
    twin = made.twin("elsewhere", checkpoint={"path": str(tmp_path / "elsewhere"), "on_missing": "replay"})

    second = twin.start()
    try:
        with Feeder(made, events(5000)[10:]) as _:
            until(lambda: not (first.alive and second.alive), "one of them ended", 90)
            ended = first if not first.alive else second
            assert ended.wait(1) == 5, ended.said()[-3000:]
    finally:
        twin.end()

    offsets = [p["offset"] for p in made.predicted()]
    assert len(offsets) == len(set(offsets))
