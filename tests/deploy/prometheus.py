"""Prometheus and its promtool: where they are, a server of our own, and what it answers."""

from __future__ import annotations

import json
import math
import os
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
import yaml

from tests.kafka.broker import dies_with_us
from tests.kafka.topics import until

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
CONFIG = DEPLOY / "prometheus" / "prometheus.yml"
RULES = DEPLOY / "prometheus" / "rules.yaml"
UP_S = 20.0


def tool(name: str) -> str:
    """The path of a program of the Debian package `prometheus`; without it a skip, and a failure where CI=true."""
    found = shutil.which(name)
    if found is not None:
        return found
    missing = f"{name} is not installed: it is in the Debian package prometheus"
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(missing, pytrace=False)
    pytest.skip(missing)


def promtool(*arguments: str | Path, given: str = "") -> tuple[int, str]:
    """Exit code and all that it said."""
    command = [tool("promtool"), *map(str, arguments)]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


class Prometheus:
    """A server that scrapes one target every second, with the configuration and the rules that we ship."""

    def __init__(self, directory: Path, target: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as held:
            self._at = f"127.0.0.1:{held.getsockname()[1]}"
        self._log = directory / "prometheus.log"
        config = yaml.safe_load(CONFIG.read_text())
        config["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
        config["rule_files"] = [str(RULES)]
        config["scrape_configs"][0]["static_configs"] = [{"targets": [target]}]
        path = directory / "prometheus.yml"
        path.write_text(yaml.safe_dump(config))
        self._command = [
            tool("prometheus"),
            f"--config.file={path}",
            f"--storage.tsdb.path={directory / 'prometheus'}",
            f"--web.listen-address={self._at}",
            "--log.level=warn",
        ]

    def __enter__(self) -> Self:
        with self._log.open("ab") as log:
            command = [*dies_with_us(), *self._command]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(lambda: self._is_ready() or self._process.poll() is not None, "Prometheus is ready", UP_S)
        assert self._process.poll() is None, self._log.read_text()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def query(self, expr: str) -> list[tuple[dict[str, str], float]]:
        """The value of each series now."""
        return [(found["metric"], float(found["value"][1])) for found in self.ask("query", query=expr)["result"]]

    def span(self, expr: str, start_s: float, end_s: float) -> list[tuple[dict[str, str], list[float]]]:
        """The values of each series between two moments, 5 s apart."""
        found = self.ask("query_range", query=expr, start=f"{start_s:.3f}", end=f"{end_s:.3f}", step="5")["result"]
        return [(series["metric"], [float(value) for _, value in series["values"]]) for series in found]

    def has(self, expr: str) -> bool:
        """Whether there is a value now, and all of them are finite."""
        values = [value for _, value in self.query(expr)]
        return bool(values) and all(map(math.isfinite, values))

    def ask(self, what: str, **parameters: str) -> dict[str, Any]:
        url = f"http://{self._at}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
        try:
            with _open(url) as answer:
                said = json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from None
        assert said["status"] == "success" and not said.get("warnings"), (parameters, said)
        data: dict[str, Any] = said["data"]
        return data

    def _is_ready(self) -> bool:
        try:
            with _open(f"http://{self._at}/-/ready") as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


def _open(url: str) -> Any:
    return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=10)
