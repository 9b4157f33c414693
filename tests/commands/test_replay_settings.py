"""`class_weights`, `threshold` and `learn`: the same in a replay and in the library."""

from __future__ import annotations

import json
from typing import Any

import pytest

from olstream import Learner
from tests.commands.replayed import Replayed

ROWS: list[tuple[dict[str, float], str]] = [
    ({"x": 1.0}, "yes"),
    ({"x": 0.5, "y": 1.0}, "no"),
    ({"y": -1.0}, "yes"),
    ({"x": 0.2}, "no"),
    ({"x": 0.1}, "yes"),
]


def replayed(replay: Replayed, settings: str, weights: dict[str, float] | None = None) -> tuple[list[Any], Any]:
    """The predictions, and the summary of the learner."""
    config = replay.write("c.yaml", f"learners:\n  m: {{algorithm: arow, classes: ['no', 'yes'], {settings}}}\n")
    lines = [{"features": x, "label": y, "weight": (weights or {}).get(y, 1.0)} for x, y in ROWS]
    events = replay.write("e.ndjson", "\n".join(map(json.dumps, lines)))

    out = replay.run(config, events, "--out", replay.path("out"), "--json")

    summary = json.loads(out)["learners"]["m"]
    del summary["rows_per_s"]
    return replay.lines("out"), summary


def learnt(**settings: Any) -> list[tuple[Any, float]]:
    """The predictions of the library for the same rows."""
    model = Learner("arow", classes=["no", "yes"], **settings)
    said = []
    for x, y in ROWS:
        prediction = model.predict(x)
        said.append((prediction.label, prediction.score))
        model.learn(x, y)
    return said


def said(records: list[Any]) -> list[tuple[Any, float]]:
    return [(record["prediction"], record["score"]) for record in records]


def test_a_class_weight_is_a_factor_on_the_weight_of_its_rows(replay: Replayed) -> None:
    weighted, counted = replayed(replay, "class_weights: {'yes': 3, 'no': 0.5}")
    by_message, counted_too = replayed(replay, "", {"yes": 3.0, "no": 0.5})

    assert weighted == by_message
    assert counted == counted_too
    assert said(weighted) == learnt(class_weights={"yes": 3, "no": 0.5}) != learnt()


def test_a_class_of_weight_0_is_predicted_and_nothing_else(replay: Replayed) -> None:
    records, counted = replayed(replay, "class_weights: {'no': 0}")

    assert len(records) == 5
    assert (counted["seen"], counted["labelled"]) == (5, 3)


@pytest.mark.parametrize("threshold", [-0.2, 0.0, 0.4])
def test_at_the_threshold_and_above_it_is_positive(replay: Replayed, threshold: float) -> None:
    records, counted = replayed(replay, f"threshold: {threshold}")
    plain, plainly_counted = replayed(replay, "")

    assert [record["prediction"] == "yes" for record in records] == [r["score"] >= threshold for r in records]
    assert [record["score"] for record in records] == [record["score"] for record in plain]
    assert counted["loss_mean"] == plainly_counted["loss_mean"]
    assert said(records) == learnt(threshold=threshold)


def test_what_does_not_learn_is_measured_and_stays_as_it_is(replay: Replayed) -> None:
    weights = replay.write("w.json", '{"x": 1.0, "y": -2.0}')

    records, counted = replayed(replay, f"learn: false, start_from: {weights}")
    frozen = Learner("arow", classes=["no", "yes"], learn=False, weights={"x": 1.0, "y": -2.0})
    reports = [frozen.learn(x, y) for x, y in ROWS]

    assert [record["score"] for record in records] == [1.0, -1.5, 2.0, 0.2, 0.1]
    assert (counted["labelled"], counted["updates"], counted["errors"]) == (5, 0, 1)
    assert [report.score for report in reports] == [record["score"] for record in records]
    assert not any(report.updated for report in reports)
    assert frozen.weights() == {"x": 1.0, "y": -2.0}
