"""`olstream compare FILE --task T`: one pass over a file, several learners side by side."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

import click
import orjson
from pydantic import ValidationError
from rich.console import Console

from olstream import mistakes
from olstream.admit import Admission
from olstream.classes import Classes
from olstream.comparison import chart, foreign, lineup, report
from olstream.comparison.contest import Contest
from olstream.comparison.entrants import Entrant, Ours, Task, baselines
from olstream.config import InputConfig, LearnerConfig, MonitorConfig, load
from olstream.configfile import File
from olstream.errors import ConfigError
from olstream.io.bar import bar
from olstream.io.examples import decoder_of, examples
from olstream.io.files import FORMATS, Input, reading
from olstream.io.lines import Line
from olstream.io.outfile import OutFile, refuse_overwriting
from olstream.io.starts import begin
from olstream.learners.base import TASKS
from olstream.messages import Reason
from olstream.model import Model

_WIDTH: Final = 120  # where the output is no terminal
# What a configuration says by itself.
_NOT_WITH_CONFIG: Final = (
    "algorithms",
    "param",
    "classes",
    "label",
    "features",
    "exclude",
    "category",
    "text",
    "scale",
)
_LIBSVM_HAS_NONE: Final = ("label", "features")


class Names(click.ParamType[list[str]]):
    """Names between commas."""

    name = "NAME,..."

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        names = value if isinstance(value, list) else [name.strip() for name in str(value).split(",")]
        if not all(names):
            self.fail("write names with a comma between them, such as a,b", param, ctx)
        return names


@click.command()
@click.argument("file")
@click.option("--task", type=click.Choice(TASKS), help="What the label is; not needed with --config.")
@click.option("--algorithms", type=Names(), default=[], help="Default: all there are for the task.")
@click.option("--param", multiple=True, metavar="NAME.P=V", help="A hyperparameter, such as arow.r=0.1; may repeat.")
@click.option("--label", metavar="COLUMN", help="Where the label is. Default: label.")
@click.option("--features", metavar="PATH", help="NDJSON: where the features are; `.`: the whole message.")
@click.option("--exclude", type=Names(), default=[], help="What is no feature.")
@click.option("--category", type=Names(), default=[], help="Features whose numbers are codes.")
@click.option("--text", type=Names(), default=[], help="Features that are free text, to be told into words.")
@click.option("--classes", type=Names(), help="All of them; binary: negative,positive. Default: as they come.")
@click.option(
    "--scale", type=click.Choice(["none", "standard"]), help="standard: numbers by mean and deviation so far."
)
@click.option("--config", type=click.Path(path_type=Path), help="Compare the learners of that file; it says the rest.")
@click.option(
    "--also",
    multiple=True,
    metavar="MODULE:FACTORY",
    help="A River or scikit-learn model; it gets what is in the file.",
)
@click.option("--format", "format_", type=click.Choice(FORMATS), help="Default: by the ending, and ndjson for `-`.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of the table.")
@click.option("--plot", metavar="FILE", help="Error curves over the stream, as .svg or .png.")
def command(file: str, format_: str | None, as_json: bool, plot: str | None, **given: Any) -> None:
    """Let several learners predict and learn each line of FILE (`-`: standard input), and rank them.

    Each row is predicted before it is learnt. NDJSON holds a message a line, CSV names its columns in the header,
    libsvm has a label and then index:value; all may be gzip'd. Below the learners stand two that know nothing of
    the features: the majority class and the last label so far, in a regression the mean and the last value.

    \b
    Example:
      olstream compare flights.csv.gz --task binary --label late --exclude id --scale standard --plot curves.svg
    """
    refuse_overwriting({"input": file}, {"--plot": plot})
    draw = None if plot is None else _drawer(plot)
    with ExitStack() as stack:
        source = stack.enter_context(reading(file, format_))
        ring = _by_config(given) if given["config"] else _by_options(given, source.format)
        source = ring.checked(source)
        picture = stack.enter_context(OutFile(plot)) if plot else None
        began = time.perf_counter()
        with bar(source) as moved:
            contest = ring.run(source, moved)
        seconds = time.perf_counter() - began
        if draw and picture:
            picture.write(draw(report.chart(contest, ring.task, source.name, ring.fading)))
    if as_json:
        click.echo(orjson.dumps(report.document(contest, ring.task)).decode())
    else:
        _show(contest, ring, source, seconds)


@dataclass
class Ring:
    """What is compared, and how the file is read for it."""

    task: Task
    door: LearnerConfig  # whose task and classes decide which labels there are
    entrants: Sequence[Entrant]
    input: InputConfig
    fading: float
    columns: Mapping[str, Sequence[str]]  # that options name, by option

    def run(self, source: Input, moved: Any) -> Contest:
        door = self.door
        classes = None if self.task == "regression" else Classes(self.task, door.classes, door.classes_max)
        contest = Contest(Admission(classes, {}), self.entrants, baselines(self.task, self.fading))
        decoder = decoder_of(source.format, self.input)
        while lines := list(islice(source.lines, self.input.batch_max)):
            contest.take(examples(decoder, lines))
            moved(contest.rows)
        return contest

    def checked(self, source: Input) -> Input:
        """The same lines. A slip in a name would make a feature of what is none, or leave all without a label."""
        if source.format != "csv":
            return source
        first = list(islice(source.lines, self.input.batch_max))
        self._check_columns(first, source.name)
        return replace(source, lines=chain(first, source.lines))

    def _check_columns(self, lines: Sequence[Line], name: str) -> None:
        there = next((list(line.tree) for line in lines if isinstance(line.tree, dict)), [])
        for option, wanted in self.columns.items() if there else ():
            for column in wanted:
                if column not in there:
                    near = mistakes.nearest(column, there) or _listed(there)
                    raise ConfigError(f"{option}: {name} has no column {column!r}{near}")


def _listed(columns: Sequence[str]) -> str:
    return f"; it has {', '.join(columns[:20])}{', ...' if len(columns) > 20 else ''}"


def _by_config(given: Mapping[str, Any]) -> Ring:
    for option in _NOT_WITH_CONFIG:
        if given[option]:
            raise click.UsageError(f"--{option} is what the file of --config says: leave one of them out")
    config = load(given["config"])
    names = [name for name, learner in config.learners.items() if given["task"] in (None, learner.task)]
    if not names:
        raise ConfigError(f"no learner of {given['config']} has the task {given['task']}")
    if len({config.learners[name].task == "regression" for name in names}) > 1:
        raise click.UsageError("the configuration has learners of classes and of numbers: say --task")
    door, fading = config.learners[names[0]], config.monitor.fading
    entrants = [Ours(name, begin(config, name).model, fading) for name in names]
    return Ring(door.task, door, [*entrants, *_others(given["also"], door, fading)], config.input, fading, {})


def _by_options(given: Mapping[str, Any], format_: str) -> Ring:
    if given["task"] is None:
        raise click.UsageError(f"--task is missing: {', '.join(TASKS)}, or --config")
    for option in _LIBSVM_HAS_NONE if format_ == "libsvm" else ():
        if given[option]:
            raise click.UsageError(f"--{option} has no meaning in libsvm, whose lines begin with the label")
    features = {"category": given["category"], "text": dict.fromkeys(given["text"], "words")}
    shared = {"classes": given["classes"], "scale": given["scale"] or "none", "features": features}
    configs = lineup.learners(given["task"], given["algorithms"], given["param"], shared)
    monitor = MonitorConfig()
    ours = [Ours(name, Model(name, config, monitor), monitor.fading) for name, config in configs.items()]
    door = next(iter(configs.values()))
    columns = {f"--{option}": given[option] for option in ("exclude", "category", "text")}
    columns = {"--label": [given["label"] or "label"], **columns}
    entrants = [*ours, *_others(given["also"], door, monitor.fading)]
    return Ring(given["task"], door, entrants, _input(given, format_), monitor.fading, columns)


def _others(named: Sequence[str], door: LearnerConfig, fading: float) -> list[Entrant]:
    if named and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # as for `python -m`
    classes = None if door.classes is None else len(door.classes)
    return [foreign.entrant(name, door.task, classes, fading) for name in dict.fromkeys(named)]


def _input(given: Mapping[str, Any], format_: str) -> InputConfig:
    """Where things are. `--exclude` names features: below the features object where that is not all of the message."""
    fields = {field: given[field] for field in ("label", "features") if given[field]}
    within = "" if format_ == "csv" or given["features"] == "." else f"{given['features'] or 'features'}."
    excluded = [name if name.startswith(within) else within + name for name in given["exclude"]]
    try:
        return InputConfig.model_validate({"fields": fields, "exclude": excluded})
    except ValidationError as error:
        raise mistakes.config_error(error, InputConfig, File("the command line")) from None


def _drawer(plot: str) -> Any:
    ending = Path(plot).suffix.lower()
    if ending not in (".svg", ".png"):
        raise click.UsageError(f"--plot {plot}: the name must end in .svg or .png")
    if ending == ".svg":
        return chart.svg
    chart.check_png()
    return chart.png


def _show(contest: Contest, ring: Ring, source: Input, seconds: float) -> None:
    console = Console()
    console = console if console.is_terminal else Console(width=_WIDTH)
    refused = contest.rejected.total()
    rows = f"{contest.rows:,} row{'' if contest.rows == 1 else 's'}"
    told = f"{source.name}: {rows} in {seconds:.1f} s, {contest.rows - refused:,} accepted"
    if contest.unmatched:
        told += f" ({contest.unmatched:,} of them a label without features, which nothing waits for)"
    console.print(f"{told}, {refused:,} rejected:" if refused else told, highlight=False, markup=False)
    for reason, n in sorted(contest.rejected.items()):
        console.print(f"  {n:,} {reason}; the first: {contest.details[reason]}", highlight=False, markup=False)
    console.print(report.table(contest, ring.task))
    for sentence in _remarks(contest, ring, source.format):
        console.print(sentence, style="dim", highlight=False, markup=False, soft_wrap=True)


def _remarks(contest: Contest, ring: Ring, format_: str) -> list[str]:
    if contest.rows and not contest.labelled:
        were_missing = contest.rejected.keys() <= {Reason.MISSING_FIELDS}
        return [_without_labels(contest, ring, format_)] if were_missing else []
    names = ", ".join(baseline.name for baseline in contest.baselines)
    said = [f"{names}: always guessing that; loss: the mean one, each learner's own; rows/s: of the learner alone"]
    if behind := contest.no_better_than_a_baseline():
        said.append(f"no better than one of them: {', '.join(behind)}")
    return said


def _without_labels(contest: Contest, ring: Ring, format_: str) -> str:
    label, features = ("--label", "--features") if ring.columns else ("input.fields.label", "input.fields.features")
    fields = ring.input.fields
    if format_ == "ndjson" and contest.rejected[Reason.MISSING_FIELDS]:
        said = f"no row had features under {fields.features!r} and a label under {fields.label!r}"
        return f"{said}: say where they are with {features} (`.`: the whole message) and {label}"
    return f"no row had a label under {fields.label!r}: say where it is with {label}"
