"""`olstream send CONFIG FILE`: loads a file into an input topic, as messages that `run` understands."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import orjson
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

from olstream.config import Config, FieldsConfig, load
from olstream.errors import ConfigError, KafkaError
from olstream.interpret import WHOLE, find
from olstream.io.files import FORMATS, STDIN, Input, format_of, reading
from olstream.io.lines import Line
from olstream.messages import Reject

if TYPE_CHECKING:
    from confluent_kafka import KafkaError as ClientError

_REACH_S: Final = 10.0
_SHOW_EVERY_S: Final = 0.1


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.argument("file")
@click.option("--topic", help="The topic to send to; the first of input.topics where it is left out.")
@click.option(
    "--format", "format_", type=click.Choice(FORMATS), help="What the file is, where its ending does not say."
)
@click.option(
    "--rate", type=click.FloatRange(min=0, min_open=True), help="Records a second; as fast as it goes without."
)
@click.option("--loop", is_flag=True, help="Begin again at the end of the file, until Ctrl-C.")
def command(config: Path, file: str, topic: str | None, format_: str | None, rate: float | None, loop: bool) -> None:
    """Load a file of NDJSON, CSV or libsvm (also .gz, or - for NDJSON on standard input) into an input topic.

    \b
    Example:
      olstream send config.yaml flights.ndjson --rate 1000

    Lines of NDJSON are sent byte for byte. Columns of CSV that input.fields or input.exclude name stay where they
    are, all others are features. The key of a record is its id.
    """
    settings = load(config)
    settings.needs_kafka()
    if loop and file == STDIN:
        raise ConfigError("--loop needs a file: standard input ends only once")
    format_ = format_of(file, format_)
    feed = Feed(settings, topic or settings.input.topics[0])
    pace = Pace(rate)
    try:
        for _ in count() if loop else range(1):
            with reading(file, format_, settings.input.max_message_bytes) as input_, _bar(input_, feed) as show:
                for line in input_.lines:
                    pace.wait()
                    feed.send(line, input_.format)
                    show()
            if loop and not feed.sent:
                raise ConfigError(f"{file} has nothing to send again and again")
    except KeyboardInterrupt:
        feed.finish()
        if not loop:
            raise
    feed.finish()
    click.echo(feed.summary(pace.elapsed_s()))


@dataclass(slots=True)
class Pace:
    """So many records a second, measured from the start, so that a late one is made up for."""

    rate: float | None
    started_s: float = field(default_factory=time.monotonic)
    passed: int = 0

    def wait(self) -> None:
        if self.rate is not None:
            ahead_s = self.passed / self.rate - self.elapsed_s()
            if ahead_s > 0:
                time.sleep(ahead_s)
        self.passed += 1

    def elapsed_s(self) -> float:
        return time.monotonic() - self.started_s


class Feed:
    """Sends lines to one topic and knows what became of them."""

    def __init__(self, config: Config, topic: str) -> None:
        from olstream.io import kafka_admin, kafka_feed  # here: `--help` needs no Kafka client

        refusals: list[ClientError] = []
        admin = kafka_admin.admin(config, refusals.append)
        if topic not in kafka_admin.reached(admin, config, refusals, _REACH_S).topics:
            raise KafkaError(f"topic {topic} is not there: make it with `olstream check CONFIG --create`")
        self.fields = config.input.fields
        self.exclude = frozenset(config.input.exclude)
        self.topic = topic
        self.sent = 0
        self.unreadable = 0
        self._out = kafka_feed.Out(config, topic)

    def send(self, line: Line, format_: str) -> None:
        if isinstance(line.tree, Reject):
            self.unreadable += 1
            return
        message = line.tree if line.tree is None else as_message(line.tree, format_, self.fields, self.exclude)
        value = line.data if message is None else _encoded(message)
        self._out.send(_key(line.data if message is None else message, self.fields.id), value)
        self.sent += 1

    def finish(self) -> None:
        """Wait until the brokers have everything."""
        self._out.finish()

    def summary(self, elapsed_s: float) -> str:
        left_out = (
            f"; {self.unreadable:,} line{'s' * (self.unreadable > 1)} could not be read" if self.unreadable else ""
        )
        rate = self.sent / max(elapsed_s, 1e-9)
        return f"sent {self.sent:,} records to {self.topic} in {elapsed_s:.1f} s ({rate:,.0f} a second){left_out}"


def as_message(tree: dict[str, Any], format_: str, fields: FieldsConfig, exclude: frozenset[str]) -> dict[str, Any]:
    """A row of CSV or libsvm as the message that `fields` describes; paths are written as names with dots."""
    if format_ == "libsvm":
        label = {fields.label: tree["label"]} if "label" in tree else {}
        return (tree["features"] if fields.features == WHOLE else {fields.features: tree["features"]}) | label
    if fields.features == WHOLE:
        return tree
    apart = {fields.id, fields.label, *(getattr(fields, name) for name in fields.model_fields_set - {"features"})}
    kept = {name: value for name, value in tree.items() if name in apart or name in exclude}
    return kept | {fields.features: {name: value for name, value in tree.items() if name not in kept}}


def _encoded(message: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(message)
    except TypeError:  # a whole number beyond 64 bits
        return json.dumps(message, ensure_ascii=False).encode()


def _key(message: bytes | dict[str, Any], path: str) -> bytes | None:
    """The id as text, where the message has one."""
    if isinstance(message, bytes):
        try:
            message = orjson.loads(message)
        except orjson.JSONDecodeError:
            return None
    id_ = find(message, path) if isinstance(message, dict) else None
    return str(id_).encode() if isinstance(id_, str | int) and not isinstance(id_, bool) else None


@contextmanager
def _bar(input_: Input, feed: Feed) -> Iterator[Any]:
    """A progress bar on a terminal; what it gives is called after each record."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(input_.name, total=input_.size_bytes)
        shown_s = 0.0

        def show() -> None:
            nonlocal shown_s
            if time.monotonic() - shown_s > _SHOW_EVERY_S:
                shown_s = time.monotonic()
                progress.update(task, completed=input_.position(), description=f"{input_.name} {feed.sent:,}")

        yield show
