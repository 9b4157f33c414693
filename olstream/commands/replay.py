"""`olstream replay CONFIG FILE`: the pipeline of `run` over a file, without Kafka."""

from __future__ import annotations

import logging
import time
import uuid
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

import click
import orjson
from rich.console import Console
from rich.table import Table

from olstream import logs
from olstream.alarms import Reading
from olstream.checkpoint import MANIFEST, Checkpoint, Position
from olstream.config import Config, load
from olstream.errors import ConfigError, StateError
from olstream.inert import inert
from olstream.io.bar import bar
from olstream.io.disk import Store
from olstream.io.examples import decoder_of, examples
from olstream.io.files import FORMATS, STDIN, Input, reading
from olstream.io.lines import Line
from olstream.io.outfile import OutFile, refuse_overwriting, streamed, told
from olstream.io.starts import begin
from olstream.messages import Chunk, Reason
from olstream.model import Model, digest_of
from olstream.pipeline import Pipeline, Processed
from olstream.settings import differences, identity, settings, with_settings
from olstream.start import empty

log = logging.getLogger(__name__)

_LINEAGE: Final = "replay-"  # of a directory that only `replay` writes: no journal leads on from there
_WIDTH: Final = 120  # where the output is no terminal


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.argument("file")
@click.option("--format", "format_", type=click.Choice(FORMATS), help="Default: by the ending, and ndjson for `-`.")
@click.option("--out", metavar="FILE", help="Write the predictions there, as NDJSON; `-` for standard output.")
@click.option("--dead-letters", metavar="FILE", help="Write refused messages there, as NDJSON with the reason of each.")
@click.option(
    "--state", metavar="DIR", type=click.Path(path_type=Path), help="Save the models there; go on from those there."
)
@click.option("--json", "as_json", is_flag=True, help="The summary as one JSON object.")
def command(
    config: Path,
    file: str,
    format_: str | None,
    out: str | None,
    dead_letters: str | None,
    state: Path | None,
    as_json: bool,
) -> None:
    """Predict and learn from each line of FILE (`-`: standard input) as `run` would from a topic.

    NDJSON holds a message a line. In CSV the header names the fields, and the whole row is features but for
    what `input.fields` maps and `exclude` names. In libsvm a label is followed by index:value. All may be gzip'd.
    A line number is that of the message: a CSV header is not counted. Blank lines and comments of libsvm are.

    \b
    Example:
      olstream replay config.yaml events.ndjson.gz --out predictions.ndjson
    """
    out, dead_letters = streamed(out), streamed(dead_letters)
    refuse_overwriting({"configuration": str(config), "input": file}, {"--out": out, "--dead-letters": dead_letters})
    configuration = load(config)
    logs.setup(configuration.log)
    for sentence in inert(configuration):
        log.warning(sentence)
    with ExitStack() as stack:
        source = stack.enter_context(reading(file, format_, configuration.input.max_message_bytes))
        for sentence in _routes_in_vain(configuration, source.name):
            log.warning(sentence)
        saved = stack.enter_context(_state(state, configuration)) if state else None
        models = saved.models if saved else {name: _begun(configuration, name) for name in configuration.learners}
        predictions, letters = (stack.enter_context(OutFile(path)) if path else None for path in (out, dead_letters))
        replay = Replay(configuration, models, source)
        with bar(source) as moved:
            for done in replay.run():
                moved(replay.rows)
                _write_predictions(done, predictions)
                _write_letters(done, letters)
        for written in filter(None, (predictions, letters)):
            written.flush()
        if saved:
            saved.save(source.name, replay.rows, replay.next_offset)
    _tell(replay, as_json, to_stderr=STDIN in (out, dead_letters))


@dataclass
class Replay:
    """One pass over one file, and what it came to."""

    config: Config
    models: dict[str, Model]
    source: Input
    rows: int = 0
    next_offset: int = 0
    rejected: Counter[Reason] = field(default_factory=Counter)
    details: dict[str, str] = field(default_factory=dict)  # by reason, of the first message
    label_only: int = 0  # messages, and how many of them met the features they are for
    joined: int = 0
    rows_by_learner: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def run(self) -> Iterator[Processed]:
        """Each batch when it has been learnt."""
        pipeline = Pipeline(self.config, self.models)
        is_plain = self.source.format == "ndjson"  # which the pipeline reads by itself
        decoder = None if is_plain else decoder_of(self.source.format, self.config.input, pipeline.router.carry)
        for model in self.models.values():
            model.waiting.go_on_in(self.source.name)
            model.warm_up()  # so that `rows_per_s` tells of learning, not of compiling
        while lines := list(islice(self.source.lines, self.config.input.batch_max)):
            began = time.perf_counter()
            chunk = self._chunk(lines)
            done = pipeline.process(chunk, None if decoder is None else examples(decoder, lines))
            self._count(done, time.perf_counter() - began)
            yield done

    def summary(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            "rows": self.rows,
            "accepted": self.rows - self.rejected.total(),
            "rejected": {reason.value: n for reason, n in sorted(self.rejected.items())},
            "learners": {name: self._of_learner(name, model) for name, model in self.models.items()},
        }

    def _of_learner(self, name: str, model: Model) -> dict[str, Any]:
        tally = model.tally
        measured: dict[str, Any] = {
            "seen": tally.seen,
            "labelled": tally.labelled,
            "updates": tally.updates,
            "errors": tally.errors,
            "error_rate": tally.error_rate(),
            "loss_mean": tally.loss_mean(),
        }
        if self.config.learners[name].task == "regression":
            measured["mae"] = tally.mean_absolute_error()
        measured["rows_per_s"] = round(self.rows_by_learner[name] / self.seconds, 1) if self.seconds else 0.0
        return measured

    def _chunk(self, lines: Sequence[Line]) -> Chunk:
        n = len(lines)
        offsets = [line.offset for line in lines]
        values: list[bytes | None] = [line.data for line in lines]
        return Chunk(self.source.name, 0, offsets, [None] * n, [None] * n, values, [None] * n)

    def _count(self, done: Processed, seconds: float) -> None:
        self.rows += len(done.chunk)
        self.next_offset = done.chunk.offsets[-1] + 1
        for _, reject in sorted(done.rejects.items()):
            self.rejected[reject.reason] += 1
            self.details.setdefault(reject.reason.value, reject.detail)
        self.label_only += done.joined.label_only.total()
        self.joined += sum(len(result.late) for result in done.results if result.role == "champion")
        for result in done.results:
            self.rows_by_learner[result.model.name] += result.rows.counts.seen
        self.seconds += seconds


class State:
    """A directory with the models of earlier replays. Nobody else may write there meanwhile."""

    def __init__(self, store: Store, config: Config) -> None:
        self.config = config
        self.store = store
        directory, checkpoint = store.directory, store.load()
        if checkpoint is None and store.has_damaged():
            raise StateError(f"the only checkpoint in {directory} is damaged: move the directory away to begin empty")
        self.position = checkpoint.position if checkpoint else Position(_LINEAGE + uuid.uuid4().hex)
        if not self.position.lineage.startswith(_LINEAGE):
            raise StateError(f"{directory} is the state of a worker: give `replay --state` a directory of its own")
        before = self._restored(checkpoint, directory) if checkpoint else {}
        made = None if checkpoint else directory
        self.models = {name: before.get(name) or _begun(config, name, made) for name in config.learners}

    def save(self, name: str, rows: int, next_offset: int) -> None:
        """The models as they are now, that many rows later, which end before that line of the file."""
        states = {name: model.state() for name, model in self.models.items()}
        digests = {name: digest_of(*state) for name, state in states.items()}
        offsets = {**self.position.offsets, (name, 0): next_offset}
        position = Position(self.position.lineage, self.position.seq + rows, 0, offsets)
        with told(self.store.directory):
            self.store.save(Checkpoint(states, digests, position, settings(self.config)))

    def _restored(self, checkpoint: Checkpoint, directory: Path) -> dict[str, Model]:
        then = with_settings(self.config, dict(checkpoint.settings))
        models: dict[str, Model] = {}
        for name, (meta, arrays) in checkpoint.states.items():
            if name not in self.config.learners:
                raise StateError(
                    f"{directory} holds a learner {name} that is not configured: put it back, or use another directory"
                )
            changed = differences(identity(then, name), identity(self.config, name))
            if changed:
                raise StateError(
                    f"learner {name} in {directory} has learnt under other settings ({', '.join(changed)}): "
                    "put them back, or use another directory"
                )
            learner, monitor = self.config.learners[name], self.config.monitor
            models[name] = Model.restore(name, learner, monitor, dict(meta), dict(arrays))
        return models


@contextmanager
def _state(directory: Path, config: Config) -> Iterator[State]:
    _refuse_the_state_of_others(directory)
    store = Store(directory, config.checkpoint.keep)
    store.open()
    try:
        yield State(store, config)
    finally:
        store.close()


def _refuse_the_state_of_others(directory: Path) -> None:
    """Those of workers lie in `<group>/<slot>`, each with its lock; one checkpoint by itself has a manifest."""
    for below in ("*", "*/*"):
        for lock in sorted(directory.glob(f"{below}/lock")):
            raise StateError(f"{lock.parent} is the state of a worker: give `replay --state` a directory of its own")
    if directory.exists() and not directory.is_dir():
        raise ConfigError(f"{directory} is a file: give `--state` a directory")
    if (directory / MANIFEST).is_file():
        raise StateError(f"{directory} is a checkpoint itself: give `replay --state` a directory of its own")


def _begun(config: Config, name: str, made: Path | None = None) -> Model:
    """The learner before its first row: empty where start_from names the very directory that is made here."""
    path, hash_, _ = (config.learners[name].start_from or "").rpartition("#")
    is_made = made is not None and hash_ and Path(path).resolve() == made.resolve()
    return (empty if is_made else begin)(config, name).model


def _routes_in_vain(config: Config, topic: str) -> Iterator[str]:
    """Why some routes match no line of a file, whatever stands in it."""
    elsewhere = [i for i, route in enumerate(config.routes) if topic not in route.when.get("topic", [topic])]
    if elsewhere:
        yield f"{_routes(elsewhere)} nothing here: in a replay the topic is the file's name, {topic}"
    headed = [i for i, route in enumerate(config.routes) if any(key.startswith("header.") for key in route.when)]
    if headed:
        yield f"{_routes(headed)} nothing here: lines of a file have no headers"


def _routes(numbers: Sequence[int]) -> str:
    return f"{', '.join(f'routes.{i}' for i in numbers)} match{'es' if len(numbers) == 1 else ''}"


def _write_predictions(done: Processed, out: OutFile | None) -> None:
    if out is not None:
        out.write(b"".join([value + b"\n" for value in done.predictions if value is not None]))


def _write_letters(done: Processed, out: OutFile | None) -> None:
    if out is None:
        return
    for i, reject in sorted(done.rejects.items()):
        letter = {
            "line": done.chunk.offsets[i] + 1,
            "reason": reject.reason.value,
            "detail": reject.detail,
            "value": b64encode(done.chunk.values[i] or b"").decode(),
        }
        out.write(orjson.dumps(letter) + b"\n")


def _tell(replay: Replay, as_json: bool, to_stderr: bool) -> None:
    if as_json:
        click.echo(orjson.dumps(replay.summary()).decode(), err=to_stderr)
        return
    console = Console(stderr=to_stderr)
    _show(console if console.is_terminal else Console(stderr=to_stderr, width=_WIDTH), replay)


def _show(console: Console, replay: Replay) -> None:
    summary = replay.summary()
    console.print(_sentence(replay, summary), highlight=False)
    for reason, n in summary["rejected"].items():
        console.print(f"  {n:,} {reason}; the first: {replay.details[reason]}", highlight=False, markup=False)
    tasks = {learner.task for learner in replay.config.learners.values()}
    measures = ["error", "majority", "last label"] if tasks != {"regression"} else []
    measures += ["mean abs. error"] if "regression" in tasks else []
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("learner")
    for column in ("seen", "labelled", *measures, "loss", "updates", "rows/s"):
        table.add_column(column, justify="right")
    for name, model in replay.models.items():
        table.add_row(*_cells(name, model, summary["learners"][name], measures))
    console.print(table)
    for name, model in replay.models.items():
        for each in model.alarms.readings():
            if each.detections:
                console.print(_drift(name, each), highlight=False, markup=False)
    if "majority" in measures:
        console.print("majority, last label: the error of always guessing that; loss: the mean one", style="dim")


def _sentence(replay: Replay, summary: dict[str, Any]) -> str:
    rows = f"{summary['rows']:,} row{'' if summary['rows'] == 1 else 's'}"
    told = f"{replay.source.name}: {rows} in {replay.seconds:.1f} s, {summary['accepted']:,} accepted"
    if replay.label_only:
        told += f" ({replay.label_only:,} of them a label alone: {replay.joined:,} joined with the features before)"
    refused = summary["rows"] - summary["accepted"]
    return f"{told}, {refused:,} rejected:" if refused else told


def _cells(name: str, model: Model, of: dict[str, Any], measures: Sequence[str]) -> list[str]:
    values = {
        "error": _percent(of["error_rate"]),
        "majority": _percent(model.tally.baseline("majority")),
        "last label": _percent(model.tally.baseline("no_change")),
        "mean abs. error": _number(of.get("mae")),
    }
    return [
        name,
        f"{of['seen']:,}",
        f"{of['labelled']:,}",
        *(values[measure] for measure in measures),
        _number(of["loss_mean"]),
        f"{of['updates']:,}",
        f"{of['rows_per_s']:,.0f}",
    ]


def _drift(name: str, reading: Reading) -> str:
    n, last = reading.detections, reading.marks[-1]
    times = "once" if n == 1 else f"{n:,} times, last"
    return f"{name}: {reading.detector} said drift in the {reading.signal} {times} at labelled row {last:,}"


def _percent(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2%}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:#.4g}"
