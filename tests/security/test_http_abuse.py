"""Requests that nobody in good faith sends: each gets one short answer, and no page without its token."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator

import pytest

from olstream.config import Config
from olstream.io import http as served
from tests.io.test_http import Service

TOKEN = "canary-of-the-page-91ab"
Start = Callable[..., Service]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    monkeypatch.setattr(served, "ASK_S", 0.0)  # no loop is there to answer
    started: list[Service] = []

    def start_one(**settings: object) -> Service:
        started.append(Service(**settings))
        return started[-1]

    yield start_one
    for service in started:
        service.server.stop()


def sent(service: Service, request: bytes) -> bytes:
    """All that comes back until the server hangs up."""
    answer = b""
    with socket.create_connection(("127.0.0.1", service.server.port), timeout=10) as connection:
        try:
            connection.sendall(request)
            while part := connection.recv(65536):
                answer += part
        except OSError:  # it hung up on us in mid sentence
            pass
    return answer


def test_nobody_else_is_let_in_unless_told() -> None:
    assert Config.model_validate({"learners": {"a": {}}}).http.host == "127.0.0.1"


ABUSE = {
    "a line without end": (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", {b"414", b""}),
    "a header without end": (b"GET /live HTTP/1.1\r\nX: " + b"a" * 100_000 + b"\r\n\r\n", {b"431", b""}),
    "headers without end": (b"GET /live HTTP/1.1\r\n" + b"X: a\r\n" * 5000 + b"\r\n", {b"431", b""}),
    "no request": (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", {b""}),  # what is no HTTP gets no HTTP back
    "no version": (b"GET /live HTTP/9.9\r\n\r\n", {b""}),
    "no method that there is": (b"BREW / HTTP/1.1\r\n\r\n", {b"501"}),
    "an echo": (b"TRACE / HTTP/1.1\r\nAuthorization: Bearer canary\r\n\r\n", {b"501"}),
    "a tunnel": (b"CONNECT other:443 HTTP/1.1\r\n\r\n", {b"501"}),
    "an address elsewhere": (b"GET http://other/live HTTP/1.1\r\nHost: x\r\n\r\n", {b"404"}),
    "a second request behind the first": (
        b"GET /live HTTP/1.1\r\nContent-Length: 0\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n",
        {b"200", b"503"},
    ),
    "two lengths": (
        b"GET /live HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        {b"200", b"503"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", ABUSE)
def test_an_abuse_gets_one_short_answer(start: Start, what: str) -> None:
    request, codes = ABUSE[what]
    service = start(http={"token": TOKEN})

    answer = sent(service, request)

    found = re.findall(rb"^HTTP/1\.[01] (\d{3})", answer, re.MULTILINE)
    assert len(found) <= 1
    assert (found[0] if found else b"") in codes, answer[:200]
    assert len(answer) < 2000 and b"canary" not in answer and b"Traceback" not in answer
    assert service.status("/live") in (200, 503)  # it is still there


PATHS = (
    *(
        "//metrics",
        "/metrics/",
        "/./metrics",
        "/live/../metrics",
        "/%6detrics",
        "/METRICS",
        "/metrics%00",
        "/live?/metrics",
    ),
    *("/../../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/status.json#", "/status.json;x", "/live\\..\\metrics"),
    *("/?token=" + TOKEN, "/metrics?token=" + TOKEN, "/?", "/metrics?"),
)


@pytest.mark.parametrize("path", PATHS)
def test_no_spelling_of_a_path_goes_round_the_token(start: Start, path: str) -> None:
    service = start(http={"token": TOKEN})

    answer = sent(service, f"GET {path} HTTP/1.1\r\n\r\n".encode())

    code = answer.split()[1]
    assert code in (b"401", b"404") or (path.startswith("/live?") and code in (b"200", b"503"))
    assert b"olstream_" not in answer and b"root:" not in answer and TOKEN.encode() not in answer


@pytest.mark.parametrize(
    "given",
    [
        "",
        "Bearer",
        "Bearer ",
        f"Basic {TOKEN}",
        f"bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN}\x00",
        "Bearer é",
    ],
)
def test_nothing_but_the_whole_token_opens(start: Start, given: str) -> None:
    service = start(http={"token": TOKEN})

    answer = sent(service, b"GET /status.json HTTP/1.1\r\nAuthorization: " + given.encode() + b"\r\n\r\n")

    assert answer.split()[1] in (b"401", b"400")


def test_a_path_becomes_no_markup(start: Start) -> None:
    answer = sent(start(), b"GET /<script>alert(1)</script> HTTP/1.1\r\n\r\n")

    assert b"<script>" not in answer
    assert b"Content-Type: text/plain" in answer and b"nosniff" in answer
