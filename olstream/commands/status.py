"""`olstream status [URL]`: the running service in one screen."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from http.client import HTTPException
from typing import Any

import click
from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from olstream.errors import ConfigError, OlstreamError

DEFAULT_URL = "http://127.0.0.1:9108"
TIMEOUT_S = 5.0
WIDE = 125  # characters; below, the learners have fewer columns


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
    wide = console.width >= WIDE
    if not watch:
        console.print(screen(next(documents), wide))
        return
    with Live(console=console, auto_refresh=False) as live:
        for document in documents:
            live.update(screen(document, wide), refresh=True)


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


def screen(document: dict[str, Any], wide: bool = True) -> RenderableType:
    """All of it in one screen."""
    tables = _learners(document, wide), _topics(document)
    return Group(_head(document), *tables, *_rejected(document), _checkpoint(document))


def _head(document: dict[str, Any]) -> Text:
    head = Text(f"olstream {document['version']}   group {document['group']}, slot {document['slot']}, ")
    head.append(f"{document['guarantee']}, up {_duration(document['now'] - document['started'])}\n")
    for probe, good, bad in (("live", "live ", "NOT LIVE "), ("ready", "ready ", "NOT READY ")):
        ok = document[probe]["ok"]
        head.append(good if ok else bad, style="green" if ok else "bold red")
        head.append("" if ok else f"{document[probe]['detail']} ")
    return head


def _table(words: tuple[str, ...], numbers: tuple[str, ...]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in words:
        table.add_column(heading, overflow="fold")
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _learners(document: dict[str, Any], wide: bool) -> Table:
    words = ("learner", "role", "algorithm", "task") if wide else ("learner", "role")
    counts = ("seen", "labelled", "updates") if wide else ("seen",)
    errors = (("sliding", "error %\nnow"), ("fading", "\nfaded"), ("total", "\ntotal"))
    shown = [pair for pair in errors if wide or pair[0] != "fading"]
    baselines = (("majority", "baseline\nmajority"), ("no_change", "\nlast"))
    headings = (*counts, *(heading for _, heading in (*shown, *baselines)), "loss\nnow")
    table = _table(words, headings)
    for name, learner in document["learners"].items():
        table.add_row(
            Text(name),
            *(learner[word] for word in words[1:]),
            *(_count(learner[count]) for count in counts),
            *(_percent(learner["error"][window]) for window, _ in shown),
            *(_percent(learner["baseline"][which]) for which, _ in baselines),
            _number(learner["loss"]["sliding"]),
        )
    return table


def _topics(document: dict[str, Any]) -> Table:
    table = _table(("topic",), ("consumed", "rejected", "partitions", "lag", "lag age"))
    for name, topic in document["topics"].items():
        table.add_row(
            Text(name),
            _count(topic["consumed"]),
            _count(sum(topic["rejected"].values())),
            _count(len(topic["assigned"])),
            _count(sum(topic["lag"].values()) if topic["lag"] else None),
            "-" if topic["lag_seconds"] is None else _duration(topic["lag_seconds"]),
        )
    return table


def _rejected(document: dict[str, Any]) -> list[Text]:
    reasons: Counter[str] = Counter()
    for topic in document["topics"].values():
        reasons.update(topic["rejected"])
    if not reasons:
        return []
    return [Text("rejected: " + ", ".join(f"{reason} {n:,}" for reason, n in reasons.most_common()))]


def _checkpoint(document: dict[str, Any]) -> Text:
    checkpoint = document["checkpoint"]
    if checkpoint["written"] is None:
        return Text("checkpoint: none written since the start")
    age, size = _duration(document["now"] - checkpoint["written"]), _count(checkpoint["size_bytes"])
    return Text(f"checkpoint: {age} ago, {size} bytes, {_count(checkpoint['uncheckpointed'])} records learnt since")


def _count(value: float | None) -> str:
    return "-" if value is None else f"{int(value):,}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _duration(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
