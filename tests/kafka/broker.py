"""A real Apache Kafka for tests: KRaft nodes on free loopback ports, without containers.

    with Kafka(nodes=1) as kafka:
        kafka.bootstrap                      "127.0.0.1:40123"
        kafka.kill(1); kafka.start(1)        SIGKILL, and up again with the same port and data

    python -m tests.kafka.broker start [--nodes 3]             until Ctrl-C; prints OLSTREAM_TEST_BOOTSTRAP=...
    python -m tests.kafka.broker exec COMMAND ...              a broker around one command, `{bootstrap}` filled in

Needs Java 17 or newer, and Maven the first time (43 MB of jars into the user's cache).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

POM = Path(__file__).with_name("pom.xml")
UP_TIMEOUT_S = 60.0
DOWN_TIMEOUT_S = 30.0

# What differs from a broker in production, and why a test wants it so.
FOR_TESTS = {
    "auto.create.topics.enable": "false",  # a misspelt topic must be an error
    "group.initial.rebalance.delay.ms": "0",  # nobody else is about to join
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",  # KIP-848 rebalances take a few of these
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.session.timeout.ms": "6000",  # KIP-848 members cannot ask for one; 45 s are long to wait for
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",  # 10 s more would hide nothing
    "broker.session.timeout.ms": "3000",  # so long a killed node cannot come back under its number
    "broker.heartbeat.interval.ms": "500",
    "offsets.topic.num.partitions": "3",  # 50 each would only slow the start
    "transaction.state.log.num.partitions": "3",
    "group.coordinator.append.linger.ms": "5",
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "1000",
    "log.cleaner.backoff.ms": "500",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    "listener.name.guarded.scram-sha-256.sasl.jaas.config": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    ),
    "listener.name.guarded.connections.max.reauth.ms": "3000",  # who may no longer log in is soon out
}


class BrokerUnavailable(Exception):
    """No broker can be started here; the sentence says what is missing."""


def kafka_version() -> str:
    found = re.search(r"<kafka\.version>(.+?)</kafka\.version>", POM.read_text())
    assert found is not None
    return found[1]


def jars() -> Path:
    """The directory of the broker's jars, filled by Maven the first time."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    target = cache / "olstream-kafka" / kafka_version()
    if target.is_dir():
        return target
    if shutil.which("mvn") is None:
        raise BrokerUnavailable("Maven (mvn) is not installed, and the broker's jars are not cached yet")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as fetched:
        arguments = ["-q", "-B", "-f", str(POM), f"-DoutputDirectory={fetched}/jars", "-DincludeScope=runtime"]
        done = subprocess.run(["mvn", *arguments, "dependency:copy-dependencies"], capture_output=True, text=True)
        if done.returncode != 0:
            raise BrokerUnavailable(f"Maven could not fetch the broker's jars: {(done.stdout + done.stderr)[-500:]}")
        try:
            os.rename(f"{fetched}/jars", target)  # whole or not at all
        except OSError:
            assert target.is_dir()  # somebody else was first
    return target


def java() -> str:
    """The `java` to use; raises where there is none, or one too old for this Kafka."""
    home = os.environ.get("JAVA_HOME")
    command = shutil.which(str(Path(home, "bin", "java")) if home else "java")
    if command is None:
        raise BrokerUnavailable("Java is not installed (17 or newer is needed)")
    banner = subprocess.run([command, "-version"], capture_output=True, text=True).stderr
    found = re.search(r'version "(\d+)', banner)
    if found is None or int(found[1]) < 17:
        raise BrokerUnavailable(f"Java 17 or newer is needed, found: {banner.splitlines()[:1]}")
    return command


class Kafka:
    """A cluster of nodes numbered from 1, each broker and controller, in a directory of its own."""

    java_options: tuple[str, ...] = ("-Xmx512m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")

    def __init__(self, nodes: int = 1, settings: Mapping[str, str] | None = None) -> None:
        self._java, self._jars = java(), jars()
        self.directory = Path(tempfile.mkdtemp(prefix="olstream-kafka-"))
        self.nodes = range(1, nodes + 1)
        ports = iter(_free_ports(5 * nodes))
        self._port, self._controller_port, self._proxied_port, self._proxy_port, self._guarded_port = (
            {n: next(ports) for n in self.nodes} for _ in range(5)
        )
        self._process: dict[int, subprocess.Popen[bytes]] = {}
        self._format(dict(settings or {}))

    @property
    def bootstrap(self) -> str:
        return _addresses(self._port)

    @property
    def guarded(self) -> str:
        """The same cluster for clients that log in by SASL_PLAINTEXT with SCRAM-SHA-256."""
        return _addresses(self._guarded_port)

    def proxied(self, node: int = 1) -> tuple[int, int]:
        """Where the proxied listener sends its clients, which is for a proxy to serve, and where the node is."""
        return self._proxy_port[node], self._proxied_port[node]

    def start(self, node: int | None = None) -> Self:
        """Start one node, or all, and wait until the cluster counts them in."""
        for n in self._which(node):
            self._process[n] = self._run(n, "kafka.Kafka", str(self._properties(n)))
        self._wait_until_up()
        return self

    def start_what_is_down(self) -> None:
        self.resume()
        for n in self.nodes:
            if n not in self._process or self._process[n].poll() is not None:
                self.start(n)

    def stop(self, node: int | None = None) -> None:
        self._end(node, signal.SIGTERM)

    def kill(self, node: int | None = None) -> None:
        self._end(node, signal.SIGKILL)

    def pause(self, node: int | None = None) -> None:
        self._signal(node, signal.SIGSTOP)

    def resume(self, node: int | None = None) -> None:
        self._signal(node, signal.SIGCONT)

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.remove()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.remove()

    def _which(self, node: int | None) -> list[int]:
        return list(self.nodes) if node is None else [node]

    def _properties(self, node: int) -> Path:
        return self.directory / f"{node}.properties"

    def _log(self, node: int) -> Path:
        return self.directory / f"{node}.log"

    def _format(self, settings: dict[str, str]) -> None:
        cluster = uuid.uuid4().hex[:22]
        for n in self.nodes:
            lines = self._settings_of(n) | FOR_TESTS | settings
            self._properties(n).write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
            storage = ("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self._properties(n)))
            if self._run(n, *storage).wait() != 0:
                raise BrokerUnavailable(f"the storage of node {n} could not be made: {self._tail(n)}")

    def _settings_of(self, node: int) -> dict[str, str]:
        copies = min(len(self.nodes), 3)
        clients = {"PLAINTEXT": self._port[node], "GUARDED": self._guarded_port[node]}
        proxied, controller = {"PROXIED": self._proxied_port[node]}, {"CONTROLLER": self._controller_port[node]}
        return {
            "process.roles": "broker,controller",
            "node.id": str(node),
            "listeners": _listeners(clients | proxied | controller),
            "advertised.listeners": _listeners(clients | {"PROXIED": self._proxy_port[node]}),
            "listener.security.protocol.map": (
                "PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT,GUARDED:SASL_PLAINTEXT"
            ),
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": ",".join(f"{n}@127.0.0.1:{p}" for n, p in self._controller_port.items()),
            "log.dirs": str(self.directory / f"data-{node}"),
            "default.replication.factor": str(copies),
            "offsets.topic.replication.factor": str(copies),
            "transaction.state.log.replication.factor": str(copies),
            "transaction.state.log.min.isr": str(max(1, copies - 1)),
        }

    def _run(self, node: int, *arguments: str) -> subprocess.Popen[bytes]:
        # A session of its own: Ctrl-C in the terminal must end the tests first, then the broker.
        with self._log(node).open("ab") as log:
            return subprocess.Popen(
                [*dies_with_us(), self._java, *self.java_options, "-cp", f"{self._jars}/*", *arguments],
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _wait_until_up(self) -> None:
        wanted = {n for n, process in self._process.items() if process.poll() is None}
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        deadline = time.monotonic() + UP_TIMEOUT_S
        while time.monotonic() < deadline:
            gone = [n for n in wanted if self._process[n].poll() is not None]
            if gone:
                raise BrokerUnavailable(f"node {gone[0]} ended while starting: {self._tail(gone[0])}")
            try:
                if wanted <= set(admin.list_topics(timeout=1).brokers):
                    return
            except KafkaException:
                pass
            time.sleep(0.05)
        raise BrokerUnavailable(f"the broker is not up after {UP_TIMEOUT_S:.0f} s: {self._tail(min(wanted))}")

    def _tail(self, node: int) -> str:
        return self._log(node).read_text(errors="replace")[-2000:]

    def _signal(self, node: int | None, what: signal.Signals) -> None:
        for n in self._which(node):
            process = self._process.get(n)
            if process is not None and process.poll() is None:
                process.send_signal(what)

    def _end(self, node: int | None, how: signal.Signals) -> None:
        self._signal(node, signal.SIGCONT)  # a paused process takes no SIGTERM
        self._signal(node, how)
        for n in self._which(node):
            process = self._process.pop(n, None)
            if process is None:
                continue
            try:
                process.wait(DOWN_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def dies_with_us() -> list[str]:
    """The head of a command whose process must not outlive the tests, even where they are killed."""
    setpriv = shutil.which("setpriv")  # Linux; elsewhere a killed test run leaves its broker behind
    return [setpriv, "--pdeathsig", "KILL"] if setpriv else []


def _addresses(ports: Mapping[int, int]) -> str:
    return ",".join(f"127.0.0.1:{port}" for port in ports.values())


def _listeners(ports: Mapping[str, int]) -> str:
    return ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())


def _free_ports(n: int) -> list[int]:
    """Ports nobody listens on; all held at once, so that they differ."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kafka.broker", description="A Kafka on this machine.")
    parser.add_argument("--nodes", type=int, default=1)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("start", help="run until Ctrl-C")
    around = verbs.add_parser("exec", help="run one command; {bootstrap} in it becomes the address")
    around.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `with` cleans up
    try:
        with Kafka(arguments.nodes) as kafka:
            os.environ["OLSTREAM_TEST_BOOTSTRAP"] = kafka.bootstrap
            if arguments.verb == "exec":
                filled = [word.replace("{bootstrap}", kafka.bootstrap) for word in arguments.command]
                return subprocess.run(filled).returncode
            print(f"OLSTREAM_TEST_BOOTSTRAP={kafka.bootstrap}", flush=True)
            stop.wait()
    except BrokerUnavailable as error:
        print(f"no broker: {error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
