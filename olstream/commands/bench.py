"""`olstream bench`: what one message costs, against a loop that only moves the same bytes, and against others."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import click
from rich.console import Console

from olstream.bench import NEED_NO_KAFKA, PARTS


class Parts(click.ParamType[list[str]]):
    """Names of parts between commas."""

    name = "PART,..."

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        names = [name.strip() for name in str(value).split(",")] if not isinstance(value, list) else value
        for name in names:
            if name not in PARTS:
                self.fail(f"{name!r} is no part: {', '.join(PARTS)}", param, ctx)
        return [name for name in PARTS if name in names]


class Explained(click.Command):
    """A command whose help also says what the rows of its table mean."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Parts of the table"):
            formatter.write_dl(list(PARTS.items()))
        super().format_epilog(ctx, formatter)


@click.command(cls=Explained, epilog="Example:  olstream bench --bootstrap localhost:9092 --only loop,latency")
@click.option("--bootstrap", help="A Kafka to measure on; topics are made and deleted there.")
@click.option("--only", type=Parts(), default=list(PARTS), help="These parts. Default: all of them.")
@click.option(
    "--rivals",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A Python with requirements-bench.lock, to compare with Quix Streams, River, Vowpal Wabbit, scikit-learn.",
)
@click.option("--records", default=200_000, show_default=True, type=click.IntRange(min=10_000))
@click.option("--repetitions", default=5, show_default=True, type=click.IntRange(min=1))
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of the table.")
def command(
    bootstrap: str | None, only: list[str], rivals: Path | None, records: int, repetitions: int, as_json: bool
) -> None:
    """Measure the service on this machine, in pairs with what it is compared with.

    Ratios within one run are what counts: all of it is slowed alike by the machine, the broker and their neighbours.
    The whole takes some minutes.
    """
    if bootstrap is None and not set(only) <= NEED_NO_KAFKA:
        raise click.UsageError(f"--bootstrap is missing; without a Kafka: --only {','.join(sorted(NEED_NO_KAFKA))}")

    from olstream.bench.part import Bench
    from olstream.bench.report import document, measured, show

    progress = Console(stderr=True, style="dim", highlight=False)
    bench = Bench(
        kafka={"bootstrap.servers": bootstrap or ""},
        prefix=f"olstream-bench-{uuid.uuid4().hex[:8]}",
        records=records,
        repetitions=repetitions,
        rivals=None if rivals is None else str(rivals.absolute()),
        say=progress.print,
    )
    parts = measured(bench, only)
    if as_json:
        click.echo(json.dumps(document(parts)))
    else:
        show(parts, Console())
