"""A service under test: its configuration, topics and directory, and `olstream run` as a real process."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from prometheus_client.parser import text_string_to_metric_families

from tests.kafka.broker import dies_with_us
from tests.kafka.topics import Topics, until

START_S = 90.0  # a first start compiles the kernels, on a machine that may be busy


class ServiceFactory(Protocol):
    def __call__(self, **settings: object) -> Service: ...


class Worker:
    """One `olstream run`."""

    def __init__(
        self, config: Path, log: Path, port: int, environment: Mapping[str, str], wrapper: Sequence[str] = ()
    ) -> None:
        self.log, self._port = log, port
        with log.open("ab") as out:
            command = [*dies_with_us(), *wrapper, sys.executable, "-m", "olstream", "run", str(config)]
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env={**os.environ, **environment}
            )

    def until_ready(self) -> Worker:
        until(lambda: self.status("/ready") == 200 or not self.alive, f"ready; {self.log}", START_S)
        assert self.alive, f"ended with {self._process.returncode}: {self.said()[-3000:]}"
        return self

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def send(self, what: signal.Signals) -> None:
        self._process.send_signal(what)

    def wait(self, deadline_s: float) -> int:
        """The exit code; an assertion fails where it still runs at the deadline."""
        try:
            return self._process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {deadline_s:.0f} s: {self.said()[-3000:]}") from None

    def stop(self) -> None:
        self.send(signal.SIGTERM)
        code = self.wait(10)
        assert code == 0, f"exit {code}: {self.said()[-3000:]}"

    def said(self) -> str:
        """What it and its forerunners with the same log wrote."""
        return self.log.read_text(errors="replace")

    def status(self, path: str) -> int | None:
        """The HTTP status of a page; None where nobody answers."""
        try:
            with self._open(path) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return None

    def page(self, path: str) -> str:
        """What a page says, whatever its HTTP status; nothing where nobody answers."""
        try:
            with self._open(path) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            return error.read().decode()
        except OSError:
            return ""

    def metrics(self) -> dict[str, float]:
        """Every sample of /metrics, by its name with its labels in order; empty while nobody answers."""
        try:
            with self._open("/metrics") as answer:
                page: str = answer.read().decode()
        except OSError:
            return {}
        samples: dict[str, float] = {}
        for family in text_string_to_metric_families(page):
            for sample in family.samples:
                labels = ",".join(f'{key}="{value}"' for key, value in sorted(sample.labels.items()))
                samples[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
        return samples

    def counted(self, metric: str, **labels: str) -> float:
        """The sum of a metric's samples that have these labels; 0 while there are none."""
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        samples = self.metrics().items()
        return sum(n for name, n in samples if name.split("{")[0] == metric and all(w in name for w in wanted))

    def _open(self, path: str) -> Any:
        no_proxy = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        return no_proxy.open(f"http://127.0.0.1:{self._port}{path}", timeout=5)


class Service:
    """Topics, group and directory of one service; `settings` go over the defaults below, two levels deep."""

    def __init__(self, name: str, topics: Topics, directory: Path, settings: Mapping[str, object]) -> None:
        self.topics, self.directory, self.group = topics, directory, name
        self.input, self.predictions, self.dead_letters = f"{name}-in", f"{name}-out", f"{name}-dead"
        self.state = directory / "state"
        self.environment: dict[str, str] = {}  # of the workers started from now on, on top of our own
        self.wrapper: list[str] = []  # a command that runs them
        self._port = _free_port()
        self._workers: list[Worker] = []
        self.config: dict[str, Any] = {
            "kafka": {"bootstrap.servers": topics.bootstrap},
            "kafka_wait": "30s",
            "group": self.group,
            "input": {"topics": [self.input]},
            "output": {"predictions": self.predictions, "dead_letters": self.dead_letters},
            "commit_interval": "50ms",
            "learners": {"model": {"algorithm": "arow", "task": "binary"}},
            "checkpoint": {"path": str(self.state), "interval": "1s"},
            "http": {"port": self._port},
        }
        self.configure(**settings)
        directory.mkdir(parents=True)

    def configure(self, **settings: object) -> None:
        for key, value in settings.items():
            own = self.config.get(key)
            merges = isinstance(value, dict) and isinstance(own, dict) and key != "learners"
            self.config[key] = own | value if merges else value  # type: ignore[operator]

    def make_topics(self, partitions: int = 1) -> Service:
        if not self.topics.exists(self.input):
            self.topics.create(self.input, partitions)
        for topic in (self.predictions, self.dead_letters):
            self.topics.create(topic)
        return self

    def reads(self, topic: str) -> Service:
        """Take the input from another service's topic."""
        self.input = topic
        self.config["input"] = {**self.config["input"], "topics": [topic]}
        return self

    def start(self, **settings: object) -> Worker:
        self.configure(**settings)
        return self.start_from(self.write())

    def write(self) -> Path:
        """The configuration as a file."""
        path = self.directory / "config.yaml"
        path.write_text(json.dumps(self.config))  # JSON is YAML
        return path

    def start_from(self, path: Path) -> Worker:
        worker = Worker(path, self.directory / "log", self.config["http"]["port"], self.environment, self.wrapper)
        self._workers.append(worker)
        return worker

    def twin(self, name: str, **settings: object) -> Service:
        """The same group and topics under another directory for its files and another port."""
        other = Service(self.group, self.topics, self.directory / name, {})
        other.input, port = self.input, other.config["http"]
        other.config = json.loads(json.dumps(self.config)) | {"http": port}
        other.configure(**settings)
        return other

    def run_to(self, offset: int) -> None:
        """One undisturbed life: start, work until `offset` is committed, stop in good order."""
        worker = self.start().until_ready()
        self.until_committed(offset, worker)
        worker.stop()

    def verify(self, *options: str) -> None:
        """`olstream state verify` finds that the models are what the journal says."""
        done = olstream("state", "verify", str(self.directory / "config.yaml"), *options)
        assert done.returncode == 0, f"exit {done.returncode}: {done.stderr}"

    def roll_back(self, to: object) -> str:
        """`olstream state rollback`, once the session of the last worker has ended; what it says."""
        said = ""

        def went() -> bool:
            nonlocal said
            done = olstream("state", "rollback", str(self.directory / "config.yaml"), "--to", str(to))
            assert done.returncode in (0, 5), f"exit {done.returncode}: {done.stdout}{done.stderr}"
            assert done.returncode == 0 or "until its session ends" in done.stderr, done.stderr
            said = done.stdout
            return done.returncode == 0

        until(went, "the group is empty, and goes back", START_S)
        return said

    def committed(self) -> int:
        """The next offset of partition 0 of the first input topic, 0 before the first commit."""
        return self.topics.committed(self.group, self.input).get(0, 0)

    def until_committed(self, offset: int, worker: Worker) -> None:
        until(lambda: self.committed() >= offset or not worker.alive, f"offset {offset} of {self.input}", START_S)
        assert worker.alive or self.committed() >= offset, f"it ended: {worker.said()[-3000:]}"

    def inspect(self, *options: str) -> dict[str, Any]:
        return inspect(self.state, *options)

    def predicted(self) -> list[dict[str, Any]]:
        """The predictions that a read_committed reader sees."""
        return [json.loads(value or b"null") for value in self.topics.values(self.predictions)]

    def end(self) -> None:
        for worker in self._workers:
            if worker.alive:
                worker.kill()


def inspect(state: Path, *options: str) -> dict[str, Any]:
    """What `olstream inspect --json` says of a state directory."""
    done = olstream("inspect", str(state), "--json", *options)
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr}"
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def olstream(*arguments: str, deadline_s: float = START_S) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself."""
    command = [sys.executable, "-m", "olstream", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=deadline_s, env=os.environ)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as held:
        return int(held.getsockname()[1])
