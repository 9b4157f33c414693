"""What deploy/compose.yaml starts does learn and does meet drift: its own configuration and its own command lines.

Only addresses, names and the state's directory are others here, and orders come faster.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.deploy.compose import CONFIG_TARGET, SERVICES, configured, environment_of
from tests.deploy.prometheus import Prometheus
from tests.kafka.broker import dies_with_us
from tests.kafka.service import ServiceFactory, Worker, olstream
from tests.kafka.topics import until

RATE = 4000
SOON_S = 60.0
CHAMPION, AS_EVER = "returned", "returned-as-ever"


@contextmanager
def orders(config: Path, bootstrap: str) -> Iterator[None]:
    """The command line of the container that sends, with its files where they are here."""
    service = SERVICES["orders"]
    (script,) = service.command
    for target, here in {CONFIG_TARGET: config, **{m.target: m.path for m in service.mounts[1:]}}.items():
        assert here is not None and target in script
        script = script.replace(target, shlex.quote(str(here)))
    own = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = environment_of(service, PATH=own, OLSTREAM_BOOTSTRAP=bootstrap, RATE=str(RATE))
    command = [*dies_with_us(), *service.said["entrypoint"], script]
    with (config.parent / "orders.log").open("ab") as log:
        sending = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        yield
        assert sending.poll() is None, (config.parent / "orders.log").read_text()
    finally:
        os.killpg(sending.pid, signal.SIGKILL)
        sending.wait()


def error(worker: Worker, learner: str, metric: str = "olstream_windowed_error_ratio", **labels: str) -> float:
    return worker.counted(metric, learner=learner, **labels or {"window": "sliding"})


def test_what_it_starts_learns_and_meets_drift(service: ServiceFactory) -> None:
    it = service()
    config = configured(it)
    bootstrap = it.topics.bootstrap
    it.environment = {**SERVICES["olstream"].environment, "OLSTREAM_BOOTSTRAP": bootstrap}

    made = subprocess.run(
        [
            sys.executable,
            "-m",
            "olstream",
            *(str(config) if w == CONFIG_TARGET else w for w in SERVICES["topics"].command),
        ],
        env=environment_of(SERVICES["topics"], OLSTREAM_BOOTSTRAP=bootstrap),
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    worker = it.start_from(config).until_ready()
    url = f"http://127.0.0.1:{it.config['http']['port']}"
    healthy = SERVICES["olstream"].said["healthcheck"]["test"]
    assert healthy[:2] == ["CMD", "olstream"]
    assert olstream(*healthy[2:], "--url", url).returncode == 0

    with Prometheus(it.directory, url.removeprefix("http://")) as prometheus, orders(config, bootstrap):
        until(lambda: worker.counted("olstream_scored_events_total", learner=CHAMPION) > 2000, "orders come", SOON_S)
        majority = error(worker, CHAMPION, "olstream_baseline_error_ratio", baseline="majority")
        until(lambda: error(worker, CHAMPION) < majority / 2, "it has learnt", SOON_S)
        until(lambda: worker.counted("olstream_drift_detections_total", learner=CHAMPION) > 0, "drift is met", SOON_S)
        until(lambda: 0 < 2 * error(worker, CHAMPION) < error(worker, AS_EVER), "its reaction is worth it", SOON_S)
        for seen in (
            f'olstream_drift_detections_total{{learner="{CHAMPION}"}} > 0',
            f'olstream_drift_detections_total{{learner="{AS_EVER}"}} > 0',
            f'learner:olstream_error_ratio:rate5m{{learner="{CHAMPION}"}} < 0.5',
        ):
            until(lambda seen=seen: prometheus.has(seen), f"Prometheus sees {seen}", SOON_S)  # type: ignore[misc]

    assert worker.counted("olstream_events_rejected_total") == 0
    worker.stop()
