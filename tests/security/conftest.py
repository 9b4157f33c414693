"""The broker of these tests, and what each of them starts from. It needs Java: see tests/kafka/conftest.py."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kafka.broker import BrokerUnavailable
from tests.kafka.service import Service, ServiceFactory
from tests.kafka.topics import Topics
from tests.security.certificates import have_openssl
from tests.security.secure import SecureKafka

_without_broker: list[str] = []  # why tests here were skipped, for the summary


def _started() -> SecureKafka:
    if not have_openssl():
        raise BrokerUnavailable("openssl is not installed, which makes the certificates")
    return SecureKafka()


@pytest.fixture(scope="session")
def secure() -> Iterator[SecureKafka]:
    try:
        kafka = _started()
    except BrokerUnavailable as error:
        missing = f"no real Kafka broker with TLS: {error}"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(missing, pytrace=False)
        _without_broker.append(missing)
        pytest.skip(missing)
    with kafka:
        yield kafka


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for reason in _without_broker[:1]:
        terminalreporter.write_sep("=", "TLS, logins and permissions were NOT tested", red=True, bold=True)
        terminalreporter.write_line(f"tests/security was skipped in part: {reason}", red=True, bold=True)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A prefix that no other test and no other run uses, for topics, groups and users."""
    return f"{re.sub(r'[^a-z0-9]+', '-', request.node.name.lower())[:40].strip('-')}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def service(secure: SecureKafka, name: str, tmp_path: Path) -> Iterator[ServiceFactory]:
    """Makes services whose topics are there; nothing is permitted to anybody yet."""
    made: list[Service] = []

    def make(**settings: object) -> Service:
        service = Service(f"{name}-{len(made)}", Topics(secure.bootstrap), tmp_path / str(len(made)), settings)
        made.append(service)
        return service.make_topics()

    yield make
    for each in made:
        each.end()
