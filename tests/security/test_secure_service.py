"""The service over TLS with a login: every command works, and every record is learnt exactly once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kafka.events import events
from tests.kafka.service import ServiceFactory, olstream
from tests.security.secure import SecureKafka
from tests.security.test_refusals import needed

N = 600
LOGINS = {
    "SCRAM-SHA-256": ("secure", "SCRAM-SHA-256"),
    "SCRAM-SHA-512": ("secure", "SCRAM-SHA-512"),
    "a client's certificate": ("tls", ""),
    "signed tokens": ("tokens", ""),
}


@pytest.mark.slow
@pytest.mark.parametrize("login", LOGINS)
def test_each_record_is_learnt_exactly_once_with_no_more_rights_than_needed(
    secure: SecureKafka, service: ServiceFactory, name: str, tmp_path: Path, login: str
) -> None:
    listener, mechanism = LOGINS[login]
    user = "CN=olstream" if listener == "tls" else name
    if listener == "secure":
        secure.know(name)
    learning = service(kafka=secure.client(name, listener, mechanism))
    learning.topics.create(f"{learning.group}-journal")
    secure.grant(user, *needed(learning).values(), ("TOPIC", learning.input, ["WRITE"]))
    learning.write()
    config = str(learning.directory / "config.yaml")
    sent = tmp_path / "events.ndjson"
    sent.write_bytes(b"".join(line + b"\n" for line in events(N)))

    done = olstream("send", config, str(sent))
    assert done.returncode == 0, done.stderr
    checked = olstream("check", config)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    worker = learning.start(input={"batch_max": 20})
    learning.until_committed(N // 3, worker)
    worker.kill()
    learning.run_to(N)

    assert [p["offset"] for p in learning.predicted()] == list(range(N))
    assert learning.inspect()["learners"]["model"]["seen"] == N
    learning.verify()
    assert json.loads(sent.read_bytes().splitlines()[0])
