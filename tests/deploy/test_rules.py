"""Rules and alerts: right by promtool, complete for whoever is woken by them, and of metrics that there are."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from olstream.__main__ import root
from tests.deploy.boards import ADDED, BOARDS, alerts, grouped, known, panels, rules, selectors
from tests.deploy.prometheus import CONFIG, DEPLOY, promtool
from tests.page import THREE, Service, example

CASES = sorted((Path(__file__).parent / "rules").glob("*.yaml"))
RUNBOOKS = DEPLOY / "runbooks"
WHERE = "https://github.com/olstream/olstream/blob/main/deploy/runbooks/"
OURS = re.compile(r"\b(?:learner:)?olstream_[a-z0-9_:]+[a-z0-9]\b")
alert_by_alert = pytest.mark.parametrize("name", alerts())

# By promtool


def test_rules_and_configuration_are_right() -> None:
    code, said = promtool("check", "config", CONFIG)

    assert code == 0, said
    assert "rule files found" in said


def test_every_case_of_the_rules_comes_out() -> None:
    code, said = promtool("test", "rules", *CASES)

    assert code == 0, said


def test_promtool_finds_nothing_to_say_about_the_page() -> None:
    service = Service(dict(THREE))
    for learner, label in (("fraud", 1), ("kind", "class 3"), ("price", 2.5)):
        service.take(learner, *[example(label=label), example()] * 50)

    assert promtool("check", "metrics", given=service.page()) == (0, "")


def _cases(alert: str) -> list[list[Any]]:
    """What the cases of an alert expect."""
    return [
        case["exp_alerts"]
        for path in CASES
        for test in yaml.safe_load(path.read_text())["tests"]
        for case in test.get("alert_rule_test", [])
        if case["alertname"] == alert
    ]


@alert_by_alert
def test_an_alert_has_a_case_in_which_it_fires_and_one_in_which_it_is_silent(name: str) -> None:
    cases = _cases(name)

    assert any(cases), "it never fires"
    assert not all(cases), "it is never silent"


# For whoever is woken


@alert_by_alert
def test_an_alert_says_how_bad_it_is_and_what_to_do(name: str) -> None:
    alert = alerts()[name]

    assert name.startswith("Olstream")
    assert alert["labels"]["severity"] in ("critical", "warning", "info")
    assert alert["annotations"].keys() == {"summary", "description", "runbook_url"}
    assert alert["annotations"]["runbook_url"] == f"{WHERE}{name}.md"
    assert alert["annotations"]["description"].endswith((".", ".{{ end }}"))


def test_only_the_word_of_a_detector_is_told_without_waiting() -> None:
    assert [name for name, alert in alerts().items() if "for" not in alert] == ["OlstreamDrift"]


def test_each_alert_has_a_page_and_each_page_an_alert() -> None:
    assert {path.stem for path in RUNBOOKS.glob("*.md")} - {"README"} == alerts().keys()


@alert_by_alert
def test_a_page_says_what_it_means_how_to_look_and_what_to_do(name: str) -> None:
    page = (RUNBOOKS / f"{name}.md").read_text()

    assert page.startswith(f"# {name}\n")
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == ["What it means", "Why it matters", "Look", "Do"]


@alert_by_alert
def test_a_page_names_only_metrics_that_there_are(name: str) -> None:
    page = (RUNBOOKS / f"{name}.md").read_text()

    named = set(OURS.findall(page))

    assert {metric for metric in named if metric not in known()} == set()


@alert_by_alert
def test_a_page_names_only_commands_options_and_panels_that_there_are(name: str) -> None:
    page = (RUNBOOKS / f"{name}.md").read_text()
    titles = {panel["title"] for board in BOARDS for panel in panels(board)}

    for line in re.findall(r"`olstream ([^`]*)`", page):
        command: click.Command = root
        words = line.split()
        while isinstance(command, click.Group):
            found = command.get_command(click.Context(command), words.pop(0))
            assert found is not None, line
            command = found
        options = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= options, line
    prose = re.sub(r"```.*?```|`[^`]*`", "", page, flags=re.DOTALL)
    assert set(re.findall(r"\*(\w[^*]*)\*", prose)) <= titles | {"quality and drift", "consumer and runtime"}


def test_what_a_page_asks_of_prometheus_can_be_asked(tmp_path: Path) -> None:
    pages = "".join(path.read_text() for path in sorted(RUNBOOKS.glob("*.md")))
    blocks = [textwrap.dedent(block) for block in re.findall(r"```promql\n(.*?)```", pages, re.DOTALL)]
    # one to a line, but that an indented line belongs to the one before
    asked = [expr for block in blocks for expr in re.split(r"\n(?! )", block.strip())]
    rules = [{"record": f"page:query{i}:value", "expr": expr} for i, expr in enumerate(asked)]
    path = tmp_path / "pages.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "pages", "rules": rules}]}))

    code, said = promtool("check", "rules", path)

    assert len(asked) > len(alerts())
    assert (code, f"{len(asked)} rules found" in said) == (0, True), said


# Of what there is


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.get("alert") or rule["record"])
def test_a_rule_asks_for_metrics_and_labels_that_there_are(rule: dict[str, Any]) -> None:
    asked = selectors(rule["expr"])

    assert asked
    assert [s.metric for s in asked if s.metric not in known()] == []
    assert [s for s in asked if s.labels.keys() - known()[s.metric] - ADDED] == []
    labels = set[str]().union(*(known()[s.metric] for s in asked)) | ADDED
    assert grouped(rule["expr"]) <= labels


def test_a_recording_rule_says_level_metric_and_operation() -> None:
    recorded = [rule["record"] for rule in rules() if "record" in rule]

    sources = {metric.removesuffix("_total") for metric in known()} | {"olstream_error_ratio"}
    assert recorded and len(recorded) == len(set(recorded))
    for name in recorded:
        level, metric, operation = name.split(":")
        assert level == "learner"
        assert metric.removesuffix("_total") in sources
        assert re.fullmatch(r"(rate|mean|increase)(5m|1h|1d)", operation)
