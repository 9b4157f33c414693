"""What one straight pass over some records makes of a service's learners: the measure of what lives of it have made."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

from olstream.__main__ import main
from tests.kafka.service import Service, inspect


def replay_into(service: Service, values: list[bytes], state: Path, **settings: object) -> None:
    """`olstream replay` of these messages under the service's configuration, with other settings in place."""
    name = service.directory / uuid.uuid4().hex
    config, file = name.with_suffix(".yaml"), name.with_suffix(".ndjson")
    config.write_text(json.dumps(service.config | settings))
    file.write_bytes(b"\n".join(values))
    assert main(["replay", str(config), str(file), "--state", str(state)]) == 0


def learnt_from(service: Service, values: list[bytes]) -> dict[str, Any]:
    """The learners, as `inspect --json` tells them, after these messages and no others."""
    state = service.directory / uuid.uuid4().hex
    replay_into(service, values, state)
    learners: dict[str, Any] = inspect(state)["learners"]
    return learners
