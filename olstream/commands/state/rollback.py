"""`olstream state rollback CONFIG --to SEQ|empty`: another history begins at an earlier checkpoint."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from olstream import crash
from olstream.checkpoint import Checkpoint
from olstream.commands.state.slot import SHORT, Place, directory_of, place_of
from olstream.config import Config, load
from olstream.errors import ConfigError, FencedError
from olstream.io.disk import Store
from olstream.io.kept import Kept, kept
from olstream.journal import Line
from olstream.properties import for_client

if TYPE_CHECKING:
    from confluent_kafka import Consumer

    from olstream.rollback import Plan

_EMPTY: Final = "empty"
_SESSION_MS: Final = 45_000  # the client's default


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.option(
    "--to", metavar="SEQ|empty", required=True, help="A kept checkpoint; SEQ@LINEAGE where two have that seq."
)
@click.option("--dry-run", is_flag=True, help="Only say what would be done; a running worker is not disturbed.")
def command(config: Path, to: str, dry_run: bool) -> None:
    """Go back to a kept checkpoint, or to the empty model, and on from there with the records to come.

    \b
    Example:
      olstream state rollback config.yaml --to 41

    All workers of the group have to be stopped. The group goes on at its committed offsets, wherever they were set
    to: what was learnt since that checkpoint is told, and will not be in the model. What is left behind is kept
    aside, and can be gone back to as well.
    """
    settings = load(config)
    crash.arm()
    with ExitStack() as stack:
        store = Store(directory_of(settings), settings.checkpoint.keep)
        if not dry_run:
            store.open()
            stack.callback(store.close)
        found = kept(store.directory) if store.directory.is_dir() else []
        target = _chosen(to, found)
        before = next((one.checkpoint.facts for one in found if one.checkpoint), {})
        _roll_back(settings, target, before, None if dry_run else store)
    click.echo("nothing was changed (--dry-run)" if dry_run else f"done; go on with `olstream run {config}`")


def _chosen(to: str, found: Sequence[Kept]) -> Checkpoint | None:
    """The checkpoint of that name; of several the one that reaches farthest into the journal. None: the empty model."""
    if to == _EMPTY:
        return None
    whole = [one.checkpoint for one in found if one.checkpoint is not None and not one.is_partial]
    seq, _, lineage = to.partition("@")
    for checkpoint in whole:
        position = checkpoint.position
        if str(position.seq) == seq and position.lineage.startswith(lineage):
            return checkpoint
    there = ", ".join(f"{c.position.seq}@{c.position.lineage[:SHORT]}" for c in whole)
    raise ConfigError(f"--to {to}: there is no such checkpoint; there are {there or 'none'}, and `empty`")


def _roll_back(config: Config, target: Checkpoint | None, before: Mapping[str, Any], store: Store | None) -> None:
    """Tell what will be, then do it; without a store only tell."""
    from olstream import rollback  # here: `--help` needs no Kafka client, and no compiler
    from olstream.app import facts_of, sink_of
    from olstream.io.client import Errors, reader
    from olstream.io.kafka_read import KafkaInputs
    from olstream.io.outbox import Told
    from olstream.io.starts import begin
    from olstream.ports import Lost

    errors, run = Errors(), uuid.uuid4().hex
    place = place_of(config, errors)
    facts = facts_of(config, run, place.journal, place.topics)
    with ExitStack() as stack:
        inputs = stack.enter_context(closing(KafkaInputs(config, errors, errors.raise_if_refused)))
        sink = None
        if store is not None:
            _refuse_members(config, place)
            told = Told(errors.raise_if_refused)
            # What was left open is ended by this.
            sink = stack.enter_context(closing(sink_of(config, run, place.journal, errors, told)))
            sink.group = _Outsider(stack.enter_context(closing(reader(config, errors))))
        plan = rollback.plan(config, target, before, facts, place.journal, inputs)
        for sentence in _told(plan):
            click.echo(sentence)
        if store is None or sink is None:
            return
        try:
            rollback.carry_out(plan, config, run, facts, begin, sink, store)
        except OSError as error:
            raise ConfigError(
                f"cannot write a checkpoint in {store.directory}: {error.strerror}; the same rollback again finishes"
            ) from error
        except Lost:
            raise FencedError(f"a worker has joined group {config.group} meanwhile: stop it, and try again") from None


@dataclass(slots=True)
class _Outsider:
    """Commits offsets of a group that has no members, as one of none."""

    consumer: Consumer
    is_rebalancing: bool = False
    in_doubt: list[Line] = field(default_factory=list)


def _refuse_members(config: Config, place: Place) -> None:
    from olstream.io import kafka_admin

    if there := kafka_admin.members(place.admin, config.group):
        session_ms = for_client("consumer", config.kafka, config.consumer).get("session.timeout.ms", _SESSION_MS)
        raise FencedError(
            f"group {config.group} has members ({', '.join(there)}): stop all its workers; one that is stopped or was "
            f"killed counts as there until its session ends, so try again after {int(session_ms) / 1000:g} s"
        )


def _told(plan: Plan) -> Iterator[str]:
    if plan.target is None:
        yield "back to the empty model"
    else:
        position, learners = plan.target.position, ", ".join(plan.target.states)
        yield f"back to checkpoint {position.seq} of lineage {position.lineage[:SHORT]}: {learners}"
    for dropped in plan.dropped:
        r, n = dropped.range, dropped.range.end - dropped.range.start
        again = f", the last {dropped.read_again:,} of them read again" if dropped.read_again else ""
        yield f"not in the model any more: {r.topic}[{r.partition}] offsets {r.start} to {r.end}, {n:,} records{again}"
    if plan.dropped:
        yield "their predictions stay published; records that the group has passed are not read again"
    for (topic, partition), offset in sorted(plan.offsets.items()):
        was = plan.committed.get((topic, partition), "gone")
        note = "" if was == offset else f" (its committed offset is {was})"
        yield f"the group goes on at {topic}[{partition}] offset {offset}{note}"
