"""`olstream bench`: what one message costs, against a loop that only moves the same bytes."""

from __future__ import annotations

import json
import uuid

import click
from rich.console import Console


@click.command(epilog="Example:  olstream bench --bootstrap localhost:9092 --repetitions 5")
@click.option("--bootstrap", required=True, help="A Kafka to measure on; topics are made and deleted there.")
@click.option("--records", default=200_000, show_default=True, type=click.IntRange(min=10_000))
@click.option("--repetitions", default=5, show_default=True, type=click.IntRange(min=1))
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of the tables.")
def command(bootstrap: str, records: int, repetitions: int, as_json: bool) -> None:
    """Measure the loop end to end and by stages, in pairs with a bare loop.

    The bare loop uses the same client and settings to consume the same records and to produce records of a
    prediction's size in transactions, without decoding or learning. The ratio of the two is what counts: both
    are slowed alike by the machine, the broker and their neighbours.
    """
    from olstream.bench.load import Topics
    from olstream.bench.pairs import measure

    console = Console(stderr=as_json)
    topics = Topics({"bootstrap.servers": bootstrap}, f"olstream-bench-{uuid.uuid4().hex[:8]}")
    report = measure(topics, records, repetitions, console)
    if as_json:
        click.echo(json.dumps(report.document()))
    else:
        report.show(console)
