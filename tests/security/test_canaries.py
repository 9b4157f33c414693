"""Secrets that can be told apart from anything else, put wherever secrets go: they come out nowhere."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from olstream.__main__ import main
from tests.kafka.events import events
from tests.kafka.service import ServiceFactory, olstream
from tests.security.certificates import KEY_PASSWORD
from tests.security.secure import PASSWORD, SecureKafka
from tests.security.test_refusals import needed
from tests.security.tokens import SECRET

N = 60
TOKEN = "canary-of-the-page-91ab"
IN_URL = "canary-in-an-address-6e07"
JAAS = "canary-of-a-jaas-line-b2d4"
ALL = (PASSWORD, KEY_PASSWORD, SECRET, TOKEN, IN_URL, JAAS)


def found(said: str | bytes) -> list[str]:
    """Which of them stand there, in clear or in base64."""
    data = said if isinstance(said, bytes) else said.encode()
    return [c for c in ALL if c.encode() in data or base64.b64encode(c.encode())[:-4] in data]


@pytest.mark.slow
@pytest.mark.parametrize("listener", ["secure", "tls", "tokens"])
def test_a_service_at_work_tells_no_secret_however_much_it_logs(
    secure: SecureKafka,
    service: ServiceFactory,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    listener: str,
) -> None:
    user = "CN=olstream" if listener == "tls" else name
    if listener == "secure":
        secure.know(name)
    client = secure.client(name, listener) | {"debug": "all", "log_level": "7"}
    if listener == "tokens":
        (tmp_path / "secret").write_text(f"{SECRET}\n")
        client["sasl.oauthbearer.client.secret"] = f"${{file:{tmp_path}/secret}}"
    talking = service(kafka=client, http={"token": TOKEN}, log={"level": "debug"})
    talking.topics.create(f"{talking.group}-journal")
    secure.grant(user, *needed(talking).values())
    talking.topics.produce(talking.input, [*events(N), b"no message"])

    worker = talking.start()
    talking.until_committed(N, worker)
    pages = [_page(talking.config["http"]["port"], path) for path in ("/status.json", "/", "/metrics")]
    monkeypatch.setenv("OLSTREAM_HTTP_TOKEN", TOKEN)
    url = f"http://me:{IN_URL}@127.0.0.1:{talking.config['http']['port']}"
    plain = url.replace(f"me:{IN_URL}@", "")
    commands = [olstream("status", plain), olstream("status", plain, "--json"), olstream("--debug", "status", url)]
    commands.append(olstream("report", plain, "--out", "-"))
    worker.stop()
    config = str(talking.directory / "config.yaml")
    commands += [olstream("check", config), olstream("--debug", "state", "list", config)]
    commands.append(olstream("inspect", str(talking.state)))

    assert worker.said().count("\n") > 100  # it said a lot
    assert found(worker.said()) == []
    assert all(len(page) > 100 and found(page) == [] for page in pages)
    assert [done.returncode for done in commands if done.args[3:5] != ["--debug", "status"]] == [0] * 6
    assert found("".join(done.stdout + done.stderr for done in commands)) == []
    assert [path for path in talking.state.rglob("*") if path.is_file() and found(path.read_bytes())] == []
    for topic in (talking.predictions, talking.dead_letters, f"{talking.group}-journal"):
        for message in talking.topics.read(topic):
            assert found(b"%r %r %r" % (message.key(), message.value(), message.headers())) == []
    assert not [token for token in secure.tokens.given if token in worker.said()]


def _page(port: int, path: str) -> bytes:
    import urllib.request

    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
        return bytes(answer.read())


MISTAKES = {
    "a password that is a list": f"kafka: {{sasl.password: [{PASSWORD}]}}",
    "a password under a password": f"kafka: {{sasl: {{password: {PASSWORD}}}}}",
    "a JAAS line": f"kafka: {{sasl.jaas.config: 'module required password=\"{JAAS}\";'}}",
    "a password for a number": f"kafka: {{sasl.password: {PASSWORD}, socket.timeout.ms: {PASSWORD}}}",
    "a password for a choice": f"kafka: {{sasl.password: {PASSWORD}}}\nguarantee: {PASSWORD}",
    "a token in place of the section": "http: ${PAGE_TOKEN}",
    "a token that is no text": f"http: {{token: [{TOKEN}]}}",
    "a token for a port": f"http: {{token: {TOKEN}, port: {TOKEN}}}",
    "a key of a file that is no key": "group: '${file:SECRET}/x'",
    "a topic": "input: {topics: ['${file:SECRET} x']}",
    "an unknown key": f"pasword: {PASSWORD}",
    "an address with a user": f"kafka: {{bootstrap.servers: 'http://me:{IN_URL}@a:1', socket.timeout.ms: x}}",
    "no YAML": f"kafka: {{sasl.password: {PASSWORD}",
    "a property of librdkafka": f"kafka: {{ssl.key.password: {PASSWORD}, ssl.key.pem: {PASSWORD}}}",
}


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_is_told_without_the_secret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, what: str, debug: bool
) -> None:
    monkeypatch.setenv("PAGE_TOKEN", TOKEN)
    (tmp_path / "secret").write_text(PASSWORD)
    config = tmp_path / "config.yaml"
    text = MISTAKES[what].replace("SECRET", str(tmp_path / "secret"))
    needs = "" if "kafka:" in text else "kafka: {bootstrap.servers: '127.0.0.1:1'}\n"
    topics = "" if "input:" in text else "input: {topics: [events]}\n"
    config.write_text(f"learners: {{a: }}\n{needs}{topics}{text}\n")

    code = main([*(["--debug"] if debug else []), "check", str(config)])

    said = capsys.readouterr()
    assert code in (2, 3), said.out + said.err
    assert found(said.out + said.err) == []
    assert debug or "Traceback" not in said.err


def test_what_a_configuration_says_of_itself_hides_them(tmp_path: Path) -> None:
    from olstream.config import parse
    from olstream.settings import redacted as for_people
    from olstream.status import redacted as for_pages

    text = f"""
        learners: {{a: }}
        kafka:
          sasl.password: {PASSWORD}
          ssl.key.pem: {PASSWORD}
          ssl.key.password: {KEY_PASSWORD}
          sasl.oauthbearer.config: secret={SECRET}
          sasl.oauthbearer.token.endpoint.url: https://me:{IN_URL}@issuer/token
          sasl.oauthbearer.assertion.private.key.passphrase: {KEY_PASSWORD}
        http: {{token: {TOKEN}}}
    """
    config = parse(text, "config.yaml", {})

    assert found(json.dumps(for_people(config))) == []
    assert found(json.dumps(for_pages(config.model_dump(mode="json", by_alias=True)))) == []
