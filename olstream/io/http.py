"""The HTTP side: /metrics, /live, /ready, /status.json and the status page. It only reads.

A thread for each connection, few at a time: a new one pushes out the oldest, and a connection
that is slow is cut off, so nobody can keep the probes waiting.
"""

from __future__ import annotations

import base64
import gzip
import hmac
import logging
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer
from typing import Any, Final

import orjson
from prometheus_client.exposition import choose_encoder, gzip_accepted

from olstream.config import Config
from olstream.errors import ConfigError
from olstream.health import Health
from olstream.metrics import Metrics
from olstream.page import service
from olstream.status import describe

CONNECTIONS_MAX: Final = 16
CONNECTION_S: Final = 10.0  # for a whole connection; Prometheus itself gives up after 10 s
WATCH_S: Final = 0.2  # how often slow connections, and the order to stop, are looked for
ASK_S: Final = 0.3  # an idle loop comes round every 0.2 s
GZIP_MIN: Final = 1024
PROBES: Final = ("/live", "/ready")  # an orchestrator's probe has no token
TEXT: Final = "text/plain; charset=utf-8"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    content_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


class Pages:
    """What each path answers."""

    def __init__(self, metrics: Metrics, health: Health, token: str | None) -> None:
        self._metrics = metrics
        self._token = token
        self._pages: dict[str, Callable[[str], Answer]] = {
            "/metrics": self._scrape,
            "/live": lambda _accept: _probe(health.live()),
            "/ready": lambda _accept: _probe(health.ready()),
            "/status.json": self._status,
            "/": self._index,
        }

    def answer(self, path: str, accept: str, authorization: str) -> Answer:
        page = self._pages.get(path.partition("?")[0])
        if page is None:
            return Answer(404, TEXT, f"There are only {', '.join(self._pages)} here.\n".encode())
        if path.partition("?")[0] not in PROBES and not self._may(authorization):
            wanted = (("WWW-Authenticate", "Bearer"), ("WWW-Authenticate", 'Basic realm="olstream"'))
            return Answer(
                401, TEXT, b"This needs http.token: as bearer token, or as the password of any user.\n", wanted
            )
        return page(accept)

    def _may(self, authorization: str) -> bool:
        if self._token is None:
            return True
        scheme, _, said = authorization.partition(" ")
        given = said.strip().encode("latin-1", "replace")  # http.server reads header bytes as Latin-1
        if scheme.lower() == "basic":  # which a browser can send, and asks its user for
            try:
                given = base64.b64decode(given, validate=True).partition(b":")[2]
            except ValueError:
                return False
        elif scheme.lower() != "bearer":
            return False
        return hmac.compare_digest(given, self._token.encode())

    def _scrape(self, accept: str) -> Answer:
        encode, content_type = choose_encoder(accept)
        self._metrics.board.ask(ASK_S)
        return Answer(200, content_type, encode(self._metrics.registry))

    def _status(self, _accept: str) -> Answer:
        self._metrics.board.ask(ASK_S)
        document = orjson.dumps(describe(self._metrics), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        return Answer(200, "application/json", document)

    def _index(self, _accept: str) -> Answer:
        self._metrics.board.ask(ASK_S)
        page = service.page(describe(self._metrics))
        headers = (("Content-Security-Policy", page.policy), ("Referrer-Policy", "no-referrer"))
        return Answer(200, "text/html; charset=utf-8", page.encode(), headers)


def _probe(verdict: tuple[bool, str]) -> Answer:
    good, sentence = verdict
    return Answer(200 if good else 503, TEXT, f"{sentence}\n".encode())


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = CONNECTION_S

    def do_GET(self) -> None:
        accept, authorization = self.headers.get("Accept", ""), self.headers.get("Authorization", "")
        try:
            answer = self.server.pages.answer(self.path, accept, authorization)
        except Exception:
            log.exception("could not answer %s", self.path[:100], extra={"every_s": 60.0})
            answer = Answer(500, TEXT, b"This page failed; the log says why.\n")
        self._send(answer)

    do_HEAD = do_GET

    def _refuse(self) -> None:
        self._send(Answer(405, TEXT, b"Everything here is for reading: GET or HEAD.\n", (("Allow", "GET, HEAD"),)))

    do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _refuse

    def _send(self, answer: Answer) -> None:
        headers = [("Content-Type", answer.content_type), ("Cache-Control", "no-store"), *answer.headers]
        body = answer.body
        if len(body) > GZIP_MIN and gzip_accepted(self.headers.get("Accept-Encoding", "")):
            body = gzip.compress(body, 1)
            headers.append(("Content-Encoding", "gzip"))
        self.send_response(answer.status)
        for name, value in [*headers, ("Content-Length", str(len(body))), ("X-Content-Type-Options", "nosniff")]:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def version_string(self) -> str:
        return "olstream"

    def log_message(self, format: str, *args: Any) -> None:
        """A scrape is no event."""


class _Server(TCPServer):
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], family: socket.AddressFamily, pages: Pages) -> None:
        self.address_family = family
        self.pages = pages
        self._open: dict[socket.socket, tuple[float, threading.Thread]] = {}  # oldest first
        self._open_lock = threading.Lock()
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = threading.Thread(target=self._serve, args=(request, client_address), name="http-client", daemon=True)
        with self._open_lock:
            pushed_out = next(iter(self._open)) if len(self._open) >= CONNECTIONS_MAX else None
            self._open[request] = time.monotonic(), thread
        if pushed_out is not None:
            _cut(pushed_out)
        thread.start()

    def _serve(self, request: Any, client_address: Any) -> None:
        with suppress(OSError):  # the client went away, or was cut off
            self.finish_request(request, client_address)
        self.shutdown_request(request)
        with self._open_lock:
            self._open.pop(request, None)

    def service_actions(self) -> None:
        self.cut_off(older_than_s=CONNECTION_S)

    def cut_off(self, older_than_s: float) -> list[threading.Thread]:
        """End connections of at least this age; the threads that served them."""
        before = time.monotonic() - older_than_s
        with self._open_lock:
            late = {request: thread for request, (since, thread) in self._open.items() if since <= before}
        for request in late:
            _cut(request)
        return list(late.values())


def _cut(request: socket.socket) -> None:
    with suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)


class HttpServer:
    """A server at work in its own thread."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        host, self.port = str(server.server_address[0]), int(server.server_address[1])
        self.url = f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"
        self._thread = threading.Thread(target=server.serve_forever, args=(WATCH_S,), name="http", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Returns when every thread of it is gone."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        for thread in self._server.cut_off(older_than_s=0.0):
            thread.join()


def serve(config: Config, metrics: Metrics, health: Health) -> HttpServer:
    """Start to answer at http.host and http.port; port 0 takes a free one."""
    host, port = config.http.host, config.http.port
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        server = _Server((str(address[0]), port), family, Pages(metrics, health, config.http.token))
    except OSError as error:
        why = error.strerror or error
        raise ConfigError(f"http: cannot listen at {host} port {port} ({why}): choose another http.port") from error
    return HttpServer(server)
