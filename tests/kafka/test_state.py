"""`olstream state` on a real Kafka: every checkpoint is what the journal says, and going back to one holds."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from olstream import crash
from olstream.checkpoint import from_folder, read_manifest, to_files
from olstream.io.disk import newest_first, slot_directory
from olstream.model import digest_of
from tests.kafka.events import events
from tests.kafka.feeding import Feeder
from tests.kafka.service import START_S, Service, ServiceFactory, olstream
from tests.kafka.straight import learnt_from
from tests.kafka.topics import until

N = 4000
SESSION = {"session.timeout.ms": 6000}  # the shortest a broker takes: only then a group is empty
CHANGED = {"model": {"algorithm": "arow", "task": "binary", "params": {"r": 3.0}}}

BOTH = pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])


def state(service: Service, verb: str, *options: object, code: int = 0) -> str:
    """Standard output of `olstream state`, or standard error where the code is not 0."""
    done = olstream("state", verb, str(service.directory / "config.yaml"), *map(str, options))
    assert done.returncode == code, f"exit {done.returncode}: {done.stdout}{done.stderr}"
    return done.stderr if code else done.stdout


def verified(service: Service, *options: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(state(service, "verify", "--json", *options))
    return found


def seq_at(service: Service, records: int) -> int:
    """Of the newest checkpoint that has learnt so many."""
    listed = json.loads(state(service, "list", "--json"))["checkpoints"]
    seqs: list[int] = [one["seq"] for one in listed if one["learners"]["model"]["seen"] == records]
    return seqs[0]


def learn(service: Service, start: int, end: int, kill: bool = False) -> None:
    """One life in which the worker learns these of N events."""
    service.topics.produce(service.input, events(N)[start:end])
    worker = service.start()
    service.until_committed(end, worker)
    worker.kill() if kill else worker.stop()


def assert_model_of(service: Service, *parts: tuple[int, int]) -> None:
    """The model has learnt these of N events and no others, and the journal agrees."""
    straight = learnt_from(service, [event for start, end in parts for event in events(N)[start:end]])
    assert service.inspect()["learners"] == straight
    assert verified(service)["equal"] and verified(service, "--all")["equal"]


@BOTH
def test_the_checkpoints_of_a_killed_worker_are_what_the_journal_says(service: ServiceFactory, guarantee: str) -> None:
    made = service(checkpoint={"interval": "200ms"}, guarantee=guarantee).make_topics()
    with Feeder(made, events(N)) as feeder:
        worker = made.start()
        made.until_committed(N // 2, worker)
        worker.kill()
        worker = made.start()
        made.until_committed(N, worker)

        while_running = verified(made)
        worker.kill()

    assert feeder.fed == N
    assert while_running["equal"] and verified(made)["equal"]
    whole = verified(made, "--all")
    assert (whole["equal"], whole["records"]) == (True, N)


def test_one_bit_of_a_checkpoint_that_loads_is_found(service: ServiceFactory) -> None:
    made = service().make_topics()
    for start in (0, 200):
        learn(made, start, start + 200)
    newest = next(newest_first(slot_directory(made.state, made.group, 0)))
    checkpoint, created = from_folder(newest), read_manifest(newest)["created"]
    meta, arrays = checkpoint.states["model"]
    arrays["weights"].view("u8")[0, -1] ^= 1
    forged = replace(checkpoint, digests={"model": digest_of(dict(meta), arrays)})
    for name, data in to_files(forged, "forged", created).items():
        (newest / name).write_bytes(data)

    said = state(made, "verify", code=4)

    digests = checkpoint.digests["model"], forged.digests["model"]
    assert "learner model" in said and newest.name in said and all(str(digest) in said for digest in digests)
    assert made.start().until_ready().alive  # nothing else finds it


@BOTH
def test_back_at_a_checkpoint_the_slot_goes_on_with_the_records_to_come(
    service: ServiceFactory, guarantee: str
) -> None:
    made = service(consumer=SESSION, guarantee=guarantee).make_topics()
    for start in (0, 1000, 2000):
        learn(made, start, start + 1000, kill=start == 2000)
    before = made.predicted()

    said = made.roll_back(seq_at(made, 1000))
    learn(made, 3000, N)

    assert f"{made.input}[0] offsets 1000 to 3000, 2,000 records\n" in said
    assert made.predicted()[: len(before)] == before
    assert [p["offset"] for p in made.predicted()] == list(range(N))
    assert_model_of(made, (0, 1000), (3000, N))

    shutil.rmtree(made.state)
    made.start(checkpoint={"on_missing": "replay"}).until_ready().stop()
    assert_model_of(made, (0, 1000), (3000, N))


@BOTH
def test_offsets_that_an_operator_moved_are_taken_as_they_stand(service: ServiceFactory, guarantee: str) -> None:
    made = service(consumer=SESSION, guarantee=guarantee).make_topics()
    learn(made, 0, 500)
    made.topics.reset(made.group, made.input, 200)
    refused = made.start()
    assert refused.wait(START_S) == 4
    assert "olstream state rollback" in refused.said()

    said = made.roll_back(seq_at(made, 500))
    learn(made, 500, 600)

    assert "not in the model any more" not in said
    assert f"the group goes on at {made.input}[0] offset 200" in said
    assert [p["offset"] for p in made.predicted()] == [*range(500), *range(200, 600)]
    assert_model_of(made, (0, 500), (200, 600))


def test_a_learner_that_changed_begins_anew_from_the_empty_model(service: ServiceFactory) -> None:
    made = service(consumer=SESSION).make_topics()
    learn(made, 0, 500)
    refused = made.start(learners=CHANGED)
    assert refused.wait(START_S) == 4
    assert "olstream state rollback --to empty" in refused.said()

    said = made.roll_back("empty")
    learn(made, 500, 800)

    assert f"{made.input}[0] offsets 0 to 500, 500 records\n" in said
    assert_model_of(made, (500, 800))


def test_a_rollback_is_refused_while_a_worker_runs_here_or_elsewhere(service: ServiceFactory, tmp_path: Path) -> None:
    made = service().make_topics()
    made.topics.produce(made.input, events(50))
    worker = made.start()
    made.until_committed(50, worker)
    elsewhere = tmp_path / "elsewhere.yaml"
    elsewhere.write_text(json.dumps(made.config | {"checkpoint": {"path": str(tmp_path / "elsewhere")}}))

    here = state(made, "rollback", "--to", "empty", code=5)
    there = olstream("state", "rollback", str(elsewhere), "--to", "empty")
    dry = state(made, "rollback", "--to", "empty", "--dry-run")

    assert "another process holds" in here
    assert there.returncode == 5 and "has members" in there.stderr and "after 45 s" in there.stderr
    assert f"{made.input}[0] offsets 0 to 50, 50 records" in dry and "nothing was changed" in dry
    made.topics.produce(made.input, events(60)[50:])
    made.until_committed(60, worker)
    worker.stop()
    assert_model_of(made, (0, 60))


def test_a_directory_from_before_a_rollback_is_refused(service: ServiceFactory, tmp_path: Path) -> None:
    made = service(consumer=SESSION).make_topics()
    learn(made, 0, 100)
    backup = shutil.copytree(made.state, tmp_path / "backup")
    made.roll_back("empty")
    learn(made, 100, 150)

    made.config["checkpoint"]["path"] = str(backup)
    refused = made.start()

    assert refused.wait(START_S) == 4
    assert "another lineage" in refused.said()


# What a rollback passes, first to last; what each death left behind is there at the next. An earlier checkpoint is
# set aside for each, so there are two of them at the end.
POINTS = [
    *("init.before", "init.after", "line.before", "line.after", "offsets.before", "offsets.after"),
    *("commit.before", "commit.after", "write.before", "write.after", "fsync.before", "fsync.after"),
    *("rename.before", "rename.after", "aside.before", "aside.after:2"),
]


def test_a_rollback_that_died_at_every_step_is_finished_by_the_same_again(service: ServiceFactory) -> None:
    made = service(consumer=SESSION).make_topics()
    for start in (0, 300):
        learn(made, start, start + 300)
    seq = seq_at(made, 300)

    for point in POINTS:
        until(lambda: died_at(made, point, seq), f"dead at {point}", START_S)  # noqa: B023
    made.roll_back(seq)
    learn(made, 600, 700)

    assert_model_of(made, (0, 300), (600, 700))
    assert [p["offset"] for p in made.predicted()] == list(range(700))


def died_at(service: Service, point: str, seq: int) -> bool:
    """False while the session of the last worker has not ended."""
    command = ["state", "rollback", str(service.directory / "config.yaml"), "--to", str(seq)]
    environment = os.environ | {crash.VARIABLE: point}
    ended = subprocess.run([sys.executable, "-m", "olstream", *command], env=environment, capture_output=True)
    assert ended.returncode in (5, -signal.SIGKILL), f"{point}: exit {ended.returncode}: {ended.stderr.decode()}"
    return ended.returncode != 5
