"""`olstream inspect DIR`: what a state directory holds. It takes no lock and writes nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from rich.text import Text

from olstream.checkpoint import MANIFEST, Checkpoint, Damaged, from_folder, offsets_to_json, read_manifest
from olstream.errors import ConfigError, StateError
from olstream.io.disk import newest_first, slot_directories
from olstream.mistakes import nearest
from olstream.model import Model
from olstream.settings import learner_of, monitor_of

Json: TypeAlias = dict[str, Any]

_TOP: Final = 10  # weights shown of each learner, or of each of its classes
_WIDTH: Final = 120  # where the output is no terminal


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--learner", metavar="NAME", help="Only this learner.")
@click.option("--weights", is_flag=True, help="All weights by feature name; the largest ten without.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def command(directory: Path, learner: str | None, weights: bool, as_json: bool) -> None:
    """Show what a state directory holds: learners, how well they did, their weights, the offsets they stand at.

    \b
    Example:
      olstream inspect ./state --learner fraud --weights

    DIR is checkpoint.path, the directory of one slot, or one checkpoint. A running service is not disturbed.
    """
    slots = _slots(directory, learner)
    if as_json:
        objects = [slot.as_json(weights) for slot in slots]
        click.echo(json.dumps(objects[0] if len(objects) == 1 else {"slots": objects}, indent=2, ensure_ascii=False))
        return
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH)
    for slot in slots:
        slot.show(console, None if weights else _TOP)


def _slots(directory: Path, only: str | None) -> list[Slot]:
    """The newest whole checkpoint of each slot in a directory."""
    if not directory.is_dir():
        raise ConfigError(f"{directory} is no directory: give checkpoint.path, or one slot's directory in it")
    if (directory / MANIFEST).is_file():
        try:
            return [Slot.of(directory, only)]
        except Damaged as error:
            raise StateError(f"the checkpoint is damaged: {error}") from None
    found = slot_directories(directory)
    if not found:
        aside = any(any(directory.glob(f"{below}damaged-*")) for below in ("", "*/", "*/*/"))
        raise (
            _unwhole(directory)
            if aside
            else ConfigError(f"{directory} holds no checkpoint: give checkpoint.path, or one slot's directory in it")
        )
    return [_newest(slot, only) for slot in found]


def _newest(slot: Path, only: str | None) -> Slot:
    for folder in newest_first(slot):
        try:
            return Slot.of(folder, only)
        except Damaged as damage:
            if folder.exists():  # else its owner has pruned it while we looked
                click.echo(f"olstream: {folder.name} is damaged and passed over: {damage}", err=True)
    raise _unwhole(slot)


def _unwhole(directory: Path) -> StateError:
    return StateError(f"{directory} holds no whole checkpoint: they are damaged; `run` tells what can be done")


@dataclass(frozen=True, slots=True)
class Slot:
    """One checkpoint with its learners brought back."""

    checkpoint: Checkpoint
    written: str
    models: Mapping[str, Model]

    @classmethod
    def of(cls, folder: Path, only: str | None) -> Slot:
        """Damaged where it is not whole."""
        checkpoint, written = from_folder(folder), str(read_manifest(folder)["created"])
        if only is not None and only not in checkpoint.states:
            known = checkpoint.states
            raise ConfigError(f"no learner {only!r} in {folder}{nearest(only, known)}; there are {', '.join(known)}")
        names = checkpoint.states if only is None else [only]
        return cls(checkpoint, written, {name: _restored(checkpoint, name) for name in names})

    def as_json(self, weights: bool) -> Json:
        position = self.checkpoint.position
        digests = {name: str(digest) for name, digest in self.checkpoint.digests.items()}
        return {
            "learners": {name: _learner(model, digests[name], weights) for name, model in self.models.items()},
            "offsets": offsets_to_json(position.offsets),
            "slot": self.checkpoint.facts.get("slot"),
            "lineage": position.lineage,
            "seq": position.seq,
            "digest": hashlib.sha256(json.dumps(sorted(digests.items())).encode()).hexdigest(),
        }

    def show(self, console: Console, most: int | None) -> None:
        facts, position = self.checkpoint.facts, self.checkpoint.position
        whose = f"slot {facts['slot']} of group {facts['group']}" if "slot" in facts and "group" in facts else "models"
        console.print(Text(f"{whose}, checkpoint {position.seq}, written {self.written}", style="bold"))
        for (topic, partition), offset in sorted(position.offsets.items()):
            console.print(Text(f"  {topic}[{partition}] learnt up to offset {offset:,}"))
        for name, model in self.models.items():
            console.print()
            console.print(Text(f"{name}: {model.config.algorithm}, {model.task}, {_params(model)}", style="bold"))
            console.print(Text(f"  {_record(model)}"))
            for heading, table in _weight_tables(model, most):
                console.print(Text(f"  {heading}"))
                console.print(table)


def _restored(checkpoint: Checkpoint, name: str) -> Model:
    meta, arrays = checkpoint.states[name]
    settings = checkpoint.settings
    return Model.restore(name, learner_of(settings, name), monitor_of(settings), dict(meta), arrays)


def _learner(model: Model, digest: str, weights: bool) -> Json:
    tally = model.tally
    shown: Json = {
        "algorithm": model.config.algorithm,
        "task": model.task,
        "params": dict(model.params),
        "classes": None if model.classes is None else [form for form in model.classes.forms if form is not None],
        "seen": tally.seen,
        "labelled": tally.labelled,
        "updates": tally.updates,
        "errors": tally.errors,
        "loss_sum": tally.loss_sum,
        "digest": digest,
    }
    if weights:
        shown |= {"bias": model.bias(), "weights": model.weights()}
        if (variances := model.variances()) is not None:
            shown["variances"] = variances
        if (covariance := model.covariance()) is not None:
            matrices = {label: _matrix(*found) for label, found in covariance.items()}
            shown["covariance"] = matrices.get(None, matrices)
    return shown


def _matrix(features: list[str], rows: NDArray[np.float64]) -> Json:
    return {"features": features, "rows": rows.tolist()}


def _params(model: Model) -> str:
    return (
        ", ".join(
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in model.params.items()
        )
        or "no parameters"
    )


def _record(model: Model) -> str:
    """How it did: every prediction was made before its label was learnt."""
    tally = model.tally
    parts = [f"{tally.seen:,} seen, {tally.labelled:,} labelled, {tally.updates:,} updates"]
    if (error := tally.error_rate()) is not None:
        majority = tally.baseline("majority")
        parts.append(f"error {error:.2%}" + (f" (majority class {majority:.2%})" if majority is not None else ""))
    if (absolute := tally.mean_absolute_error()) is not None:
        parts.append(f"mean absolute error {absolute:.4g}")
    if (loss := tally.loss_mean()) is not None:
        parts.append(f"mean loss {loss:.4g}")
    return "; ".join(parts)


def _weight_tables(model: Model, most: int | None) -> Iterator[tuple[str, Table]]:
    """The weights by name, largest first; one table, or one for each class."""
    weights, bias, variances = model.weights(), model.bias(), model.variances()
    if not isinstance(bias, Mapping):
        yield _weight_table(_toward(model), weights, bias, variances, most)
        return
    for label in bias:
        of_class = None if variances is None else variances[label]
        yield _weight_table(f"weights of class {label}", weights[label], bias[label], of_class, most)


def _toward(model: Model) -> str:
    positive = model.classes.forms[1] if model.task == "binary" and model.classes is not None else None
    return "weights" if positive is None else f"weights toward {json.dumps(positive, ensure_ascii=False)}"


def _weight_table(
    heading: str, weights: Mapping[str, float], bias: float, variances: Mapping[str, float] | None, most: int | None
) -> tuple[str, Table]:
    table = Table("feature", box=None, show_header=False, padding=(0, 2))
    table.add_column(justify="right")
    table.add_column(justify="right")
    names = sorted(weights, key=lambda name: (-abs(weights[name]), name))[:most]
    for name in names:
        doubt = "" if variances is None else f"variance {variances[name]:.3g}"
        table.add_row(Text(f"  {name}"), f"{weights[name]:+.4g}", doubt)
    table.add_row("  (bias)", f"{bias:+.4g}", "")
    left = len(weights) - len(names)
    more = f", the largest {len(names)} of {len(weights):,} (--weights shows all)" if left > 0 else ""
    return f"{heading}{more}", table
