"""deploy/compose.yaml brought up by the real Docker Compose: its olstream, on the broker of the tests.

Kafka, Prometheus and Grafana are left out: their images come from registries.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.container.engine import Engine
from tests.deploy.compose import CONFIG_TARGET, FILE, SERVICES, compose, configured
from tests.deploy.image import STATE
from tests.kafka.service import START_S, Service, ServiceFactory
from tests.kafka.topics import until

RATE = "3000"
COMMAND_S = 120.0
CHAMPION = "returned"


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
    common: dict[str, Any] = {
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


class Project:
    """`docker compose` with our file and a test's own."""

    def __init__(self, engine: Engine, service: Service, address: str) -> None:
        files = ["--file", str(FILE), "--file", str(override(service))]
        self._command = [*compose(), "--project-name", service.group, *files]
        self._environment = {**engine.environment, "DOCKER_HOST": address, "RATE": RATE}

    def attempt(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*self._command, *arguments]
        return subprocess.run(command, env=self._environment, capture_output=True, text=True, timeout=COMMAND_S)

    def run(self, *arguments: str) -> str:
        done = self.attempt(*arguments)
        assert done.returncode == 0, f"{arguments}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout

    def is_healthy(self) -> bool:
        """What the health check of the file says, which podman asks by the clock only where an init system runs."""
        return (
            self.attempt("exec", "-T", "olstream", *SERVICES["olstream"].said["healthcheck"]["test"][1:]).returncode
            == 0
        )

    def drifts(self) -> int:
        """How often the champion met it."""
        learners = json.loads(self.run("exec", "-T", "olstream", "olstream", "status", "--json"))["learners"]
        return int(learners[CHAMPION]["drift"]["detections"])


@contextmanager
def project(engine: Engine, service: Service) -> Iterator[Project]:
    """What it made is gone at the end."""
    with engine.api() as address:
        made = Project(engine, service, address)
        try:
            yield made
        finally:
            made.run("down", "--volumes", "--timeout=1")


def test_compose_brings_up_a_service_that_learns_and_meets_drift(
    engine: Engine, image: str, service: ServiceFactory
) -> None:
    assert SERVICES["olstream"].said["image"] == image

    with project(engine, service()) as it:
        it.run("up", "--no-build", "--no-deps", "--exit-code-from=topics", "topics")
        it.run("up", "--no-build", "--no-deps", "--detach", "olstream", "orders")
        until(it.is_healthy, "the health check is content", START_S)
        until(lambda: it.drifts() > 0, "drift is met", START_S)
        it.run("stop", "olstream")
        ended = json.loads(it.run("ps", "--all", "--format=json", "olstream"))

    assert ended["ExitCode"] == 0
