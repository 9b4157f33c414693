"""A worker that is a container: the image, one slot's configuration, and a volume for its state."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.container.engine import CONFINED, LIFE_S, Engine
from tests.kafka.service import START_S, Service, Worker
from tests.kafka.topics import until

STATE: Final = "/var/lib/olstream"
CONFIG: Final = "/etc/olstream/config.yaml"


class Pod(Worker):
    """One `olstream run` in a container. Signals to `podman run` reach process 1, and its exit code comes back."""

    def __init__(self, place: Place, service: Service) -> None:
        self.name = f"olstream-{uuid.uuid4().hex[:12]}"
        self.log, self._port = service.directory / "log", service.config["http"]["port"]
        self.engine = place.engine
        self.engine.will_run(self.name)
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                [*place.command(f"--name={self.name}", *_health_at(self._port)), "run", CONFIG],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=self.engine.environment,
            )

    def until_answers(self) -> None:
        """It need not be ready."""
        until(lambda: self.status("/live") == 200 or not self.alive, f"alive; {self.log}", START_S)
        assert self.alive, self.said()[-3000:]

    def within(self, *command: str) -> subprocess.CompletedProcess[str]:
        """A command beside the service, in the same container."""
        return self.engine.try_out("podman", "exec", self.name, *command)

    def healthcheck(self) -> int:
        """The exit code of the image's own HEALTHCHECK. Where an init system runs, podman asks it by the clock."""
        return self.engine.try_out("podman", "healthcheck", "run", self.name).returncode


class Place:
    """Where the containers of one slot run, one after another: with the same volume and the same configuration."""

    def __init__(self, engine: Engine, image: str, service: Service, volume: str) -> None:
        self.engine, self.image, self.service = engine, image, service
        self.volume = volume
        self._config = service.directory / "container.yaml"

    def start(self) -> Pod:
        return Pod(self, self.service)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command of olstream that ends by itself."""
        return self.engine.try_out(*self.command(), *arguments, deadline_s=LIFE_S)

    def verify(self) -> None:
        """`olstream state verify` in a container of its own: from the oldest checkpoint, and from the empty model."""
        for options in ((), ("--all",)):
            done = self.run("state", "verify", CONFIG, *options)
            assert done.returncode == 0, f"exit {done.returncode}: {done.stdout}{done.stderr}"

    def command(self, *options: str) -> list[str]:
        inside = {**self.service.config, "checkpoint": {**self.service.config["checkpoint"], "path": STATE}}
        self._config.write_text(json.dumps(inside))
        return [
            *("podman", "run", "--rm", *CONFINED, f"--timeout={LIFE_S}", "--network=host", *options),
            *(f"--volume={self._config}:{CONFIG}:ro", f"--volume={self.volume}:{STATE}", self.image),
        ]


@contextmanager
def place(engine: Engine, image: str, service: Service) -> Iterator[Place]:
    """The service's state is then what is in the volume."""
    name = f"olstream-{uuid.uuid4().hex[:12]}"
    with engine.volume(name) as files:
        service.state = Path(files)
        yield Place(engine, image, service, name)


def _health_at(port: int) -> list[str]:
    return [f"--env=OLSTREAM_HTTP_URL=http://127.0.0.1:{port}"]
