"""`olstream state` on a real Kafka: every checkpoint is what the journal says, and going back to one holds."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from tests.kafka.events import events
from tests.kafka.feeding import Feeder
from tests.kafka.service import Service, ServiceFactory, Worker, olstream
from tests.kafka.topics import until

N = 4000
SESSION = {"session.timeout.ms": 6000}  # the shortest that a broker takes: a group is empty only when it has passed

BOTH = pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])


def state(service: Service, verb: str, *options: str, code: int = 0) -> str:
    """Standard output of `olstream state`, or standard error where the code is not 0."""
    done = olstream("state", verb, str(service.directory / "config.yaml"), *options)
    assert done.returncode == code, f"exit {done.returncode}: {done.stdout}{done.stderr}"
    return done.stderr if code else done.stdout


def verified(service: Service, *options: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(state(service, "verify", "--json", *options))
    return found


def listed(service: Service) -> list[dict[str, Any]]:
    found: dict[str, Any] = json.loads(state(service, "list", "--json"))
    return list(found["checkpoints"])


def roll_back(service: Service, to: object) -> str:
    """Once the session of the last worker has ended."""
    done = None

    def went() -> bool:
        nonlocal done
        done = olstream("state", "rollback", str(service.directory / "config.yaml"), "--to", str(to))
        assert done.returncode in (0, 5), f"exit {done.returncode}: {done.stdout}{done.stderr}"
        return done.returncode == 0

    until(went, "the group is empty, and goes back")
    assert done is not None
    return done.stdout


def fed(service: Service, start: int, end: int, stop: Any = Worker.stop) -> None:
    """One life in which the worker learns these of N events."""
    service.topics.produce(service.input, events(N)[start:end])
    worker = service.start()
    service.until_committed(end, worker)
    stop(worker)


def made_of(service: ServiceFactory, *parts: tuple[int, int]) -> str:
    """The digest of a model that learns these of N events and no others."""
    other = service().make_topics()
    other.topics.produce(other.input, [event for start, end in parts for event in events(N)[start:end]])
    other.run_to(sum(end - start for start, end in parts))
    return digest(other)


def digest(service: Service) -> str:
    return str(service.inspect()["learners"]["model"]["digest"])


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


@BOTH
def test_back_at_a_checkpoint_the_slot_goes_on_with_the_records_to_come(
    service: ServiceFactory, guarantee: str
) -> None:
    made = service(consumer=SESSION, guarantee=guarantee).make_topics()
    for start in (0, 1000, 2000):
        fed(made, start, start + 1000, Worker.kill if start == 2000 else Worker.stop)
    first, *_ = [one for one in reversed(listed(made)) if one["learners"]["model"]["seen"] == 1000]
    before = made.predicted()

    said = roll_back(made, first["seq"])
    fed(made, 3000, N)

    assert f"{made.input}[0] offsets 1000 to 3000, 2,000 records" in said
    assert made.predicted()[: len(before)] == before
    assert [p["offset"] for p in made.predicted()] == list(range(N))
    assert digest(made) == made_of(service, (0, 1000), (3000, N))
    assert verified(made)["equal"] and verified(made, "--all")["equal"]

    shutil.rmtree(made.state)
    made.start(checkpoint={"on_missing": "replay"}).until_ready().stop()
    assert digest(made) == made_of(service, (0, 1000), (3000, N))
