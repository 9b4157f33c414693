"""Where the real broker for these tests comes from, and what each test starts from.

In this order: OLSTREAM_TEST_BOOTSTRAP; Java and Maven (broker.py); a container where a Docker
engine answers. With none of them the guarantees are not tested: a failure where CI=true,
a loud skip elsewhere.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.kafka.broker import BrokerUnavailable, Kafka
from tests.kafka.service import Service, ServiceFactory
from tests.kafka.topics import Topics

BOOTSTRAP_VARIABLE = "OLSTREAM_TEST_BOOTSTRAP"
_without_broker: list[str] = []  # why the tests here were skipped, for the summary


def _docker_answers() -> bool:
    """One quick ping, before anything slow is tried: most machines without an engine still have the client."""
    import docker.errors  # type: ignore[import-untyped]

    try:
        client = docker.from_env(timeout=3)
    except docker.errors.DockerException:
        return False
    try:
        return bool(client.ping())
    except (docker.errors.DockerException, OSError):
        return False
    finally:
        client.close()


def _container(stack: ExitStack) -> str:
    from testcontainers.community.kafka import KafkaContainer

    container = KafkaContainer().with_kraft()
    container.with_env("KAFKA_AUTO_CREATE_TOPICS_ENABLE", "false")
    container.with_env("KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR", "1")
    container.with_env("KAFKA_TRANSACTION_STATE_LOG_MIN_ISR", "1")
    stack.enter_context(container)
    return str(container.get_bootstrap_server())


def _start(stack: ExitStack) -> str:
    given = os.environ.get(BOOTSTRAP_VARIABLE)
    if given:
        return given
    try:
        return stack.enter_context(Kafka()).bootstrap
    except BrokerUnavailable as error:
        missing = str(error)
    if _docker_answers():
        return _container(stack)
    raise BrokerUnavailable(f"{missing}; no Docker engine answers either; {BOOTSTRAP_VARIABLE} is not set")


@pytest.fixture(scope="session")
def kafka() -> Iterator[str]:
    """The address of a real broker."""
    with ExitStack() as stack:
        try:
            bootstrap, missing = _start(stack), ""
        except BrokerUnavailable as error:
            bootstrap, missing = "", f"no real Kafka broker: {error}"
        if missing and os.environ.get("CI", "").lower() == "true":
            pytest.fail(missing, pytrace=False)
        if missing:
            _without_broker.append(missing)
            pytest.skip(missing)
        yield bootstrap


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for reason in _without_broker[:1]:
        terminalreporter.write_sep("=", "the guarantees were NOT tested", red=True, bold=True)
        terminalreporter.write_line(f"tests/kafka was skipped: {reason}", red=True, bold=True)


@pytest.fixture(scope="session")
def topics(kafka: str) -> Topics:
    return Topics(kafka)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A prefix that no other test and no other run uses, for topics and groups."""
    return f"{re.sub(r'[^a-z0-9]+', '-', request.node.name.lower())[:40].strip('-')}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def service(kafka: str, topics: Topics, name: str, tmp_path: Path) -> Iterator[ServiceFactory]:
    """Makes services with topics, group and directory of their own; ends their workers with the test."""
    made: list[Service] = []

    def make(**settings: object) -> Service:
        service = Service(f"{name}-{len(made)}", topics, tmp_path / str(len(made)), settings)
        made.append(service)
        return service

    yield make
    for each in made:
        each.end()
