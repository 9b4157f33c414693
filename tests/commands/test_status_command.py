"""`olstream status` and `olstream health`, against a service and against nothing."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from olstream.__main__ import main
from olstream.config import Config
from olstream.health import Health
from olstream.io import http as served
from olstream.io.http import HttpServer, serve
from olstream.messages import Chunk, Example, Reason
from olstream.metrics import Metrics
from olstream.model import Model

TOKEN = "s3cret"


@pytest.fixture
def health() -> Health:
    return Health()


@pytest.fixture
def service(health: Health, monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpServer]:
    """A service that has seen four labels, the first and the third a surprise, and a bad message."""
    monkeypatch.setattr(served, "ASK_S", 0.0)
    config = Config.model_validate(
        {"learners": {"fraud": {"bias": False}}, "input": {"topics": ["events"]}, "http": {"port": 0, "token": TOKEN}}
    )
    metrics = Metrics(config, health)
    model = Model("fraud", config.learners["fraud"], config.monitor)
    model.predict_then_update([Example(features={"x": 1.0}, label=label) for label in (1, 1, 0, 1)])
    metrics.standings([model])
    metrics.consumed(Chunk("events", 0, [0, 1], [None] * 2, [None] * 2, [b"{}"] * 2, [None] * 2))
    metrics.rejected("events", Reason.BAD_JSON)
    server = serve(config, metrics, health)
    yield server
    server.stop()


@pytest.fixture
def nobody() -> str:
    """An address where nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


# status


def test_status_is_one_screen(
    service: HttpServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OLSTREAM_HTTP_TOKEN", TOKEN)
    monkeypatch.setenv("COLUMNS", "140")

    code = main(["status", service.url])

    shown = capsys.readouterr().out
    assert code == 0
    for text in ("NOT READY", "fraud", "arow", "binary", "champion", "50.00", "events", "bad_json 1", "checkpoint"):
        assert text in shown
    assert len(shown.splitlines()) <= 24


def test_status_as_json_is_the_document(
    service: HttpServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OLSTREAM_HTTP_TOKEN", TOKEN)

    code = main(["status", service.url, "--json"])

    document = json.loads(capsys.readouterr().out)
    assert code == 0
    assert document["learners"]["fraud"]["error"]["total"] == 0.5
    assert document["topics"]["events"]["rejected"] == {"bad_json": 1}


def test_status_without_the_token_says_where_to_put_it(
    service: HttpServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OLSTREAM_HTTP_TOKEN", raising=False)

    code = main(["status", service.url])

    said = capsys.readouterr()
    assert (code, said.out) == (2, "")
    assert "set OLSTREAM_HTTP_TOKEN" in said.err and len(said.err.splitlines()) == 1


@pytest.mark.parametrize("arguments", [[], ["--json"], ["--watch"]])
def test_status_of_nothing_is_one_sentence(
    nobody: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["status", nobody, *arguments])

    said = capsys.readouterr()
    assert (code, said.out.strip()) == (3, "")
    assert "does not answer" in said.err and len(said.err.splitlines()) == 1


@pytest.mark.parametrize("url", ["http://[", "ftp://127.0.0.1", "http://127.0.0.1:notaport", "http://"])
def test_status_of_a_bad_address_is_one_sentence(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["status", url])

    assert code in (2, 3)
    assert len(capsys.readouterr().err.splitlines()) == 1


# health


def test_health_follows_the_probes(service: HttpServer, health: Health, capsys: pytest.CaptureFixture[str]) -> None:
    alive = main(["health", "--url", service.url])
    starting = main(["health", "--url", service.url, "--ready"])
    health.restored()
    health.assigned(1)
    ready = main(["health", "--url", service.url, "--ready"])

    said = capsys.readouterr()
    assert (alive, starting, ready) == (0, 1, 0)
    assert "came round" in said.out and "1 partition assigned" in said.out
    assert "Not restored yet: starting." in said.err


def test_health_of_nothing_is_1_with_its_reason(nobody: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["health", "--url", nobody])

    assert code == 1
    assert "does not answer" in capsys.readouterr().err


def test_health_finds_its_address_in_the_environment(service: HttpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLSTREAM_HTTP_URL", service.url)

    assert main(["health"]) == 0


def test_health_loads_nothing_heavy() -> None:
    script = "import sys; import olstream.commands.health; print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()

    assert not {"numpy", "numba", "confluent_kafka", "pydantic", "prometheus_client", "rich"} & set(loaded)
