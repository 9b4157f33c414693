"""The status page: what it tells of a service, whatever state and size that is, and that no text becomes markup."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from typing import Any

import numpy as np
import pytest

from olstream.page import service
from olstream.status import describe
from olstream.versus import Versus
from tests.page import Service, documents, example
from tests.page.markup import Element, check, elements

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</style></title><svg onload=alert(1)>",
    "<!-- &lt;b&gt; ]]> &amp;",
    "\u202eevil\u0000\u001b[31m\ud800",
    "javascript:alert(1)",
    "x" * 5000,
]


def page(document: dict[str, Any]) -> Element:
    return check(service.page(document).html)


def row_of(root: Element, learner: str) -> dict[str, str]:
    """Of the first table, by heading."""
    head, *rows = root.all("table")[0].cells()
    return next(dict(zip(head, row, strict=True)) for row in rows if row[0].startswith(learner))


def tags(root: Element) -> list[str]:
    return [each.tag for each in elements(root)]


# What it tells


def test_the_first_table_tells_how_each_learner_stands() -> None:
    row = row_of(page(documents.document()), "fraud")

    assert row["learner"] == "fraudarow · binary · champion"
    assert (row["rows seen"], row["labelled"]) == ("121,904", "120,000")
    assert (row["error now"], row["error total"]) == ("6.40%", "9.41%")
    assert (row["majority"], row["last label"], row["loss now"]) == ("23.12%", "33.05%", "0.1523")
    assert (row["updates"], row["drift"], row["last drift"], row["regret"]) == (
        "33.76%", "stable", "38,700 rows ago", "+0.0092",
    )  # fmt: skip


def test_who_is_no_better_than_guessing_is_marked() -> None:
    root = page(documents.shadowed())

    alarms = [each.text for each in root.of("alarm")]
    assert "24.40%" in alarms and "9.41%" not in alarms
    assert any("No better than always guessing" in text for text in alarms)


def test_drift_is_a_mark_in_each_picture_that_has_its_row() -> None:
    root = page(documents.document())

    marks = root.of("mark")
    assert [mark.all("title")[0].text for mark in marks] == [
        "drift at row 81,300: adwin, error"
    ]  # not in the recent one
    assert marks[0].all("line")[0].attributes["x1"] == "67.86%"  # 81,300 of 119,808


def test_many_drifts_are_strokes_above_that_hide_no_curve() -> None:
    marks = [{"labelled": 97_000 + 200 * i, "detector": "adwin", "signal": "error"} for i in range(100)]

    root = page(documents.document({"a": documents.learner(marks=marks)}))

    recent = root.of("chart")[0]
    top = float(recent.all("svg")[1].attributes["y"] or 0)
    strokes = [float(mark.all("line")[0].attributes["y2"] or 0) for mark in recent.of("mark")]
    assert len(strokes) == 100 and max(strokes) < top


def test_curves_stand_where_their_numbers_say() -> None:
    flat = {"every": 10, "labelled": [100, 110, 120], "error": [0.5, 0.25], "majority": [0.5, 0.5], "no_change": []}
    learner = documents.learner(history={"recent": flat, "life": None}, marks=[])

    root = page(documents.document({"a": learner}))

    chart = root.of("chart")[0]
    majority, own = (line.attributes["points"] or "" for line in chart.all("polyline"))
    heights = [float(point.split(",")[1]) for point in own.split()]
    places = [float(point.split(",")[0]) for point in own.split()]
    assert places == [0.0, 250.0, 750.0, 1000.0]
    assert {point.split(",")[1] for point in majority.split()} == {f"{heights[0]:.1f}"}
    bottom = float(chart.all("svg")[1].attributes["height"] or 0)
    assert bottom - heights[-1] == pytest.approx((bottom - heights[0]) / 2, abs=0.1)


def test_champion_and_shadows_are_in_one_picture_over_the_same_rows() -> None:
    root = page(documents.shadowed())

    section = root.all("section")[0]
    assert "Champion and shadows" in section.text
    lines = section.of("chart")[0].all("polyline")
    assert [line.all("title")[0].text for line in lines] == ["fraud", "fraud-next", "fraud-late"]
    assert {(line.attributes["points"] or "").split()[-1].split(",")[0] for line in lines} == {"1000.0"}
    assert len({line.attributes["class"] for line in lines}) == 3


def test_who_sees_other_rows_is_in_no_common_picture() -> None:
    document = documents.shadowed()
    document["config"]["routes"].append({"when": {"topic": "labels"}, "learner": "price", "shadows": ["fraud-next"]})

    assert page(document).all("section") == []


def against(root: Element) -> list[dict[str, str]]:
    """The comparison of shadows and champions, by heading."""
    (told,) = (each for each in root.all("table") if each.all("caption")[0].text == "Shadows against champions")
    head, *rows = told.cells()
    return [dict(zip(head, row, strict=True)) for row in rows]


def test_each_shadow_is_compared_with_its_champion_on_the_same_rows() -> None:
    worse, alike = against(page(documents.shadowed()))

    assert (worse["shadow"], worse["champion"], worse["rows"]) == ("fraud-next", "fraud", "120,000")
    assert (worse["difference, faded"], worse["difference, total"]) == ("+2.28%", "+3.47%")
    assert (worse["McNemar, faded"], worse["McNemar, total"], worse["Q, faded"]) == ("-11.32", "-1204", "-0.2201")
    assert (worse["the shadow is"], alike["the shadow is"]) == ("worse", "no difference")
    assert (alike["McNemar, faded"], alike["Q, faded"]) == ("–", "–")


def test_a_regressions_difference_is_in_its_own_unit() -> None:
    versus = {"price": documents.compared(500, "better", difference=(-1.25, -2.5), paired=(9.0, 12.0))}

    (row,) = against(page(documents.document({"next": documents.regression() | {"versus": versus}})))

    assert (row["difference, faded"], row["McNemar, faded"], row["the shadow is"]) == ("-2.5", "+12", "better")


@pytest.mark.parametrize(("pending", "told"), [(1234, "1,234"), (0, None), (None, None)])
def test_a_card_tells_how_many_predictions_wait(pending: int | None, told: str | None) -> None:
    root = page(documents.document({"a": documents.learner(pending=pending)}))

    facts = {each.children[0].text: each.children[1].text for each in root.of("facts")[0].children}
    assert facts.get("wait for their label") == told


def test_without_shadows_there_is_no_comparison() -> None:
    captions = [each.text for each in page(documents.document()).all("caption")]

    assert "Shadows against champions" not in captions


def test_lag_is_told_by_partition_and_rejects_by_reason() -> None:
    topic = documents.topic(3, lag={"0": 5, "1": 0, "2": 70}, rejected={"bad_json": 12, "unknown_label": 0})

    root = page(documents.document(topics={"events": topic}))

    tables = {table.all("caption")[0].text: table.cells() for table in root.all("table")}
    assert tables["Input topics"][1] == ["events", "1,203,456", "12", "3", "75", "1 s", "p2: 70, p0: 5"]
    assert tables["Dead letters by reason"][1:] == [["bad_json", "12"]]
    partitions = [each.text for each in root.of("partitions")[0].children]
    assert partitions == ["05", "10", "270"]


def test_the_configuration_is_folded_and_has_no_secret() -> None:
    root = page(documents.document())

    folded = next(each for each in root.all("details") if each.attributes.get("id") == "config")
    assert "open" not in folded.attributes
    assert "sasl.password: '***'" in folded.text


def test_the_others_are_linked() -> None:
    links = [each.attributes["href"] for each in page(documents.document()).all("nav")[0].all("a")]

    assert links == ["metrics", "status.json", "live", "ready"]


def test_failed_checkpoints_are_told() -> None:
    checkpoint = {"written": None, "size_bytes": None, "uncheckpointed": 12, "failures": 3}

    tiles = page(documents.document(checkpoint=checkpoint)).of("tiles")[0].text

    assert "checkpoint failures3" in tiles and "none written since the start" in tiles


def test_labels_and_predictions_are_compared_by_class() -> None:
    root = page(documents.document())

    tables = {table.all("caption")[0].text: table.cells() for table in root.all("table")}
    assert tables["Rows by label and prediction"][1:] == [["ok", "90,120", "4,310"], ["fraud", "6,982", "18,588"]]
    mix = next(rows for caption, rows in tables.items() if caption.startswith("Mix of labels"))
    assert mix[2][:3] == ["fraud", "21.31%", "19.08%"]
    assert mix[2][4:] == ["81.18%", "72.69%"]  # 18,588 of 22,898 and of 25,570


# Whatever state and size


def test_before_the_first_record_it_says_what_it_waits_for() -> None:
    root = page(documents.empty())

    assert "No label yet" in root.text
    assert "not ready: Not restored yet: starting." in [each.text for each in root.of("flag")]
    assert root.of("chart") == []


def test_a_regression_has_its_error_in_its_own_unit_and_no_baselines() -> None:
    root = page(documents.document({"price": documents.regression()}))

    row = row_of(root, "price")
    assert row["error total"] == "37.61" and "majority" not in row
    assert "mean absolute error" in root.text
    assert root.of("majority") == []


@pytest.mark.parametrize(("ago", "is_alarm"), [(0, True), (999, True), (1000, False), (None, False)])
def test_a_drift_of_the_last_rows_is_marked(ago: int | None, is_alarm: bool) -> None:
    last = None if ago is None else {"labelled": 120_000 - ago, "detector": "adwin", "signal": "error", "ago": ago}
    drift: dict[str, Any] = {"level": 0, "detections": 1, "warnings": 0, "last": last, "detectors": []}

    root = page(documents.document({"a": documents.learner(drift=drift)}))

    told = "none" if ago is None else f"{ago:,} rows ago"
    assert row_of(root, "a")["last drift"] == told
    assert (told in [each.text for each in root.of("alarm")]) is is_alarm


@pytest.mark.parametrize("learners", [0, 1, 6, 7, 20])
def test_of_many_learners_only_those_are_unfolded_that_want_attention(learners: int) -> None:
    many = {f"l{i}": documents.learner(i) for i in range(learners)}
    if many:
        many["l0"]["drift"]["level"] = 1

    root = page(documents.document(many))

    cards = [each for each in root.of("card") if each.tag == "details" and each.attributes["id"] != "config"]
    assert len(cards) == learners
    assert sum("open" in card.attributes for card in cards) == (learners if learners <= 6 else 1)


def test_hundreds_of_partitions_and_classes_fit() -> None:
    html = service.page(documents.crowd()).html

    root = check(html)
    assert len(html) < 500_000
    assert len(root.of("partitions")[0].children) == 300
    assert "1,000" in root.text  # classes; their table is none that a service sends


def test_many_classes_are_shown_as_the_commonest_and_all_others() -> None:
    names = [f"c{i}" for i in range(30)]
    counts = [[i if i == j else 0 for j in range(30)] for i in range(30)]

    root = page(documents.document({"a": documents.learner(confusion={"classes": names, "counts": counts})}))

    rows = next(t for t in root.all("table") if t.all("caption")[0].text == "Rows by label and prediction").cells()
    assert len(rows) == 22 and rows[-1][0] == "(all others)"
    assert rows[-1][-1] == f"{sum(range(10))}" and rows[1][0] == "c10"


@pytest.mark.parametrize(
    "key", ["drift", "history", "marks", "hindsight", "mae", "updated_share", "confusion", "error", "versus"]
)
def test_what_an_older_service_does_not_tell_is_left_out(key: str) -> None:
    document = documents.document()
    del document["learners"]["fraud"][key]

    assert "fraud" in page(document).text


@pytest.mark.parametrize("wrong", [None, 7, "text", [], {}, [[]], {"a": None}, float("nan"), 10**400, True])
def test_a_document_of_any_shape_gives_a_page(wrong: Any) -> None:
    whole = documents.document()

    for key in whole:
        page({**whole, key: wrong})
    for key in whole["learners"]["fraud"]:
        page(documents.document({"fraud": documents.learner(**{key: wrong})}))
    page({})


def test_a_curve_whose_counts_do_not_rise_or_do_not_fit_is_none() -> None:
    good = {"labelled": [0, 10, 20], "error": [0.1, 0.2]}
    for bad in ({"labelled": [0, 10, 10]}, {"labelled": [5]}, {"error": [0.1]}, {"error": [0.1, None]}):
        history = {"recent": {**good, **bad}, "life": {}}

        assert page(documents.document({"a": documents.learner(history=history)})).of("own") == [], bad


@pytest.mark.parametrize("value", [0.0, 1e-300, 1e300, 1.7e308])
def test_every_number_in_a_picture_is_finite(value: float) -> None:
    line = {"labelled": [0, 1, 2], "error": [value, value / 2], "loss": [value, value]}
    learner = documents.learner(task="regression", mae=value, history={"recent": line, "life": line})

    root = page(documents.document({"a": learner}))

    assert len(root.of("chart")) == 1


def test_a_second_picture_is_drawn_where_the_recent_rows_are_not_all() -> None:
    recent, life = documents.history(0, 10, 50), documents.history(0, 20, 25)
    young = documents.learner(history={"recent": recent, "life": life}, marks=[])

    titles = [each.all("b")[0].text for each in page(documents.document({"a": young})).all("figcaption")]
    grown = [each.all("b")[0].text for each in page(documents.document()).all("figcaption")]

    assert titles == ["From the beginning"]
    assert grown == ["Recent", "From the beginning"]


def test_a_real_service_has_a_page_before_and_after_its_first_rows() -> None:
    running = Service(None, monitor={"window": 10})

    before = page(json.loads(json.dumps(describe(running.metrics), default=str)))
    running.take("fraud", *(example(label, x=1.0) for label in (1, 0, 1, 1)))
    running.page()
    after = page(json.loads(json.dumps(describe(running.metrics), default=str)))

    assert row_of(before, "fraud")["labelled"] == "0"
    assert row_of(after, "fraud")["labelled"] == "4"


def test_a_real_shadows_comparison_is_on_the_page() -> None:
    running = Service({"fraud": {}, "next": {}}, routes=[{"learner": "fraud", "shadows": ["next"]}])
    shadow: Any = running.models["next"]
    shadow.versus = {"fraud": Versus(True, 0.999)}
    ones, right, wrong = np.ones(40), np.ones(40, np.int8), np.zeros(40, np.int8)
    shadow.versus["fraud"].add(np.ones(40, np.uint8), right, ones, wrong, 2 * ones, ones, ones)
    running.page()

    told = json.loads(json.dumps(describe(running.metrics)))

    assert told["learners"]["fraud"]["versus"] == {}
    (row,) = against(page(told))
    assert (row["rows"], row["difference, total"], row["McNemar, total"]) == ("40", "-100.00%", "+40")
    assert (row["Q, faded"], row["the shadow is"]) == ("+0.6931", "better")


# No text becomes markup


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_is_shown_and_never_an_element(text: str) -> None:
    def named(name: str) -> dict[str, Any]:
        mark = {"labelled": 100_000, "detector": name, "signal": name}
        watcher = {"detector": name, "signal": name, "level": 2, "statistic": 1.0, "threshold": 1.0}
        hostile = documents.learner(
            role=name, algorithm=name, task=name, marks=[mark],
            confusion={"classes": [name, "b"], "counts": [[3, 1], [2, 9]]}, versus={name: documents.compared(3, name)},
            drift={"level": 2, "detections": 1, "warnings": 0, "last": {**mark, "ago": 3}, "detectors": [watcher]},
        )  # fmt: skip
        return documents.document(
            {name: hostile, "other": documents.learner()},
            topics={name: documents.topic(2, rejected={name: 3}, lag={name: 4, "1": 2})},
            group=name, slot=name, version=name, guarantee=name, python=name, librdkafka=name, commits={name: 2},
            live={"ok": False, "detail": name}, ready={"ok": False, "detail": name},
            config={"routes": [{"learner": name, "shadows": ["other"]}], name: {name: [name]}},
        )  # fmt: skip

    root = page(named(text))

    assert tags(root) == tags(page(named("plain")))
    assert service.page(named(text)).encode().decode() == service.page(named(text)).html
    assert not re.search("[\x00-\x08\x0b-\x1f\ud800-\udfff]", service.page(named(text)).html)


# Nothing comes from elsewhere


def test_the_policy_allows_the_inline_style_and_script_and_nothing_else() -> None:
    made = service.page(documents.document())
    root = check(made.html)

    rules = dict(rule.split(" ", 1) for rule in made.policy.split("; "))
    for tag, rule in (("style", "style-src"), ("script", "script-src")):
        hashes = [b64encode(sha256(inline.text.encode()).digest()).decode() for inline in root.all(tag)]
        assert hashes and rules[rule] == " ".join(f"'sha256-{digest}'" for digest in hashes)
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == rules["frame-ancestors"] == "'none'"
    assert rules["connect-src"] == "'self'"


def test_a_report_of_a_service_has_its_policy_inside_and_asks_for_nothing() -> None:
    made = service.report(documents.document(), "http://host:9108")

    root = check(made.html)
    (policy,) = (each for each in root.all("meta") if each.attributes.get("http-equiv") == "Content-Security-Policy")
    assert policy.attributes["content"] == made.policy and "connect-src" not in made.policy
    assert root.all("nav") == [] and "fetch(" not in made.html
    assert "Report of http://host:9108, 2026-11-30 10:00:00 UTC" in root.text
