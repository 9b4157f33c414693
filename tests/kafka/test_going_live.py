"""Train on history with `replay`, then go live with `run`: the same model as one pass over everything."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

from tests.kafka.events import events
from tests.kafka.feeding import Feeder
from tests.kafka.service import Service, ServiceFactory, inspect, olstream
from tests.kafka.straight import learnt_from, replay_into
from tests.kafka.topics import until

N = 4000
HISTORY, LIVE = events(N)[: N // 2], events(N)[N // 2 :]
LEARNERS: dict[str, dict[str, Any]] = {
    "model": {"algorithm": "arow", "scale": "standard"},
    "next": {"algorithm": "pa1", "task": "multiclass", "params": {"C": 0.1}},
}
ROUTES = [{"when": {}, "shadows": ["next"]}]


def going_live(service: ServiceFactory) -> Service:
    """A service whose learners begin with what HISTORY has taught them."""
    made = service(learners=LEARNERS, routes=ROUTES, input={"batch_max": 50}).make_topics()
    trained = made.directory / "trained"
    replay_into(made, HISTORY, trained)
    made.config["learners"] = {name: told | {"start_from": f"{trained}#{name}"} for name, told in LEARNERS.items()}
    return made


def test_a_model_that_was_trained_on_a_file_goes_on_live_through_kills(service: ServiceFactory) -> None:
    made = going_live(service)

    with Feeder(made, LIVE) as feeder:
        for threshold in (1, 500, 1000):
            worker = made.start()
            until(lambda: feeder.committed >= threshold or not worker.alive, f"{threshold} committed", 90)  # noqa: B023
            worker.kill()
        made.run_to(len(LIVE))

    found = made.inspect()["learners"]
    made.config["learners"] = LEARNERS
    assert found == learnt_from(made, HISTORY + LIVE)
    assert found["model"]["seen"] == N
    assert [p["offset"] for p in made.predicted()] == list(range(len(LIVE)))


def test_a_lost_disk_is_made_good_from_the_same_beginning_and_no_other(service: ServiceFactory) -> None:
    made = going_live(service)
    made.topics.produce(made.input, LIVE)
    made.run_to(len(LIVE))
    expected = made.inspect()["digest"]

    shutil.rmtree(made.state)
    made.start(checkpoint={"on_missing": "replay"}).until_ready().stop()
    assert made.inspect()["digest"] == expected

    shutil.rmtree(made.state)
    replay_into(made, LIVE[:1], made.directory / "trained", learners=LEARNERS)
    worker = made.start()
    assert worker.wait(60) == 4
    assert "cannot give learner model back" in worker.said().splitlines()[-1]
    assert "on_missing: fresh" in worker.said().splitlines()[-1]


def test_a_start_that_cannot_be_read_is_told_before_anything_is_left_behind(service: ServiceFactory) -> None:
    made = service(learners={"model": {"start_from": "nowhere.json"}}).make_topics()

    worker = made.start()

    assert worker.wait(60) == 2
    assert "learners.model.start_from: nowhere.json" in worker.said().splitlines()[-1]
    assert made.topics.values(f"{made.group}-journal") == []


def test_half_of_a_real_stream_from_a_file_and_half_live(service: ServiceFactory, data_dir: Path) -> None:
    """The commands of the README, one configuration for all of them."""
    header, *rows = gzip.decompress((data_dir / "electricity.csv.gz").read_bytes()).splitlines(keepends=True)
    half = len(rows) // 2
    made = service(
        learners={"model": {"algorithm": "arow", "classes": ["DOWN", "UP"], "start_from": "trained#model"}},
        input={"fields": {"label": "class"}, "exclude": ["date"]},
    ).make_topics()
    config = made.directory / "config.yaml"
    trained = made.directory / "trained"
    made.config["learners"]["model"]["start_from"] = f"{trained}#model"
    config.write_text(json.dumps(made.config))
    for name, part in (("history.csv", rows[:half]), ("live.csv", rows[half:]), ("all.csv", rows)):
        (made.directory / name).write_bytes(header + b"".join(part))

    def command(name: str, file: str, *options: str) -> None:
        done = olstream(name, str(config), str(made.directory / file), *options)
        assert done.returncode == 0, done.stderr

    command("replay", "history.csv", "--state", str(trained))
    worker = made.start().until_ready()
    command("send", "live.csv")
    made.until_committed(len(rows) - half, worker)
    worker.stop()
    shutil.move(trained, made.directory / "elsewhere")
    command("replay", "all.csv", "--state", str(trained))

    live, straight = made.inspect(), inspect(trained)
    assert live["learners"] == straight["learners"]
    assert live["learners"]["model"]["seen"] == len(rows) == len(made.predicted()) + half
