"""`olstream demo`: everything at once, on an embedded broker and a real data stream."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console

from olstream.demo.brokers import Broker, Embedded, Names, Real
from olstream.demo.feed import Feed
from olstream.demo.flights import Unavailable, flights
from olstream.demo.screen import Screen, comparison, weights
from olstream.demo.stream import Stream
from olstream.demo.synthetic import synthetic
from olstream.demo.tail import last_predictions
from olstream.demo.worker import Worker, configuration
from olstream.errors import OlstreamError

SECONDS: Final = 45.0
LOOK_EVERY_S: Final = 0.25
CATCH_UP_S: Final = 60.0
SHOWN: Final = 3  # predictions at the end


@click.command(epilog="Example:  olstream demo --bootstrap localhost:9092")
@click.option("--bootstrap", help="Use this Kafka, exactly once, instead of the embedded broker.")
@click.option("--rows", type=click.IntRange(min=100), help="Stream only so many events.")
@click.option("--seconds", type=click.FloatRange(min=1), default=SECONDS, show_default=True, help="Spread over this.")
@click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("demo-state"),
    show_default=True,
    help="A directory; each demo makes one of its own in it.",
)
def command(bootstrap: str | None, rows: int | None, seconds: float, state: Path) -> None:
    """Learn from real flights as they leave: two learners side by side, live, in about a minute.

    Without --bootstrap the broker is embedded: the client's own mock, good for a look, without guarantees.
    """
    console = Console()
    stream = _stream(console)
    broker: Broker = Real(bootstrap) if bootstrap else Embedded()
    console.print(broker.explained, style="yellow")
    names = Names(f"olstream-demo-{uuid.uuid4().hex[:8]}")
    broker.make(names.all)
    directory = state / datetime.now().strftime("%Y%m%d-%H%M%S")
    directory.mkdir(parents=True)
    config = configuration(broker, names, stream, directory / "state")
    total = min(stream.total, rows or stream.total)
    worker = Worker(config, directory)
    try:
        status = _watch(console, worker, broker, names, stream, total, seconds)
        recent = last_predictions(broker.bootstrap, names.predictions, SHOWN)
    finally:
        code = worker.stop()
    if code != 0:
        raise OlstreamError(f"the service ended with exit code {code}: see {directory / 'run.log'}")
    _summary(console, status, recent, directory)


def _stream(console: Console) -> Stream:
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "olstream" / "demo"
    console.print("Reading the flights (fetched once, 9 MB) ...", style="dim")
    try:
        stream = flights(cache)
    except Unavailable as error:
        console.print(f"No flights: {error}. A synthetic stream takes their place.", style="yellow")
        stream = synthetic()
    for line in stream.explained:
        console.print(line, highlight=False)
    return stream


def _watch(
    console: Console, worker: Worker, broker: Broker, names: Names, stream: Stream, total: int, seconds: float
) -> dict[str, Any]:
    """Feed and show until all is consumed; the last status."""
    console.print("Starting `olstream run` ...", style="dim")
    worker.wait_until_ready()
    where = f"status page: {worker.url}/   predictions: topic {names.predictions} at {broker.bootstrap}"
    console.print(where, highlight=False, soft_wrap=True)
    feed = Feed(broker.bootstrap, names.input, stream.messages, total, seconds)
    consumed, status, looked_s = 0, worker.status(), time.monotonic()
    deadline = looked_s + seconds + CATCH_UP_S
    with Screen(console, stream.title, total, where) as screen:
        while consumed < total:
            feed.send_due(consumed)
            now_s = time.monotonic()
            if now_s < looked_s + LOOK_EVERY_S:
                time.sleep(0.01)
                continue
            worker.raise_if_ended()
            if now_s > deadline:
                raise OlstreamError(f"the service has consumed {consumed:,} of {total:,} events and is stuck")
            looked_s, status = now_s, worker.status()
            consumed = status["topics"][names.input]["consumed"]
            screen.show(status, consumed)
    feed.flush()
    return status


def _summary(console: Console, status: dict[str, Any], recent: list[dict[str, Any]], directory: Path) -> None:
    console.print()
    console.print(comparison(status))
    console.print("The last predictions:", style="dim")
    for prediction in recent:
        kept = {key: prediction[key] for key in ("id", "prediction", "score", "probability", "label", "correct")}
        console.print_json(json.dumps(kept), indent=None)
    state = directory / "state"
    for learner in status["learners"]:
        weights(console, learner, _inspect(state))
    console.print("The configuration, the log and the model are kept:", style="dim")
    console.print(f"  {directory / 'config.yaml'}\n  {directory / 'run.log'}", highlight=False)
    console.print(f"  {_ourselves()} inspect {state} --weights", highlight=False, soft_wrap=True)


def _ourselves() -> str:
    """How this command was called, so that the next one can be copied: `.venv/bin/olstream`, say."""
    return sys.argv[0] if Path(sys.argv[0]).name == "olstream" else f"{sys.executable} -m olstream"


def _inspect(state: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "olstream", "inspect", str(state), "--weights", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise OlstreamError(f"`olstream inspect {state}` failed: {done.stderr.strip()}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found
