"""`olstream status [URL]`: the running service in one screen."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, Final

import click
from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from olstream.errors import ConfigError, OlstreamError
from olstream.page import figures
from olstream.page.view import Learner, learners

DEFAULT_URL = "http://127.0.0.1:9108"
TIMEOUT_S = 5.0
_SPARK: Final = 24  # characters of a curve


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
    if not watch or not console.is_terminal:  # a file gets one screen after the other
        for document in documents:
            console.print(screen(document, console))
        return
    with Live(console=console, auto_refresh=False) as live:
        for document in documents:
            live.update(screen(document, console), refresh=True)


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


def screen(document: dict[str, Any], console: Console) -> RenderableType:
    """All of it in one screen: the wider that is, the more columns."""
    shown = [column for column in COLUMNS if column.from_width <= console.width and column.can(console)]
    told = learners(document)
    tables = _learners(told, shown), *_compared(told), _topics(document)
    return Group(_head(document), *tables, *_rejected(document), _checkpoint(document))


def _head(document: dict[str, Any]) -> Text:
    head = Text(f"olstream {document['version']}   group {document['group']}, slot {document['slot']}, ")
    head.append(f"{document['guarantee']}, up {figures.duration(document['now'] - document['started'])}\n")
    for probe, good, bad in (("live", "live ", "NOT LIVE "), ("ready", "ready ", "NOT READY ")):
        ok = document[probe]["ok"]
        head.append(good if ok else bad, style="green" if ok else "bold red")
        head.append("" if ok else f"{document[probe]['detail']} ")
    return head


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the learners."""

    heading: str
    cell: Callable[[Learner], str | Text]
    from_width: int = 0  # characters that the terminal has
    is_word: bool = False
    is_picture: bool = False

    def can(self, console: Console) -> bool:
        """A picture needs characters that not every terminal has."""
        return not self.is_picture or console.encoding.lower().startswith("utf")


def _drift(learner: Learner) -> Text:
    state = learner.drift.state
    return Text(
        state or figures.ABSENT, style="bold red" if state == "drift" else "yellow" if state == "warning" else ""
    )


def _last_drift(learner: Learner) -> Text:
    told = figures.ABSENT if learner.drift_ago is None else f"{learner.drift_ago:,} rows"
    return Text(told, style="yellow" if learner.has_drifted else "")


COLUMNS: Final = [
    Column("learner", lambda learner: Text(learner.name), is_word=True),
    Column("role", lambda learner: learner.role, is_word=True),
    Column("algorithm", lambda learner: learner.algorithm, 120, is_word=True),
    Column("task", lambda learner: learner.task, 140, is_word=True),
    Column("seen", lambda learner: figures.count(learner.seen)),
    Column("labelled", lambda learner: figures.count(learner.labelled), 130),
    Column("updates", lambda learner: figures.count(learner.updates), 185),
    Column("error\nnow", lambda learner: learner.shown(learner.now)),
    Column("\nfaded", lambda learner: learner.shown(learner.error["fading"]), 195),
    Column("\ntotal", lambda learner: learner.shown(learner.error["total"])),
    Column("baseline\nmajority", lambda learner: figures.percent(learner.majority)),
    Column("\nlast", lambda learner: figures.percent(learner.no_change)),
    Column("loss\nnow", lambda learner: figures.number(learner.loss["sliding"])),
    Column("drift", _drift, is_word=True),
    Column("last drift\nago", _last_drift, 110),
    Column("regret", lambda learner: figures.signed(learner.regret), 175),
    Column("recent error", lambda learner: figures.sparkline(learner.recent.error, _SPARK), 165, is_picture=True),
]


def _table(columns: Iterable[tuple[str, bool]]) -> Table:
    """Headings, and whether words stand below them."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading, is_word in columns:
        if is_word:
            table.add_column(heading, overflow="fold")
        else:
            table.add_column(heading, justify="right", no_wrap=True)
    return table


def _learners(all_of_them: Iterable[Learner], columns: Sequence[Column]) -> Table:
    table = _table((column.heading, column.is_word) for column in columns)
    for learner in all_of_them:
        table.add_row(*(column.cell(learner) for column in columns))
    return table


def _compared(all_of_them: Iterable[Learner]) -> list[Table]:
    """Shadows against their champions, where there are some."""
    numbers = ("rows", "difference\nfaded", "\ntotal", "McNemar\nfaded", "Q\nfaded")
    table = _table([("learner", True), ("against", True), *((heading, False) for heading in numbers), ("is", True)])
    for learner in all_of_them:
        for each in learner.versus:
            table.add_row(
                Text(learner.name),
                Text(each.champion),
                figures.count(each.rows),
                learner.shown_difference(each.difference["fading"]),
                learner.shown_difference(each.difference["total"]),
                figures.signed(each.evidence["fading"]),
                figures.signed(each.q["fading"]),
                each.verdict or figures.ABSENT,
            )
    return [table] if table.row_count else []


def _topics(document: dict[str, Any]) -> Table:
    numbers = ("consumed", "rejected", "partitions", "lag", "lag age")
    table = _table([("topic", True), *((heading, False) for heading in numbers)])
    for name, topic in document["topics"].items():
        table.add_row(
            Text(name),
            figures.count(topic["consumed"]),
            figures.count(sum(topic["rejected"].values())),
            figures.count(len(topic["assigned"])),
            figures.count(sum(topic["lag"].values()) if topic["lag"] else None),
            figures.duration(topic["lag_seconds"]),
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
    age, size = figures.duration(document["now"] - checkpoint["written"]), figures.size(checkpoint["size_bytes"])
    told = f"checkpoint: {age} ago, {size}, {figures.count(checkpoint['uncheckpointed'])} records learnt since"
    failures = checkpoint.get("failures") or 0
    return Text(told).append(f", {figures.plural(failures, 'failure')}", style="bold red") if failures else Text(told)
