"""The dashboards and rules as the tests read them: panels, queries, what an expression asks for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from olstream.config import Config
from olstream.metrics import Metrics
from olstream.series import Counters, Family, Histograms
from tests.deploy.prometheus import DEPLOY, RULES
from tests.page import THREE, Service

BOARDS = {path.stem: path for path in sorted((DEPLOY / "grafana" / "dashboards").glob("*.json"))}
ADDED = {"job", "instance"}  # by Prometheus itself

VARIABLES = {"$__rate_interval": "15s", "$__range": "10m", "$class": "1"}
VARIABLES |= dict.fromkeys(("$job", "$instance", "$learner", "$topic"), ".+")

# What a healthy run has no value for, and why. test_synthetic.py gives each of them one; all others must have one live.
NOT_LIVE = {
    "runtime: Errors by code: A": "the broker answers throughout",
    "runtime: Writes that failed: A": "every write is taken",
    "runtime: Writes that failed: B": "every write is taken",
    "Reload": "the configuration stays",
    "Champion": "the champion stays",
    "Restore while running": "no assignment is lost",
}

NOT_METRICS = {"and", "or", "unless", "bool", "offset", "by", "without", "on", "ignoring", "group_left", "group_right"}
GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
SELECTOR = re.compile(r"(?<![\w:$.])([a-zA-Z_:][\w:]*)\b(?!\s*\()(?:\{([^}]*)\})?(\[[^\]]*\])?")
MATCHER = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"')


@dataclass(frozen=True)
class Selector:
    metric: str
    labels: dict[str, str]
    range: str  # [...], or nothing


def selectors(expr: str) -> list[Selector]:
    """The metrics that an expression reads, in order. A small reader: no strings with braces, no comments."""
    bare = GROUPING.sub(" ", expr)
    found = [(m[1], m[2] or "", m[3] or "") for m in SELECTOR.finditer(bare)]
    return [Selector(name, dict(MATCHER.findall(of)), span) for name, of, span in found if name not in NOT_METRICS]


def filled(expr: str) -> str:
    """With the variables as Grafana would fill them in."""
    for name, value in VARIABLES.items():
        expr = expr.replace(name, value)
    assert "$" not in expr
    return expr


def grouped(expr: str) -> set[str]:
    """The labels by which an expression adds up or joins."""
    return {label.strip() for labels in GROUPING.findall(expr) for label in labels.split(",") if label.strip()}


@cache
def known() -> dict[str, set[str]]:
    """{name as it is scraped: its labels} of all that Prometheus has of us: our own, the process's, the rules."""
    names: dict[str, set[str]] = {"up": set(), "scrape_samples_scraped": set()}
    config = Service(dict(THREE), monitor={"drift": {"adwin": {}}, "hindsight": {}}).config
    for family in _families(config):
        labels = set(family.label_names)
        if isinstance(family, Histograms):
            names |= {f"{family.name}_{part}": labels for part in ("sum", "count")}
            names[f"{family.name}_bucket"] = labels | {"le"}
        else:
            assert not isinstance(family, Counters) or family.name.endswith("_total")
            names[family.name] = labels
    names |= {rule["record"]: grouped(rule["expr"]) for rule in rules() if "record" in rule}
    return names | _of_the_process()


def _families(config: Config) -> Iterator[Family]:
    registry = Metrics(config, Service().health).registry
    yield from (collector for collector in registry._collector_to_names if isinstance(collector, Family))


def _of_the_process() -> dict[str, set[str]]:
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return {sample.name: set(sample.labels) for family in registry.collect() for sample in family.samples}


def rules() -> list[dict[str, Any]]:
    """Every rule, recording or alert."""
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def alerts() -> dict[str, dict[str, Any]]:
    return {rule["alert"]: rule for rule in rules() if "alert" in rule}


@cache
def board(name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(BOARDS[name].read_text())
    return read


def panels(name: str) -> Iterator[dict[str, Any]]:
    """All but the rows, those inside collapsed rows too."""
    for panel in board(name)["panels"]:
        yield from panel["panels"] if panel["type"] == "row" else [panel]


def queries() -> dict[str, str]:
    """{dashboard, panel, letter: expression} of all panels."""
    return {
        f"{name}: {panel['title']}: {target['refId']}": target["expr"]
        for name in BOARDS
        for panel in panels(name)
        for target in panel["targets"]
    }


def marks() -> dict[str, str]:
    """{annotation: expression}; both dashboards have the same."""
    return {mark["name"]: mark["expr"] for name in BOARDS for mark in board(name)["annotations"]["list"]}
