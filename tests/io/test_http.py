"""The HTTP side as probes, Prometheus, people and slow clients meet it."""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import re
import socket
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from hashlib import sha256

import pytest

from olstream.config import Config
from olstream.errors import ConfigError
from olstream.health import Health
from olstream.io import http as served
from olstream.io.http import serve
from olstream.messages import Example
from olstream.metrics import Metrics
from olstream.model import Model


class Service:
    """A service without a loop, with its HTTP side on a free port."""

    def __init__(self, **settings: object) -> None:
        http_config = {"port": 0, **settings.pop("http", {})}  # type: ignore[dict-item]
        learners = {"fraud": {}, "next": {"algorithm": "pa1"}}
        self.config = Config.model_validate(
            {"learners": learners, "input": {"topics": ["events"]}, **settings, "http": http_config}
        )
        self.now_s = 1_796_032_800.0
        self.health = Health(live_within_s=30.0, monotonic=lambda: self.now_s, now=lambda: self.now_s)
        self.metrics = Metrics(self.config, self.health, now=lambda: self.now_s)
        self.server = serve(self.config, self.metrics, self.health)

    def get(self, path: str, method: str = "GET", **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=10)
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer, body

    def status(self, path: str, method: str = "GET", **headers: str) -> int:
        return self.get(path, method, **headers)[0].status

    def document(self) -> dict[str, object]:
        loaded: dict[str, object] = json.loads(self.get("/status.json")[1])
        return loaded


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "ASK_S", 0.0)  # no loop is there to answer


@pytest.fixture
def start() -> Iterator[Callable[..., Service]]:
    started: list[Service] = []

    def start_one(**settings: object) -> Service:
        started.append(Service(**settings))
        return started[-1]

    yield start_one
    for service in started:
        service.server.stop()


Start = Callable[..., Service]


# What the paths answer


def test_live_follows_the_loop(start: Start) -> None:
    service = start()
    alive, _ = service.get("/live")

    service.now_s += 31.0
    stuck, why = service.get("/live")

    assert (alive.status, stuck.status) == (200, 503)
    assert b"stuck" in why


def test_ready_says_why_not_and_then_yes(start: Start) -> None:
    service = start()
    starting, why = service.get("/ready")

    service.health.restored()
    service.health.assigned(3)
    ready, sentence = service.get("/ready")

    assert (starting.status, why) == (503, b"Not restored yet: starting.\n")
    assert (ready.status, sentence) == (200, b"Restored, 3 partitions assigned.\n")


def test_metrics_come_as_text_or_openmetrics_as_asked(start: Start) -> None:
    service = start()

    plain, page = service.get("/metrics")
    openmetrics, other = service.get("/metrics", Accept="application/openmetrics-text; version=1.0.0")

    assert plain.getheader("Content-Type", "").startswith("text/plain; version=0.0.4")
    assert b'olstream_messages_consumed_total{topic="events"} 0.0' in page
    assert openmetrics.getheader("Content-Type", "").startswith("application/openmetrics-text; version=1.0.0")
    assert other.endswith(b"# EOF\n")


def test_a_long_page_is_zipped_for_who_takes_it(start: Start) -> None:
    service = start()

    answer, body = service.get("/metrics", Accept_Encoding="gzip, deflate")

    assert answer.getheader("Content-Encoding") == "gzip"
    assert gzip.decompress(body).startswith(b"# HELP")
    assert answer.getheader("Content-Length") == str(len(body))


def test_status_tells_the_state_of_each_learner(start: Start) -> None:
    service = start(group="risk", slot=2, routes=[{"learner": "fraud", "shadows": ["next"]}])
    model = Model("fraud", service.config.learners["fraud"], service.config.monitor)
    model.predict_then_update([Example(features={"x": 1.0}, label=label) for label in (1, 0, 1, 1)])
    service.metrics.board.ask(0.0)
    service.metrics.standings([model])
    service.metrics.assigned([("events", 0), ("events", 1)])
    service.metrics.lag({("events", 0): (3, 5), ("events", 1): (7, 7)})
    service.metrics.checkpoint_written(0.1, 4321)

    told = service.document()

    assert (told["group"], told["slot"], told["version"]) == ("risk", 2, service.metrics.version)
    fraud = told["learners"]["fraud"]  # type: ignore[index]
    assert (fraud["role"], fraud["algorithm"], fraud["task"]) == ("champion", "arow", "binary")
    assert (fraud["seen"], fraud["labelled"], fraud["features"]) == (4, 4, 1)
    assert 0.0 <= fraud["error"]["sliding"] <= 1.0 and fraud["error"]["total"] == model.tally.error_rate()
    assert fraud["baseline"] == {"majority": 0.75, "no_change": 0.75}
    assert told["learners"]["next"]["role"] == "shadow"  # type: ignore[index]
    assert told["learners"]["next"]["error"]["sliding"] is None  # type: ignore[index]
    events = told["topics"]["events"]  # type: ignore[index]
    assert (events["assigned"], events["lag"]) == ([0, 1], {"0": 2, "1": 0})
    written = {"written": 1_796_032_800.0, "size_bytes": 4321.0, "uncheckpointed": None, "failures": 0}
    assert told["checkpoint"] == written
    assert told["ready"] == {"ok": False, "detail": "Not restored yet: starting."}


def test_status_tells_no_secret(start: Start) -> None:
    secrets = ("pw-1", "pw-2", "pw-3", "pw-4", "pw-5", "pw-6", "pw-7")
    service = start(
        kafka={
            "bootstrap.servers": "broker:9092",
            "sasl.username": "reader",
            "sasl.password": secrets[0],
            "ssl.key.password": secrets[1],
            "ssl.key.pem": secrets[2],
            "sasl.oauthbearer.config": secrets[3],
            "sasl.oauthbearer.token.endpoint.url": f"https://me:{secrets[4]}@host/x",
        },
        producer={"client.id": f"https://me:{secrets[5]}@host"},
        http={"token": secrets[6]},
    )

    body = service.get("/status.json", Authorization=f"Bearer {secrets[6]}")[1].decode()

    assert not [secret for secret in secrets if secret in body]
    told = json.loads(body)["config"]
    assert told["kafka"]["sasl.username"] == "reader"
    assert told["kafka"]["sasl.password"] == told["http"]["token"] == "***"
    assert told["commit_interval"] == "200ms"
    assert told["learners"]["fraud"]["algorithm"] == "arow"


def test_the_front_page_links_the_others(start: Start) -> None:
    service = start(group="risk")

    answer, body = service.get("/")

    assert answer.getheader("Content-Type") == "text/html; charset=utf-8"
    assert "group risk, slot 0" in body.decode()
    links = re.findall(r'<a href="([^"#]*)"', body.decode())
    assert links == ["metrics", "status.json", "live", "ready"]
    for link in links:
        assert service.status(f"/{link}") in (200, 503)


def test_the_front_page_lets_nothing_in_from_elsewhere(start: Start) -> None:
    answer, body = start().get("/")

    policy = answer.getheader("Content-Security-Policy", "").split("; ")
    assert "default-src 'none'" in policy
    for kind in ("style", "script"):
        inline = re.findall(rf"<{kind}[^>]*>(.*?)</{kind}>", body.decode(), re.DOTALL)
        hashes = [f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in inline]
        assert f"{kind}-src {' '.join(hashes)}" in policy


def test_head_answers_without_a_body(start: Start) -> None:
    service = start()

    with socket.create_connection(("127.0.0.1", service.server.port), timeout=10) as client:
        client.sendall(b"HEAD /metrics HTTP/1.0\r\n\r\n")
        answer = client.makefile("rb").read()

    assert answer.startswith(b"HTTP/1.0 200 OK\r\n") and answer.endswith(b"\r\n\r\n")
    assert int(re.findall(rb"Content-Length: (\d+)", answer)[0]) > 1000


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_nothing_can_be_written(start: Start, method: str) -> None:
    answer, _ = start().get("/metrics", method)

    assert (answer.status, answer.getheader("Allow")) == (405, "GET, HEAD")


def test_an_unknown_path_names_the_known_ones(start: Start) -> None:
    answer, body = start().get("/healthz")

    assert answer.status == 404
    assert b"/live" in body


def test_a_page_that_fails_is_an_answer_and_not_the_end(start: Start) -> None:
    service = start()
    service.metrics.families.consumed.at("events").value = "broken"  # type: ignore[assignment]

    assert service.status("/status.json") == service.status("/") == 500
    assert service.status("/live") == 200


# The token


@pytest.mark.parametrize("path", ["/metrics", "/status.json", "/"])
def test_a_token_is_wanted_for_all_but_the_probes(start: Start, path: str) -> None:
    service = start(http={"token": "s3cret-ü"})
    good = "s3cret-ü".encode().decode("latin-1")

    assert service.status(path) == 401
    assert service.status(path, Authorization="Bearer wrong") == 401
    assert service.status(path, Authorization=f"Basic {good}") == 401
    assert service.status(path, Authorization=f"Bearer {good}") == 200


def test_a_browser_gives_the_token_as_a_password(start: Start) -> None:
    service = start(http={"token": "s3cret-ü"})

    def basic(said: str) -> str:
        return f"Basic {base64.b64encode(said.encode()).decode()}"

    assert service.status("/", Authorization=basic("anybody:s3cret-ü")) == 200
    for wrong in (basic("anybody:wrong"), basic("s3cret-ü"), basic(":"), "Basic", "Basic s3cret-ü", "Basic !!"):
        assert service.status("/", Authorization=wrong.encode().decode("latin-1")) == 401
    assert (service.status("/live"), service.status("/ready")) == (200, 503)


# The server


def test_a_port_in_use_is_a_sentence_for_whoever_configures(start: Start) -> None:
    taken = start().server.port

    with pytest.raises(ConfigError, match=rf"cannot listen at 127\.0\.0\.1 port {taken} \(Address already in use\)"):
        Service(http={"port": taken})


def test_a_host_that_is_not_ours_is_a_sentence_too() -> None:
    with pytest.raises(ConfigError, match=r"cannot listen at 192\.0\.2\.1"):
        Service(http={"host": "192.0.2.1"})


def test_the_server_tells_its_real_port(start: Start) -> None:
    server = start().server

    assert server.url == f"http://127.0.0.1:{server.port}" and server.port > 0


def test_slow_clients_keep_nobody_waiting(start: Start) -> None:
    service = start()
    silent = [socket.create_connection(("127.0.0.1", service.server.port)) for _ in range(3 * served.CONNECTIONS_MAX)]
    for connection in silent:
        connection.sendall(b"GET /metrics HT")

    assert service.status("/live") == 200
    silent[0].settimeout(served.CONNECTION_S / 2)
    assert silent[0].recv(1) == b"", "pushed out by those who came later"
    for connection in silent:
        connection.close()


def test_a_slow_client_is_cut_off(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    service = start()
    monkeypatch.setattr(served, "CONNECTION_S", 0.0)

    with socket.create_connection(("127.0.0.1", service.server.port), timeout=10) as silent:
        silent.sendall(b"GET /metrics HT")

        assert silent.recv(1) == b""


def test_stopped_it_leaves_no_thread_and_no_port(start: Start) -> None:
    threads_before = set(threading.enumerate())
    service = Service()
    silent = socket.create_connection(("127.0.0.1", service.server.port))
    assert service.status("/live") == 200

    service.server.stop()

    assert set(threading.enumerate()) <= threads_before
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", service.server.port))
    silent.close()


def test_the_port_can_be_taken_again_at_once(start: Start) -> None:
    first = Service()
    first.get("/live")
    first.server.stop()

    second = start(http={"port": first.server.port})

    assert second.status("/live") == 200


def test_a_scrape_has_what_the_loop_says_at_its_next_turn(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "ASK_S", 60.0)  # longer than the client has patience
    service = start()
    model = Model("fraud", service.config.learners["fraud"], service.config.monitor)
    service.metrics.standings([model])  # the first one, for nobody
    model.predict_then_update([Example(features={"x": 1.0}, label=1)])
    done = threading.Event()

    def loop() -> None:
        while not done.wait(0.001):
            service.metrics.standings([model])

    turning = threading.Thread(target=loop)
    turning.start()
    page = service.get("/metrics")[1]
    done.set()
    turning.join()

    assert b'olstream_windowed_error_ratio{learner="fraud",window="total"}' in page


def test_many_scrapes_at_once_see_whole_pages(start: Start) -> None:
    service = start()
    pages: list[bytes] = []
    running = threading.Event()

    def churn() -> None:
        while not running.is_set():
            for n in (1, 5, 0):
                service.metrics.lag({("events", p): (0, p) for p in range(n)})
                service.metrics.batches([(10, 0.01)])

    writer = threading.Thread(target=churn)
    writer.start()
    readers = [
        threading.Thread(target=lambda: pages.extend(service.get("/metrics")[1] for _ in range(5))) for _ in range(4)
    ]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    running.set()
    writer.join()

    assert len(pages) == 20
    for page in pages:
        buckets = re.findall(rb'olstream_batch_messages_bucket\{le="\+Inf"\} (\S+)', page)
        assert buckets == re.findall(rb"olstream_batch_messages_count (\S+)", page)
