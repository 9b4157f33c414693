"""The status page: how a service is doing, from its document of /status.json."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import yaml

from olstream.page import figures, shell, together, versus
from olstream.page.html import Html, element, name
from olstream.page.learners import cards, overview
from olstream.page.tables import Cell, Column, facts, table
from olstream.page.view import items, learners, mapping, number, text, whole

LINKS: Final = ("/metrics", "/status.json", "/live", "/ready")
_WORST: Final = 6  # partitions named before they are unfolded

Document = Mapping[str, Any]


def page(document: Document) -> shell.Page:
    """The page of the running service itself."""
    return shell.live(_title(document), main(document, _links()))


def report(document: Document, where: str) -> shell.Page:
    """The same to keep: how it was at one moment."""
    taken = element("p", "Report of ", name(where), f", {figures.moment(number(document.get('now')))}", class_="soft")
    return shell.still(f"Report: {_title(document)}", main(document, taken))


def _title(document: Document) -> str:
    alarm = "" if mapping(document.get("ready")).get("ok") else "▲ "
    return f"{alarm}group {text(document.get('group'))}, slot {text(document.get('slot'))} · olstream"


def main(document: Document, beside: Html) -> Html:
    all_learners = learners(document)
    return element(
        "main",
        _header(document, beside),
        _tiles(document),
        element("h2", "Learners"),
        overview(all_learners, "Errors as they came, each prediction made before its row was learnt")
        if all_learners
        else None,
        versus.comparison(all_learners),
        *together.of_routes(all_learners, mapping(document.get("config"))),
        *cards(all_learners),
        element("h2", "Kafka and state"),
        element("div", *_topics(document), class_="card apart"),
        _configuration(document),
        element("footer", f"As of {figures.moment(number(document.get('now')))}."),
    )


def _links() -> Html:
    return element("nav", *(element("a", path, href=path[1:]) for path in LINKS), aria_label="The same for machines")


def _header(document: Document, beside: Html) -> Html:
    group = name(text(document.get("group")) or "olstream")
    heading = element("h1", group, element("span", f", slot {text(document.get('slot'))}", class_="soft"))
    rss = number(mapping(document.get("process")).get("rss_bytes"))
    said = [
        *(_probe(document, probe) for probe in ("live", "ready")),
        text(document.get("guarantee")).replace("_", " "),
        f"up {figures.duration(_since(document, document.get('started')))}",
        None if rss is None else f"{figures.size(rss)} of memory",
        f"olstream {text(document.get('version'))}",
        *(f"{what} {text(document.get(key))}" for what, key in (("Python", "python"), ("librdkafka", "librdkafka"))),
    ]
    state = element(
        "ul", *(each if isinstance(each, Html) else element("li", each) for each in said if each), class_="state"
    )
    return element("header", element("div", heading, beside, class_="top"), state)


def _probe(document: Document, probe: str) -> Html:
    of = mapping(document.get(probe))
    if of.get("ok") is True:
        return element("li", probe, class_="good")
    return element("li", f"not {probe}: {text(of.get('detail'))}", class_="alarm flag")


def _since(document: Document, then: object) -> float | None:
    now, before = number(document.get("now")), number(then)
    return None if now is None or before is None else now - before


def _tiles(document: Document) -> Html:
    topics = [mapping(topic) for topic in mapping(document.get("topics")).values()]
    consumed = sum(whole(topic.get("consumed")) or 0 for topic in topics)
    rejected = _rejected(topics).total()
    lags = [lag for topic in topics for lag in _lags(topic).values()]
    ages = [age for age in (number(topic.get("lag_seconds")) for topic in topics) if age is not None]
    checkpoint = mapping(document.get("checkpoint"))
    written = _since(document, checkpoint.get("written"))
    failures = whole(checkpoint.get("failures")) or 0
    bytes_ = number(checkpoint.get("size_bytes"))
    share = figures.percent(rejected / consumed) if 10_000 * rejected >= consumed > 0 else None
    tiles = [
        ("messages consumed", figures.count(consumed), "since this start"),
        ("rejected", figures.count(rejected), share and f"{share} of them"),
        (
            "lag, messages",
            figures.count(sum(lags)) if lags else figures.ABSENT,
            f"the oldest {figures.duration(max(ages))} old" if ages else None,
        ),
        (
            "last checkpoint",
            figures.ABSENT if written is None else f"{figures.duration(written)} ago",
            "none written since the start" if written is None else figures.size(bytes_),
        ),
        (
            "learnt since then",
            figures.count(number(checkpoint.get("uncheckpointed"))),
            "records that a crash would replay",
        ),
        *([("checkpoint failures", figures.count(failures), "the log says why")] if failures else []),
    ]
    return element("dl", *(_tile(*tile) for tile in tiles), class_="tiles")


def _tile(what: str, value: str, beside: str | None) -> Html:
    small = element("small", beside) if beside else None
    return element("div", element("dt", what), element("dd", value, small))


def _rejected(topics: Sequence[Document]) -> Counter[str]:
    reasons: Counter[str] = Counter()
    for topic in topics:
        reasons.update({reason: whole(n) or 0 for reason, n in mapping(topic.get("rejected")).items()})
    return reasons


def _lags(topic: Document) -> dict[str, int]:
    return {partition: whole(lag) or 0 for partition, lag in mapping(topic.get("lag")).items()}


def _topics(document: Document) -> list[Html | None]:
    topics = {topic: mapping(of) for topic, of in mapping(document.get("topics")).items()}
    columns = [
        Column("topic", False), Column("consumed"), Column("rejected"), Column("partitions"), Column("lag"),
        Column("oldest"), Column("furthest behind", False),
    ]  # fmt: skip
    rows: list[list[Cell]] = []
    for topic, of in topics.items():
        lags = _lags(of)
        rows.append([
            name(topic),
            figures.count(whole(of.get("consumed"))),
            figures.count(_rejected([of]).total()),
            figures.count(len(items(of.get("assigned")))),
            figures.count(sum(lags.values())) if lags else figures.ABSENT,
            figures.duration(number(of.get("lag_seconds"))),
            _worst(lags),
        ])  # fmt: skip
    folds = [_partitions(topic, _lags(of), i) for i, (topic, of) in enumerate(topics.items())]
    return [
        table(columns, rows, "Input topics"),
        *folds,
        _reasons(_rejected(list(topics.values()))),
        _commits(document),
    ]


def _worst(lags: Mapping[str, int]) -> str:
    behind = sorted(((lag, partition) for partition, lag in lags.items() if lag > 0), reverse=True)[:_WORST]
    return ", ".join(f"p{partition}: {lag:,}" for lag, partition in behind) or ("none" if lags else figures.ABSENT)


def _partitions(topic: str, lags: Mapping[str, int], i: int) -> Html | None:
    if len(lags) <= 1:
        return None
    ordered = sorted(lags.items(), key=lambda pair: (len(pair[0]), pair[0]))
    cells = [element("div", element("dt", partition), element("dd", f"{lag:,}")) for partition, lag in ordered]
    summary = element("summary", "Lag by partition of ", name(topic), f", {len(lags):,} partitions", id=f"of-topic-{i}")
    return element("details", summary, element("dl", *cells, class_="partitions"), id=f"topic-{i}")


def _reasons(reasons: Counter[str]) -> Html | None:
    if not reasons.total():
        return None
    rows: list[list[Cell]] = [[name(reason), figures.count(n)] for reason, n in reasons.most_common() if n]
    return table([Column("rejected because", False), Column("messages")], rows, "Dead letters by reason", "tight")


def _commits(document: Document) -> Html | None:
    commits = {text(what).replace("_", " "): whole(n) or 0 for what, n in mapping(document.get("commits")).items()}
    return facts([(f"commits {what}", figures.count(n)) for what, n in commits.items() if n]) if commits else None


def _configuration(document: Document) -> Html | None:
    config = mapping(document.get("config"))
    return _written(json.dumps(config, ensure_ascii=False).encode("utf-8", "replace")) if config else None


@lru_cache(maxsize=2)
def _written(config: bytes) -> Html:
    """As one would write it. Kept, because it is slow and seldom changes."""
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    told = yaml.dump(json.loads(config), Dumper=dumper, sort_keys=False, allow_unicode=True, width=110)
    summary = element(
        "summary", element("h3", "Configuration"), element("span", "secrets hidden", class_="soft"), id="of-config"
    )
    return element("details", summary, element("pre", told, tabindex="0"), class_="card", id="config")
