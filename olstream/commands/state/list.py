"""`olstream state list PATH`: the checkpoints of a slot. It takes no lock and asks no broker."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

import click
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from olstream.checkpoint import Checkpoint
from olstream.commands.state.slot import SHORT, directory_of, kept_by
from olstream.config import load
from olstream.io.disk import slot_directories
from olstream.io.kept import Kept, kept

Json: TypeAlias = dict[str, Any]

_WIDTH: Final = 120  # where the output is no terminal


@click.command()
@click.argument("path", metavar="CONFIG_OR_DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def command(path: Path, as_json: bool) -> None:
    """List the checkpoints of a slot, newest first: those a start can use, damaged ones, and those kept aside.

    \b
    Example:
      olstream state list config.yaml

    Instead of the configuration, its checkpoint.path or the directory of a slot will do.
    """
    if path.is_dir():
        slots = {directory: kept(directory) for directory in slot_directories(path) or [path]}
    else:
        config = load(path)
        slots = {directory_of(config): kept_by(config)}
    if as_json:
        objects = [
            {"directory": str(directory), "checkpoints": [_as_json(one) for one in found]}
            for directory, found in slots.items()
        ]
        click.echo(json.dumps(objects[0] if len(objects) == 1 else {"slots": objects}, indent=2, ensure_ascii=False))
        return
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH)
    for directory, found in slots.items():
        console.print(Text(str(directory), style="bold"), soft_wrap=True)
        console.print(_table(found) if found else Text("  no checkpoint"))


def _as_json(one: Kept) -> Json:
    shown: Json = {"name": one.name, "state": one.state, "bytes": one.size_bytes}
    if one.checkpoint is None:
        return shown | {"trouble": one.trouble}
    position = one.checkpoint.position
    learners = {name: {"seen": seen, "updates": updates} for name, seen, updates in _learners(one.checkpoint)}
    place = {"seq": position.seq, "lineage": position.lineage, "journal_offset": position.journal_offset}
    return shown | place | {"created": one.created, "learners": learners}


def _table(found: Iterable[Kept]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("seq", justify="right")
    for heading in ("lineage", "written", "learners"):
        table.add_column(heading)
    table.add_column("size", justify="right")
    table.add_column("")
    for one in found:
        if one.checkpoint is None:
            table.add_row("", "", "", one.name, decimal(one.size_bytes), one.state)
            continue
        told = (f"{name}: {seen:,} seen, {updates:,} updates" for name, seen, updates in _learners(one.checkpoint))
        position, size = one.checkpoint.position, decimal(one.size_bytes)
        row = str(position.seq), position.lineage[:SHORT], one.created, "\n".join(told), size, one.state
        table.add_row(*map(Text, row))
    return table


def _learners(checkpoint: Checkpoint) -> Iterator[tuple[str, int, int]]:
    """Each learner with its counters, as they stand in its arrays: no model is made."""
    from olstream.evaluate import SEEN, UPDATES  # here: it brings the compiler

    for name, (_, arrays) in checkpoint.states.items():
        counts = arrays["tally.counts"]
        yield name, int(counts[SEEN]), int(counts[UPDATES])
