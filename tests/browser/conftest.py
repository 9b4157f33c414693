"""A browser, and a service whose page it looks at."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from olstream.io import http as served
from olstream.io.http import HttpServer, serve
from tests.browser.chromium import Chromium, find
from tests.page import Service

Serve = Callable[[Callable[[], dict[str, Any]]], str]


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Chromium:
    return Chromium(find(), tmp_path_factory.mktemp("profile"))


@pytest.fixture
def serve_documents(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Serves what a function says at each request, at the address that comes back."""
    servers: list[HttpServer] = []

    def start(document: Callable[[], dict[str, Any]]) -> str:
        running = Service(None, http={"port": 0})
        monkeypatch.setattr(served, "ASK_S", 0.0)
        monkeypatch.setattr(served, "describe", lambda _metrics: document())
        servers.append(serve(running.config, running.metrics, running.health))
        return servers[-1].url

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Where screenshots go: OLSTREAM_SCREENSHOTS where that is set, so that people can look at them."""
    directory = Path(os.environ.get("OLSTREAM_SCREENSHOTS", tmp_path))
    directory.mkdir(parents=True, exist_ok=True)
    return directory
