"""deploy/compose.yaml brought up by the real Docker Compose: its olstream, on the broker of the tests.

Kafka, Prometheus and Grafana are left out: their images come from registries.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.container.engine import Engine
from tests.deploy.compose import CONFIG_TARGET, FILE, SERVICES, compose, configured
from tests.deploy.image import STATE
from tests.kafka.service import START_S, Service, ServiceFactory
from tests.kafka.topics import until

RATE = "3000"
CHAMPION = "returned"
Command = Callable[..., str]


class Override(str):
    """A value that takes the place of the one in the file, where Compose would join them."""


def _written(dumper: yaml.SafeDumper, value: Override) -> yaml.Node:
    return dumper.represent_scalar("!reset", str(value))


yaml.SafeDumper.add_representer(Override, _written)


def override(service: Service) -> Path:
    """What is other than in the file: the broker, the network on which it is reached, and names of this test."""
    service.state = Path(STATE)
    config = configured(service)
    url = f"http://127.0.0.1:{service.config['http']['port']}"
    environment = {"OLSTREAM_BOOTSTRAP": service.topics.bootstrap, "OLSTREAM_HTTP_URL": url}
    common = {
        "network_mode": "host",
        "environment": environment,
        "volumes": [f"{config}:{CONFIG_TARGET}:ro"],
        "depends_on": Override("null"),
        "ports": Override("null"),
    }
    services = {name: common for name in ("topics", "olstream")}
    services["orders"] = {**common, "init": False}  # podman here has no program for that
    path = service.directory / "override.yaml"
    path.write_text(yaml.safe_dump({"services": services}))
    return path


@contextmanager
def project(engine: Engine, service: Service) -> Iterator[Command]:
    """`docker compose` with our file; what it made is gone at the end."""
    files = ["--file", str(FILE), "--file", str(override(service))]
    command = [*compose(), "--project-name", service.group, *files]
    with engine.api() as address:
        environment = {**engine.environment, "DOCKER_HOST": address, "RATE": RATE}

        def run(*arguments: str) -> str:
            done = subprocess.run([*command, *arguments], env=environment, capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, f"{arguments}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
            return done.stdout

        try:
            yield run
        finally:
            run("down", "--volumes", "--timeout=1")


def test_compose_brings_up_a_service_that_learns_and_meets_drift(
    engine: Engine, image: str, service: ServiceFactory
) -> None:
    it = service()
    assert SERVICES["olstream"].said["image"] == image

    with project(engine, it) as run:
        run("up", "--no-build", "--no-deps", "--exit-code-from=topics", "topics")
        run("up", "--no-build", "--no-deps", "--detach", "olstream", "orders")

        def healthy() -> bool:
            with pytest.MonkeyPatch.context():
                return "Restored" in run(
                    "exec", "-T", "olstream", *SERVICES["olstream"].said["healthcheck"]["test"][1:]
                )

        until(healthy, "the health check is content", START_S)

        def champion() -> dict[str, Any]:
            learners = json.loads(run("exec", "-T", "olstream", "olstream", "status", "--json"))["learners"]
            (found,) = (each for each in learners if each["name"] == CHAMPION)
            return dict(found)

        until(lambda: champion()["drift"]["detections"] > 0, "drift is met", START_S)
        run("stop", "olstream")
        (ended,) = json.loads(f"[{','.join(run('ps', '--all', '--format=json', 'olstream').split(chr(10))[:-1])}]")

    assert ended["ExitCode"] == 0
