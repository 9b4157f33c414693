"""Who is not let in, or may not do something, says in one sentence what and where, ends with 3, and tells no secret."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kafka.events import events
from tests.kafka.service import Service, ServiceFactory, olstream
from tests.security.certificates import KEY_PASSWORD
from tests.security.secure import PASSWORD, Grant, SecureKafka
from tests.security.tokens import SECRET

START_S = 60.0  # the kernels may have to be compiled first
WRONG = "canary-of-a-wrong-one-4d2a"

Kafka = dict[str, str]


def needed(service: Service) -> dict[str, Grant]:
    """All that a worker needs, and no more."""
    return {
        "input": ("TOPIC", service.input, ["READ"]),
        "predictions": ("TOPIC", service.predictions, ["WRITE"]),
        "dead letters": ("TOPIC", service.dead_letters, ["WRITE"]),
        "journal": ("TOPIC", f"{service.group}-journal", ["READ", "WRITE"]),
        "group": ("GROUP", service.group, ["READ"]),
        "transactions": ("TRANSACTIONAL_ID", f"{service.group}-0", ["WRITE"]),
    }


def ended(service: Service) -> str:
    """The last sentence of a worker that gives up by itself."""
    worker = service.start()
    code = worker.wait(START_S)
    said = worker.said()
    assert code == 3, f"exit {code}: {said[-3000:]}"
    assert_discreet(said)
    last = said.strip().splitlines()[-1]
    assert last.startswith("olstream: ")
    return last


def checked(service: Service) -> str:
    done = olstream("check", str(service.directory / "config.yaml"))
    assert done.returncode == 3, done.stdout + done.stderr
    assert done.stderr == ""
    assert_discreet(done.stdout)
    return done.stdout


def assert_discreet(said: str) -> None:
    assert "Traceback" not in said
    assert [secret for secret in (PASSWORD, KEY_PASSWORD, SECRET, WRONG) if secret in said] == []


CREDENTIALS: dict[str, tuple[Callable[[SecureKafka], Kafka], str]] = {
    "wrong password": (lambda k: k.client("somebody") | {"sasl.password": WRONG}, "invalid credentials"),
    "unknown user": (lambda k: k.client(WRONG), "invalid credentials"),
    "a mechanism that the broker has not": (
        lambda k: k.client("somebody") | {"sasl.mechanism": "PLAIN"},
        "not enabled|[Uu]nsupported",
    ),
    "a broker's certificate that has run out": (lambda k: k.client("somebody", "expired"), "certificate has expired"),
    "an authority that has run out": (lambda k: k.client("somebody", "old"), "certificate has expired"),
    "an unknown authority": (
        lambda k: k.client("somebody") | {"ssl.ca.location": str(k.certificates.stranger)},
        "unable to get (local )?issuer certificate|self.signed certificate",
    ),
    "a name that the certificate does not bear": (lambda k: k.client("somebody", "other"), "mismatch|not valid for"),
    "a wrong secret for tokens": (
        lambda k: k.client("somebody", "tokens") | {"sasl.oauthbearer.client.secret": WRONG},
        "token",
    ),
}


# A worker of each kind takes 10 s; the others are left to `check`.
RUN = ("a broker's certificate that has run out", "a wrong secret for tokens")


@pytest.mark.parametrize("what", sorted(CREDENTIALS))
def test_check_says_who_is_not_believed(secure: SecureKafka, service: ServiceFactory, what: str) -> None:
    kafka, why = CREDENTIALS[what]
    refused = service(kafka=kafka(secure))
    refused.write()

    (line,) = (line for line in checked(refused).splitlines() if line.startswith("FAIL"))

    assert re.search(why, line), line
    assert "check the credentials and certificates under `kafka`" in line


@pytest.mark.slow
@pytest.mark.parametrize("what", RUN)
def test_who_is_not_believed_gives_up_after_ten_seconds(
    secure: SecureKafka, service: ServiceFactory, what: str
) -> None:
    kafka, why = CREDENTIALS[what]
    refused = service(kafka=kafka(secure), kafka_wait="5m")  # which is not waited for

    last = ended(refused)

    assert re.search(why, last), last
    assert "check the credentials and certificates under `kafka`" in last


# What is not granted, and what the worker and `check` say of it: {0} is the group.
NOT_GRANTED = {
    "input": ("{0}-in (READ)", "FAIL  input {0}-in: this user may not see it"),
    "predictions": ("{0}-out (WRITE)", "FAIL  predictions {0}-out: this user may not see it"),
    "dead letters": ("{0}-dead (WRITE)", "FAIL  dead letters {0}-dead: this user may not see it"),
    "journal": (
        "topic {0}-journal is missing, or hidden from this user",
        "FAIL  journal {0}-journal: this user may",
    ),
    "group": ("Group authorization failed.): grant READ on this group", "FAIL  group {0}: this user may not join it"),
    "transactions": ("grant WRITE on that transactional id", "transactional id {0}-0, which only `run` can find out"),
}


@pytest.mark.parametrize("what", NOT_GRANTED)
def test_what_is_not_granted_is_told_by_name(
    secure: SecureKafka, service: ServiceFactory, name: str, what: str
) -> None:
    limited = prepared(secure, service, name)
    secure.grant(name, *(grant for key, grant in needed(limited).items() if key != what))

    last, by_check = (sentence.format(limited.group) for sentence in NOT_GRANTED[what])

    assert last in ended(limited)
    done = olstream("check", str(limited.directory / "config.yaml"))
    assert by_check in done.stdout
    assert done.returncode == (0 if what == "transactions" else 3)


READ_ONLY = {
    "input": ("grant READ on topic {0}-in", "input {0}-in: this user may not read"),
    "predictions": ("grant WRITE on topic {0}-out", "predictions {0}-out: this user may not write"),
    "journal": ("grant READ and WRITE on topic {0}-journal", "journal {0}-journal: this user may not write"),
}


@pytest.mark.parametrize("what", READ_ONLY)
def test_what_may_be_seen_and_not_used_is_told_by_name(
    secure: SecureKafka, service: ServiceFactory, name: str, what: str
) -> None:
    guarantee = "at_least_once" if what == "predictions" else "exactly_once"
    limited = prepared(secure, service, name, guarantee=guarantee)
    resource, topic, _ = needed(limited)[what]
    secure.grant(name, *(needed(limited) | {what: (resource, topic, ["DESCRIBE"])}).values())

    last, by_check = (sentence.format(limited.group) for sentence in READ_ONLY[what])

    assert last in ended(limited)
    assert f"FAIL  {by_check}" in checked(limited)


def prepared(secure: SecureKafka, service: ServiceFactory, name: str, **settings: object) -> Service:
    """A service of a user of that name, with records to learn and a journal."""
    secure.know(name)
    limited = service(kafka=secure.client(name), kafka_wait="3s", **settings)
    limited.topics.create(f"{limited.group}-journal")
    limited.topics.produce(limited.input, events(20))
    return limited


def test_send_says_the_same(secure: SecureKafka, service: ServiceFactory, tmp_path: Path) -> None:
    refused = service(kafka=secure.client("somebody", "expired"))
    (tmp_path / "events.ndjson").write_text("{}\n")

    done = olstream("send", str(refused.write()), str(tmp_path / "events.ndjson"))

    assert done.returncode == 3
    assert len(done.stderr.strip().splitlines()) == 1
    assert "certificate has expired" in done.stderr
