"""What Grafana would not say aloud: the dashboards keep the rules that make them work anywhere and easy to read."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.boards import ADDED, BOARDS, board, filled, grouped, known, marks, panels, queries, selectors
from tests.deploy.prometheus import CONFIG, DEPLOY, promtool

GRAFANA = DEPLOY / "grafana"
STABLE = {"stat", "timeseries", "state-timeline", "table", "heatmap"}  # core panels since Grafana 9 or longer
COUNTED = ("_total", "_bucket", "_sum", "_count")
PANELS = [pytest.param(panel, id=f"{name}: {panel['title']}") for name in BOARDS for panel in panels(name)]
panel_by_panel = pytest.mark.parametrize("panel", PANELS)
board_by_board = pytest.mark.parametrize("name", BOARDS)
query_by_query = pytest.mark.parametrize("expr", queries().values(), ids=queries().keys())

# Files


def test_the_files_are_what_the_script_writes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-B", GRAFANA / "build.py", tmp_path], check=True)

    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert written == {path.name: path.read_text() for path in BOARDS.values()}


def test_grafana_is_told_where_the_dashboards_and_the_data_are() -> None:
    (provider,) = yaml.safe_load((GRAFANA / "provisioning/dashboards/olstream.yaml").read_text())["providers"]
    (source,) = yaml.safe_load((GRAFANA / "provisioning/datasources/prometheus.yaml").read_text())["datasources"]

    assert (provider["type"], provider["allowUiUpdates"]) == ("file", False)
    assert source["type"] == "prometheus"
    scraped = yaml.safe_load(CONFIG.read_text())["global"]["scrape_interval"]
    assert source["jsonData"]["timeInterval"] == scraped


@board_by_board
def test_a_dashboard_can_be_provisioned_anywhere(name: str) -> None:
    read = board(name)

    assert (read["uid"], read["id"], read["editable"]) == (f"olstream-{name}", None, False)
    assert 39 <= read["schemaVersion"] <= 42
    assert "__inputs" not in read and "olstream" in read["tags"]
    assert read["title"] and read["description"]
    assert read["links"][0] == read["links"][0] | {"keepTime": True, "includeVars": True, "tags": ["olstream"]}


def _sources(of: Any) -> Iterator[Any]:
    """Whatever stands under "datasource", anywhere."""
    if isinstance(of, dict):
        yield from (value for key, value in of.items() if key == "datasource")
        of = list(of.values())
    if isinstance(of, list):
        yield from itertools.chain.from_iterable(map(_sources, of))


@board_by_board
def test_every_query_asks_the_data_source_chosen_at_the_top(name: str) -> None:
    sources = list(_sources(board(name)))

    assert len(sources) > 2 * len(list(panels(name)))
    assert all(source == {"type": "prometheus", "uid": "${datasource}"} for source in sources)


# Variables


@board_by_board
def test_the_variables_are_there_in_order(name: str) -> None:
    variables = board(name)["templating"]["list"]

    names = [variable["name"] for variable in variables]
    assert names == ["datasource", "job", "instance", "learner", "topic", *(["class"] if name == "quality" else [])]
    assert (variables[0]["type"], variables[0]["label"], variables[0]["query"]) == (
        "datasource",
        "Data source",
        "prometheus",
    )
    for variable in variables[1:]:
        assert (variable["type"], variable["refresh"]) == ("query", 2)
        assert variable["label"] and variable["definition"] == variable["query"]["query"]
        several = variable["name"] != "class"
        assert (variable["multi"], variable["includeAll"], variable.get("allValue")) == (
            (True, True, ".+") if several else (False, False, None)
        )


@board_by_board
def test_a_variable_takes_its_values_from_a_label_that_there_is(name: str) -> None:
    for variable in board(name)["templating"]["list"][1:]:
        found = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"])
        assert found is not None
        (asked,) = selectors(found[1])
        assert found[2] in known()[asked.metric] | ADDED


@board_by_board
def test_every_variable_is_used(name: str) -> None:
    text = json.dumps([panel["targets"] for panel in panels(name)])

    for variable in board(name)["templating"]["list"][1:]:
        assert f"${variable['name']}" in text, variable["name"]


# Panels


@panel_by_panel
def test_a_panel_explains_itself(panel: dict[str, Any]) -> None:
    defaults = panel["fieldConfig"]["defaults"]

    assert panel["title"] and panel["description"].endswith(".")
    assert panel["type"] in STABLE
    assert defaults["unit"] and defaults["noValue"]
    assert defaults["thresholds"]["steps"][0]["value"] is None
    bounds = [step["value"] for step in defaults["thresholds"]["steps"][1:]]
    assert bounds == sorted(bounds)


@panel_by_panel
def test_a_share_has_its_bound(panel: dict[str, Any]) -> None:
    unbounded = ("Shadows against the champion",)  # a difference

    if panel["fieldConfig"]["defaults"]["unit"] == "percentunit" and panel["title"] not in unbounded:
        assert "min" in panel["fieldConfig"]["defaults"]


@panel_by_panel
def test_a_legend_names_what_the_query_tells_apart(panel: dict[str, Any]) -> None:
    letters = [target["refId"] for target in panel["targets"]]

    assert letters and len(letters) == len(set(letters))
    for target in panel["targets"]:
        told = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        labels = set[str]().union(*(known()[asked.metric] for asked in selectors(target["expr"])))
        assert target["legendFormat"] and told <= labels | ADDED
        if "learner" in told:
            assert "instance" not in told
        if re.search(r"by \([^)]*learner", target["expr"]) and target["legendFormat"] != "{{le}}":
            assert "learner" in told


@board_by_board
def test_panels_do_not_overlap_and_fill_at_most_the_width(name: str) -> None:
    levels = [board(name)["panels"], *(panel["panels"] for panel in board(name)["panels"] if panel["type"] == "row")]
    for level in levels:
        taken: set[tuple[int, int]] = set()
        for at in (panel["gridPos"] for panel in level):
            cells = set(itertools.product(range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"])))
            assert at["x"] + at["w"] <= 24
            assert not taken & cells
            taken |= cells


@board_by_board
def test_the_answer_comes_first_and_the_detail_is_folded(name: str) -> None:
    rows = [panel for panel in board(name)["panels"] if panel["type"] == "row"]

    assert (rows[0]["title"], rows[0]["collapsed"]) == ("Is it OK?", False)
    assert all(row["collapsed"] == (row["gridPos"]["y"] >= 36) for row in rows)
    assert all(bool(row["panels"]) == row["collapsed"] for row in rows)
    assert len(list(panels(name))) <= 30


@board_by_board
def test_every_panel_has_its_own_number(name: str) -> None:
    rows = [panel for panel in board(name)["panels"] if panel["type"] == "row"]
    numbers = [panel["id"] for panel in [*rows, *panels(name)]]

    assert len(numbers) == len(set(numbers))


# Queries


def test_every_expression_can_be_parsed(tmp_path: Path) -> None:
    said = {**queries(), **{f"annotation: {name}": expr for name, expr in marks().items()}}
    rules = [{"record": f"panel:query{i}:value", "expr": filled(expr)} for i, expr in enumerate(said.values())]
    path = tmp_path / "queries.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))

    code, found = promtool("check", "rules", path)

    assert code == 0, found
    assert f"{len(said)} rules found" in found


@query_by_query
def test_a_query_asks_for_metrics_and_labels_that_there_are(expr: str) -> None:
    _asks_for_what_there_is(expr)


@pytest.mark.parametrize("name", marks())
def test_an_annotation_asks_for_metrics_and_labels_that_there_are(name: str) -> None:
    _asks_for_what_there_is(marks()[name])


def _asks_for_what_there_is(expr: str) -> None:
    asked = selectors(expr)

    assert asked
    assert [s.metric for s in asked if s.metric not in known()] == []
    assert [s for s in asked if s.labels.keys() - known()[s.metric] - ADDED] == []
    labels = set[str]().union(*(known()[s.metric] for s in asked)) | ADDED
    assert grouped(expr) <= labels


@query_by_query
def test_a_query_is_of_the_job_and_the_instance_that_were_chosen(expr: str) -> None:
    for asked in selectors(expr):
        assert asked.labels["job"] == "$job"
        if ":" in asked.metric:  # recorded over all instances
            assert "instance" not in asked.labels
        elif asked.labels.get("role") != "champion":  # who is champion does not depend on what is looked at
            assert asked.labels["instance"] == "$instance"


@query_by_query
def test_counters_are_rates_and_added_up(expr: str) -> None:
    counted = [asked for asked in selectors(expr) if ":" not in asked.metric and asked.metric.endswith(COUNTED)]

    assert all(asked.range in ("[$__rate_interval]", "[$__range]") for asked in counted)
    rates = re.findall(r"\b(?:rate|irate|increase)\(", expr)
    assert len(rates) == len(counted)
    if counted:
        assert re.search(r"\b(sum|max|min|avg|count)\b", expr)


def test_what_happened_is_marked() -> None:
    assert marks().keys() == {"Drift", "Start", "Reload", "Champion", "Restore", "Restore while running"}
    for name in BOARDS:
        for mark in board(name)["annotations"]["list"]:
            assert mark["enable"] and mark["titleFormat"]
            assert mark["useValueForTime"] == mark["expr"].rstrip(")").endswith("* 1000")
