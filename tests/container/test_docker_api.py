"""The same image where tools speak to Docker: testcontainers through podman's socket."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from testcontainers.core.config import ConnectionMode, testcontainers_config
from testcontainers.core.container import DockerContainer

from tests.container.engine import Engine
from tests.container.pod import CONFIG, STATE, place
from tests.kafka.events import events
from tests.kafka.service import ServiceFactory
from tests.kafka.topics import until

CONFINED = {"read_only": True, "cap_drop": ["ALL"], "security_opt": ["no-new-privileges"], "mem_limit": "1g"}


def test_testcontainers_runs_it(
    engine: Engine, image: str, service: ServiceFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = service().make_topics()
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps({**work.config, "checkpoint": {"path": STATE}}))
    work.topics.produce(work.input, events(100))
    monkeypatch.setattr(testcontainers_config, "ryuk_disabled", True)
    monkeypatch.setattr(testcontainers_config, "connection_mode_override", ConnectionMode.docker_host)
    monkeypatch.setattr(testcontainers_config, "tc_host_override", "127.0.0.1")

    with engine.api() as address, place(engine, image, work) as here:
        monkeypatch.setenv("DOCKER_HOST", address)
        container = DockerContainer(image).with_kwargs(network_mode="host", **CONFINED)
        container.with_volume_mapping(config, CONFIG).with_volume_mapping(here.volume, STATE, "rw")
        with container:
            until(lambda: work.committed() == 100, "100 records done")
            health = container.exec(["olstream", "health", "--url", f"http://127.0.0.1:{work.config['http']['port']}"])
            wrapped = container.get_wrapped_container()
            wrapped.stop(timeout=10)
            ended = wrapped.wait()

    assert health.exit_code == 0
    assert ended["StatusCode"] == 0
    assert sorted(p["offset"] for p in work.predicted()) == list(range(100))
