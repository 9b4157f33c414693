"""The service of the demo: its configuration as a user would write it, and `olstream run` as a process."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Final

import yaml

from olstream.demo.brokers import Broker, Names
from olstream.demo.stream import Stream
from olstream.errors import OlstreamError

READY_S: Final = 120.0
STOP_S: Final = 20.0
PORT: Final = 9108  # the default, where it is free


def configuration(broker: Broker, names: Names, stream: Stream, state: Path) -> dict[str, Any]:
    """AROW predicts; PA-I learns the same records as its shadow, unpublished."""
    features = {"category": stream.category}
    both = {"task": "binary", "classes": list(stream.classes), "scale": "standard", "features": features}
    return {
        "kafka": {"bootstrap.servers": broker.bootstrap},
        "group": names.prefix,
        "guarantee": broker.guarantee,
        "input": {"topics": [names.input]},
        "output": {"predictions": names.predictions, "dead_letters": names.dead_letters, "journal": names.journal},
        "learners": {
            "arow": {"algorithm": "arow", "params": {"r": 1.0}, **both},
            "pa1": {"algorithm": "pa1", "params": {"C": 0.01}, **both},
        },
        "routes": [{"when": {}, "learner": "arow", "shadows": ["pa1"]}],
        "checkpoint": {"path": str(state), "interval": "10s"},
        "http": {"port": _port()},
    }


class Worker:
    """`olstream run` in a directory; what it says goes to `run.log` there."""

    def __init__(self, config: dict[str, Any], directory: Path) -> None:
        path = directory / "config.yaml"
        path.write_text(yaml.safe_dump(config, sort_keys=False))
        self.url = f"http://127.0.0.1:{config['http']['port']}"
        self._log = directory / "run.log"
        with self._log.open("wb") as log:
            command = [sys.executable, "-m", "olstream", "run", str(path)]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_S
        while not self._is_ready():
            self.raise_if_ended()
            if time.monotonic() > deadline:
                raise OlstreamError(f"the service is not ready after {READY_S:.0f} s: see {self._log}")
            time.sleep(0.1)

    def raise_if_ended(self) -> None:
        code = self._process.poll()
        if code is not None:
            said = self._log.read_text(errors="replace").strip().splitlines() or ["nothing"]
            raise OlstreamError(f"the service ended with exit code {code}; it said: {said[-1]} ({self._log})")

    def status(self) -> dict[str, Any]:
        with _open(f"{self.url}/status.json") as answer:
            document: dict[str, Any] = json.load(answer)
        return document

    def stop(self) -> int:
        """SIGTERM: it commits, checkpoints and ends."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def _is_ready(self) -> bool:
        try:
            with _open(f"{self.url}/ready"):
                return True
        except (urllib.error.URLError, OSError):
            return False


def _open(url: str) -> Any:
    # No proxy: the service runs on this machine, whatever http_proxy says.
    return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=10)


def _port() -> int:
    for port in (PORT, 0):
        try:
            with socket.create_server(("127.0.0.1", port)) as held:
                return int(held.getsockname()[1])
        except OSError:
            continue
    raise OlstreamError("no free port for the status page on 127.0.0.1")
