"""`olstream state verify CONFIG`: is each checkpoint what the journal makes of the one before?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from olstream.commands.state.slot import bar, kept_by, place_of
from olstream.config import Config, load
from olstream.errors import StateError
from olstream.facts import refuse_other_place
from olstream.io.kept import Kept

if TYPE_CHECKING:
    from olstream.verify import Compared, Verification

Json: TypeAlias = dict[str, Any]


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--all", "from_empty", is_flag=True, help="Begin with the empty model and the first line of the journal.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def command(config: Path, from_empty: bool, as_json: bool) -> None:
    """Learn the journal again from the oldest kept checkpoint on, and compare each newer one with what comes out.

    \b
    Example:
      olstream state verify config.yaml

    Exit code 0: position and digest of every learner are equal in every checkpoint; 4: one differs, or what has to
    be learnt again is not there any more. A running service is not disturbed.
    """
    settings = load(config)
    in_use = [one for one in kept_by(settings) if not one.is_aside]
    unreadable = [one for one in in_use if one.checkpoint is None]
    verification, compared = _verified(settings, in_use, from_empty)
    if as_json:
        click.echo(json.dumps(_as_json(settings, verification, compared, unreadable), indent=2))
    else:
        _tell(verification, compared, unreadable)
    if difference := compared[-1].difference:
        raise StateError(
            f"{compared[-1].name} is not what the journal makes of it: {difference}; stop the slot and go back to an "
            f"earlier one with `olstream state rollback {config} --to SEQ`"
        )


def _verified(config: Config, in_use: Sequence[Kept], from_empty: bool) -> tuple[Verification, list[Compared]]:
    from olstream.app import facts_of  # here: `--help` needs no Kafka client, and no compiler
    from olstream.io.client import Errors
    from olstream.io.kafka_read import KafkaInputs
    from olstream.io.starts import begin
    from olstream.verify import Verification

    oldest_first = {one.name: one.checkpoint for one in reversed(in_use) if one.checkpoint is not None}
    if not oldest_first:
        raise StateError(
            f"slot {config.slot} of group {config.group} has no whole checkpoint in {config.checkpoint.path}: `run` "
            "tells what can be done"
        )
    errors = Errors()
    place = place_of(config, errors)
    *_, newest = oldest_first.values()
    refuse_other_place(newest.facts, facts_of(config, "", place.journal, place.topics))
    with closing(KafkaInputs(config, errors, errors.raise_if_refused)) as inputs, bar("learning again") as moved:
        verification = Verification(config, oldest_first, place.journal, inputs, begin, moved)
        return verification, list(verification.compare(from_empty))


def _as_json(
    config: Config, verification: Verification, compared: Sequence[Compared], unreadable: Sequence[Kept]
) -> Json:
    return {
        "slot": config.slot,
        "lineage": verification.newest.lineage,
        "equal": not compared[-1].difference,
        "records": verification.records,
        "seq": verification.newest.seq,
        "journal_seq": verification.journal_seq,
        "checkpoints": [
            {
                "name": one.name,
                "seq": one.checkpoint.position.seq,
                "records": one.records,
                "starts": one.starts or None,
                "digests": one.checkpoint.digests,
                "difference": one.difference or None,
            }
            for one in compared
        ],
        "unreadable": [one.name for one in unreadable],
    }


def _tell(verification: Verification, compared: Sequence[Compared], unreadable: Sequence[Kept]) -> None:
    for one in unreadable:
        click.echo(f"{one.name}: passed over: {one.trouble}")
    for each in compared:
        learners = ", ".join(each.checkpoint.states)
        if each.difference:
            click.echo(f"{each.name}: DIFFERS: {each.difference}")
        elif each.starts:
            click.echo(f"{each.name}: whole; learning again starts here ({each.starts}): {learners}")
        else:
            click.echo(f"{each.name}: equal, {each.records:,} records later: {learners}")
    last, beyond = verification.journal_seq, verification.journal_seq - verification.newest.seq
    further = f", {beyond:,} beyond the newest checkpoint" if beyond else ""
    click.echo(f"{verification.records:,} records learnt again; the journal goes up to line {last:,}{further}")
