"""`olstream state list|verify|rollback`: the checkpoints of a slot, whether they are right, and going back to one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from olstream.config import Config, load
from olstream.errors import ConfigError, KafkaError, StateError
from olstream.io.disk import slot_directory
from olstream.io.kept import Kept, kept

if TYPE_CHECKING:
    from olstream.io.client import Errors
    from olstream.io.kafka_read import KafkaJournal
    from olstream.verify import Compared

Json: TypeAlias = dict[str, Any]

_REACH_S: Final = 10.0


@click.group(no_args_is_help=False)
def command() -> None:
    """The checkpoints of a slot: which there are, whether they are right, and going back to one.

    \b
    Example:
      olstream state verify config.yaml
    """


@command.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--all", "from_empty", is_flag=True, help="Begin with the empty model and the first line of the journal.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def verify(config: Path, from_empty: bool, as_json: bool) -> None:
    """Learn the journal again from the oldest kept checkpoint on, and compare each newer one with what comes out.

    \b
    Example:
      olstream state verify config.yaml

    Exit code 0: position and digest of every learner are equal, in every checkpoint; 4: one differs, or what has to
    be learnt again is not there any more. A running service is not disturbed.
    """
    settings = load(config)
    settings.needs_kafka()
    found = [one for one in _kept(settings) if not one.is_aside]
    compared, to_tell = _verified(settings, found, from_empty)
    damaged = [one for one in found if one.checkpoint is None]
    if as_json:
        click.echo(json.dumps(to_tell | {"damaged": [one.name for one in damaged]}, indent=2))
    else:
        _tell_verified(compared, damaged, to_tell)
    differing = compared[-1]
    if differing.difference:
        raise StateError(
            f"{differing.name} is not what the journal makes of it: {differing.difference}; stop the slot and go back "
            f"to an earlier one with `olstream state rollback {config} --to SEQ`"
        )


def _verified(config: Config, found: Sequence[Kept], from_empty: bool) -> tuple[list[Compared], Json]:
    from olstream.io.client import Errors  # here: `list` needs no Kafka client, and no compiler
    from olstream.io.kafka_read import KafkaInputs
    from olstream.verify import Verification

    oldest_first = {one.name: one.checkpoint for one in reversed(found) if one.checkpoint is not None}
    if not oldest_first:
        raise StateError(
            f"slot {config.slot} of group {config.group} has no whole checkpoint in {config.checkpoint.path}: `run` "
            "tells what can be done"
        )
    errors = Errors()
    journal = _journal(config, errors)
    inputs = KafkaInputs(config, errors)
    try:
        with _bar("learning again") as moved:
            verification = Verification(config, oldest_first, journal, inputs, moved)
            compared = list(verification.compare(from_empty))
    finally:
        inputs.close()
    return compared, {
        "slot": config.slot,
        "lineage": verification.newest.lineage,
        "equal": not compared[-1].difference,
        "from_empty": from_empty,
        "records": verification.records,
        "seq": verification.newest.seq,
        "journal_seq": verification.journal_seq,
        "checkpoints": [_compared_json(one) for one in compared],
    }


def _compared_json(one: Compared) -> Json:
    return {
        "name": one.name,
        "seq": one.checkpoint.position.seq,
        "records": one.records,
        "start": one.is_start,
        "digests": {name: str(digest) for name, digest in one.checkpoint.digests.items()},
        "difference": one.difference or None,
    }


def _tell_verified(compared: Sequence[Compared], damaged: Sequence[Kept], told: Json) -> None:
    for one in damaged:
        click.echo(f"{one.name}: passed over: {one.trouble}")
    for each in compared:
        learners = ", ".join(each.checkpoint.states)
        if each.difference:
            click.echo(f"{each.name}: DIFFERS: {each.difference}")
        elif each.is_start:
            click.echo(f"{each.name}: whole; learnt again from here: {learners}")
        else:
            click.echo(f"{each.name}: equal after {each.records:,} records more: {learners}")
    beyond = told["journal_seq"] - told["seq"]
    further = f", {beyond:,} lines beyond the newest checkpoint" if beyond else ""
    click.echo(f"{told['records']:,} records learnt again; the journal goes up to line {told['journal_seq']}{further}")


def _kept(config: Config) -> list[Kept]:
    directory = slot_directory(config.checkpoint.path, config.group, config.slot)
    if not directory.is_dir():
        raise ConfigError(
            f"there is no {directory}: slot {config.slot} of group {config.group} never ran, or keeps its state "
            "elsewhere (checkpoint.path)"
        )
    return kept(directory)


def _journal(config: Config, errors: Errors) -> KafkaJournal:
    """The slot's journal, to read. Nothing is made where it is missing."""
    from olstream.io import kafka_admin
    from olstream.io.kafka_read import KafkaJournal

    refusals: list[str] = []
    admin = kafka_admin.admin(config, lambda error: refusals.append(error.str()))
    topics = kafka_admin.reached(admin, config, refusals, _REACH_S).topics
    if config.journal_topic not in topics:
        raise KafkaError(f"there is no topic {config.journal_topic}, the journal of group {config.group}")
    return KafkaJournal(config, len(topics[config.journal_topic].partitions), errors)


@contextmanager
def _bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error where that is a terminal; the function moves it."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _done, _of: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, of: progress.update(task, completed=done, total=of)
