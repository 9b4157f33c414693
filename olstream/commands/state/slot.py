"""A slot as its operator sees it: its directory, and its place in Kafka from outside the group."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from olstream.config import Config
from olstream.errors import ConfigError, KafkaError
from olstream.io.disk import slot_directory
from olstream.io.kept import Kept, kept

if TYPE_CHECKING:
    from confluent_kafka import KafkaError as ClientError
    from confluent_kafka.admin import AdminClient

    from olstream.io.client import Errors
    from olstream.io.kafka_admin import TopicFacts
    from olstream.io.kafka_read import KafkaJournal

SHORT: Final = 8  # so much of a lineage is shown, and is enough to name it
_REACH_S: Final = 10.0


def directory_of(config: Config) -> Path:
    return slot_directory(config.checkpoint.path, config.group, config.slot)


def kept_by(config: Config) -> list[Kept]:
    """All checkpoints in the slot's directory, newest first."""
    directory = directory_of(config)
    if not directory.is_dir():
        raise ConfigError(
            f"there is no {directory}: slot {config.slot} of group {config.group} never ran, or keeps its state "
            "elsewhere (checkpoint.path)"
        )
    return kept(directory)


@dataclass(frozen=True, slots=True)
class Place:
    """Where in Kafka a slot works."""

    admin: AdminClient
    topics: dict[str, TopicFacts]  # the inputs and the journal
    journal: KafkaJournal


def place_of(config: Config, errors: Errors) -> Place:
    """Ask a broker once; KafkaError where none answers, or a topic is missing: none is made."""
    from olstream.io import kafka_admin  # here: `list` needs no Kafka client
    from olstream.io.kafka_read import KafkaJournal

    config.needs_kafka()
    refusals: list[ClientError] = []
    admin = kafka_admin.admin(config, refusals.append)
    cluster = kafka_admin.reached(admin, config, refusals, _REACH_S)
    wanted = [*config.input.topics, config.journal_topic]
    topics = kafka_admin.facts(admin, cluster, wanted)
    if missing := [topic for topic in wanted if topic not in topics]:
        raise KafkaError(
            f"there is no topic {', '.join(missing)}: slot {config.slot} has never worked with this broker"
        )
    return Place(
        admin, topics, KafkaJournal(config, topics[config.journal_topic].partitions, errors, errors.raise_if_refused)
    )


@contextmanager
def bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error where that is a terminal; the function moves it to so many of so many."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _done, _of: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, of: progress.update(task, completed=done, total=of)
