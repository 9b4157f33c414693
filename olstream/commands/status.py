"""`olstream status [URL]`: the running service in one screen."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPException
from typing import Any

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from olstream.errors import ConfigError, OlstreamError

DEFAULT_URL = "http://127.0.0.1:9108"
TIMEOUT_S = 5.0


class Unreachable(OlstreamError):
    """No service answers there."""

    exit_code = 3


@click.command()
@click.argument("url", default=DEFAULT_URL, envvar="OLSTREAM_HTTP_URL")
@click.option("--watch", is_flag=True, help="Show it again and again, until Ctrl-C.")
@click.option("--every", default=2.0, show_default=True, type=click.FloatRange(min=0.1), help="Seconds between.")
@click.option("--json", "as_json", is_flag=True, help="Print the document itself; with --watch one a line.")
def command(url: str, watch: bool, every: float, as_json: bool) -> None:
    """Show how a running service is doing.

    \b
    Example:
      olstream status http://127.0.0.1:9108 --watch

    URL is where its http: section listens. Where that has a token, put it into OLSTREAM_HTTP_TOKEN.
    """
    documents = _documents(url, every if watch else None)
    if as_json:
        for document in documents:
            click.echo(json.dumps(document, indent=None if watch else 2))
        return
    console = Console()
    if not watch:
        console.print(screen(next(documents)))
        return
    with Live(console=console, auto_refresh=False) as live:
        for document in documents:
            live.update(screen(document), refresh=True)


def _documents(url: str, every_s: float | None) -> Iterator[dict[str, Any]]:
    while True:
        yield fetch(url)
        if every_s is None:
            return
        time.sleep(every_s)


def fetch(url: str) -> dict[str, Any]:
    """The service's own description of itself, or one sentence why not."""
    token = os.environ.get("OLSTREAM_HTTP_TOKEN")
    address = f"{url if '://' in url else f'http://{url}'}".rstrip("/") + "/status.json"
    try:
        request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"} if token else {})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=TIMEOUT_S) as answer:
            document: dict[str, Any] = json.load(answer)
            document["learners"]
            return document
    except urllib.error.HTTPError as error:
        if error.code == 401:
            raise ConfigError(f"{url} wants its token: set OLSTREAM_HTTP_TOKEN to its http.token.") from error
        raise Unreachable(f"{url} answered {error.code}: is that an olstream service?") from error
    except (KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise Unreachable(f"{url} did not answer with an olstream status: is that an olstream service?") from error
    except (OSError, ValueError, HTTPException) as error:
        why = getattr(error, "reason", error)
        raise Unreachable(f"{url} does not answer ({why}): is it running, and is that its http port?") from error


def screen(document: dict[str, Any]) -> RenderableType:
    """All of it in one screen."""
    return Group(_head(document), _learners(document), _topics(document), _checkpoint(document))


def _head(document: dict[str, Any]) -> Text:
    head = Text(f"olstream {document['version']}   group {document['group']}, slot {document['slot']}, ")
    head.append(f"{document['guarantee']}, up {_duration(document['now'] - document['started'])}\n")
    for probe, good, bad in (("live", "live ", "NOT LIVE "), ("ready", "ready ", "NOT READY ")):
        ok = document[probe]["ok"]
        head.append(good if ok else bad, style="green" if ok else "bold red")
        head.append("" if ok else f"{document[probe]['detail']} ")
    return head


def _learners(document: dict[str, Any]) -> Table:
    table = Table(title="learners", title_justify="left")
    for heading in ("name", "algorithm", "role"):
        table.add_column(heading)
    for heading in ("seen", "labelled", "updates", "error now", "faded", "total", "majority", "last", "loss"):
        table.add_column(heading, justify="right")
    for name, learner in document["learners"].items():
        error, baseline = learner["error"], learner["baseline"]
        table.add_row(
            Text(name),
            f"{learner['algorithm']} {learner['task']}",
            learner["role"],
            *(_count(learner[key]) for key in ("seen", "labelled", "updates")),
            *(_percent(error[window]) for window in ("sliding", "fading", "total")),
            *(_percent(baseline[which]) for which in ("majority", "no_change")),
            _number(learner["loss"]["sliding"]),
        )
    return table


def _topics(document: dict[str, Any]) -> Table:
    table = Table(title="input", title_justify="left")
    table.add_column("topic")
    for heading in ("consumed", "rejected", "partitions", "lag", "lag age"):
        table.add_column(heading, justify="right")
    for name, topic in document["topics"].items():
        rejected, lag = topic["rejected"], topic["lag"]
        table.add_row(
            Text(name),
            _count(topic["consumed"]),
            _count(sum(rejected.values())) + (f" ({', '.join(sorted(rejected))})" if rejected else ""),
            _count(len(topic["assigned"])),
            _count(sum(lag.values()) if lag else None),
            "-" if topic["lag_seconds"] is None else _duration(topic["lag_seconds"]),
        )
    return table


def _checkpoint(document: dict[str, Any]) -> Text:
    checkpoint = document["checkpoint"]
    if checkpoint["written"] is None:
        return Text("checkpoint: none written since the start")
    age, size = _duration(document["now"] - checkpoint["written"]), _count(checkpoint["size_bytes"])
    return Text(f"checkpoint: {age} ago, {size} bytes, {_count(checkpoint['uncheckpointed'])} records learnt since")


def _count(value: float | None) -> str:
    return "-" if value is None else f"{int(value):,}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f} %"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _duration(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
