"""deploy/compose.yaml as Compose reads it: merged, its variables filled in, its mounts resolved."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy import image
from tests.deploy.prometheus import DEPLOY
from tests.kafka.service import Service as Running

FILE = DEPLOY / "compose.yaml"
CONFIG_TARGET = image.COMMAND[-1]
_VARIABLE = re.compile(r"\$(?:(\$)|\{(\w+):-([^}]*)\})")


@dataclass(frozen=True)
class Mount:
    source: str
    target: str
    read_only: bool

    @property
    def path(self) -> Path | None:
        """On this machine; None for a named volume."""
        return (DEPLOY / self.source).resolve() if self.source.startswith(".") else None


@dataclass(frozen=True)
class Service:
    name: str
    said: Mapping[str, Any]

    @property
    def mounts(self) -> list[Mount]:
        parts = [volume.split(":") for volume in self.said.get("volumes", [])]
        return [Mount(part[0], part[1], part[2:] == ["ro"]) for part in parts]

    @property
    def environment(self) -> dict[str, str]:
        return dict(self.said.get("environment", {}))

    @property
    def command(self) -> list[str]:
        return list(self.said.get("command", []))

    def mounted(self, target: str) -> Path:
        """The file or directory of this repository that the service finds there."""
        (path,) = (mount.path for mount in self.mounts if mount.target == target)
        assert path is not None
        return path


def filled(value: Any) -> Any:
    """As Compose does it: `${NAME:-default}` with nothing set, and `$$` for one `$`; any other form is unknown here."""
    if isinstance(value, dict):
        return {key: filled(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [filled(inner) for inner in value]
    if not isinstance(value, str):
        return value
    assert "$" not in _VARIABLE.sub("", value), value
    return _VARIABLE.sub(lambda found: found[1] or found[3], value)


def file() -> dict[str, Any]:
    read: dict[str, Any] = filled(yaml.safe_load(FILE.read_text()))
    return read


SERVICES = {name: Service(name, said) for name, said in file()["services"].items()}
OURS = [service for service in SERVICES.values() if service.said["image"].startswith("ghcr.io/olstream/")]


def compose() -> list[str]:
    """The command of the real Docker Compose, which needs no engine to read a file; without it a skip or a failure."""
    docker = shutil.which("docker")
    if docker and subprocess.run([docker, "compose", "version"], capture_output=True).returncode == 0:
        return [docker, "compose"]
    if found := shutil.which("docker-compose"):
        return [found]
    missing = "Docker Compose is not installed: .ci/run fetches it from Debian 13"
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(missing, pytrace=False)
    pytest.skip(missing)


def environment_of(service: Service, **other: str) -> dict[str, str]:
    """Ours, and on top what the service is given."""
    return {**os.environ, **service.environment, **other}


def configured(service: Running) -> Path:
    """The configuration that the containers get, with the names and addresses of a test; where it is written."""
    config: dict[str, Any] = yaml.safe_load(SERVICES["olstream"].mounted(CONFIG_TARGET).read_text())
    config["group"] = service.group
    config["input"]["topics"] = [service.input]
    config["output"] = {"predictions": service.predictions, "dead_letters": service.dead_letters}
    config["checkpoint"]["path"] = str(service.state)
    config["http"] = service.config["http"]
    path = service.directory / "config.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    return path
