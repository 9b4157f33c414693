"""`olstream status` and `olstream health`, against a service and against nothing."""

from __future__ import annotations

import io
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from olstream.__main__ import main
from olstream.commands.status import screen
from olstream.config import Config
from olstream.health import Health
from olstream.io import http as served
from olstream.io.http import HttpServer, serve
from olstream.messages import Example, Reason
from olstream.metrics import Metrics
from olstream.model import Model
from tests.page import documents

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
    metrics.consumed("events", 0, np.full(2, np.nan))
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


def printed(document: dict[str, Any], width: int, encoding: str = "utf-8") -> str:
    """The screen as a terminal of that many characters shows it."""
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="replace")
    console = Console(width=width, file=file)
    console.print(screen(document, console))
    file.seek(0)
    return file.read()


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


def test_a_wide_terminal_shows_drift_regret_and_the_recent_error() -> None:
    shown = printed(documents.shadowed(), 180)

    row = next(line for line in shown.splitlines() if "fraud-next" in line)
    for text in ("drift", "600 rows", "+0.0612"):
        assert text in row
    assert len(set(row) & set("▁▂▃▄▅▆▇█")) > 1
    assert "regression" in shown and "37.61" in shown


def test_a_narrow_terminal_shows_whether_there_is_drift() -> None:
    shown = printed(documents.shadowed(), 80)

    assert max(map(len, shown.splitlines())) <= 80
    assert [line.split()[-1] for line in shown.splitlines() if "shadow" in line] == ["drift", "stable"]
    assert "regret" not in shown


@pytest.mark.parametrize("width", [100, 180])
def test_shadows_are_compared_with_their_champions(width: int) -> None:
    shown = printed(documents.shadowed(), width)

    below = shown[shown.index("against") :].splitlines()
    worse, alike = (next(line for line in below if name in line).split() for name in ("fraud-next", "fraud-late"))
    assert max(map(len, shown.splitlines())) <= width
    assert worse == ["fraud-next", "fraud", "120,000", "+2.28%", "+3.47%", "-11.32", "-0.2201", "worse"]
    assert alike == ["fraud-late", "fraud", "29,000", "+0.00%", "-0.02%", "–", "–", "no", "difference"]


def test_a_narrow_terminal_has_the_comparison_whole() -> None:
    shown = printed(documents.shadowed(), 80)

    assert all(text in shown for text in ("120,000", "+2.28%", "-11.32", "-0.2201", "difference"))


def test_without_shadows_nobody_is_compared() -> None:
    assert "against" not in printed(documents.document(), 120)


def test_a_terminal_without_block_characters_gets_no_curve() -> None:
    shown = printed(documents.shadowed(), 180, encoding="ascii")

    assert "recent error" not in shown
    assert "+0.0612" in shown


def test_failed_checkpoints_are_told() -> None:
    checkpoint = {"written": documents.NOW_S - 90.0, "size_bytes": 1000, "uncheckpointed": 5, "failures": 2}

    shown = printed(documents.document(checkpoint=checkpoint), 120)

    assert "checkpoint: 90 s ago, 1 kB, 5 records learnt since, 2 failures" in shown


def test_the_status_of_an_older_service_is_shown_as_far_as_it_goes() -> None:
    document = documents.document()
    for key in ("drift", "history", "marks", "hindsight", "mae", "updated_share", "confusion"):
        del document["learners"]["fraud"][key]
    del document["process"], document["checkpoint"]["failures"]

    shown = printed(document, 180)

    assert "6.40%" in shown and "840 records" in shown


def test_a_service_before_its_first_record_has_a_screen() -> None:
    shown = printed(documents.empty(), 180)

    assert "NOT READY" in shown and "none written since the start" in shown


def test_status_loads_nothing_heavy() -> None:
    script = "import sys; import olstream.commands.status; print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()

    assert not {"numpy", "numba", "confluent_kafka", "pydantic", "prometheus_client"} & set(loaded)


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
