"""`olstream state` on a real Kafka: every checkpoint is what the journal says, and going back to one holds."""

from __future__ import annotations

import json
from typing import Any

from tests.kafka.events import events
from tests.kafka.feeding import Feeder
from tests.kafka.service import Service, ServiceFactory, olstream

N = 4000


def state(service: Service, *arguments: str, code: int = 0) -> str:
    """Standard output of `olstream state`, or standard error where the code is not 0."""
    verb, *rest = arguments
    done = olstream("state", verb, str(service.directory / "config.yaml"), *rest)
    assert done.returncode == code, f"exit {done.returncode}: {done.stdout}{done.stderr}"
    return done.stderr if code else done.stdout


def verified(service: Service, *options: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(state(service, "verify", "--json", *options))
    return found


def test_the_checkpoints_of_a_killed_worker_are_what_the_journal_says(service: ServiceFactory) -> None:
    made = service(checkpoint={"interval": "200ms"}).make_topics()
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
