"""A report of predictions as they were published: counted, drawn and watched as the service itself would have."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

from olstream.config import MonitorConfig
from olstream.drift import Detector
from olstream.evaluate import Tally
from olstream.page import predictions
from olstream.page.growing import Growing
from olstream.page.predictions import Predictions
from olstream.page.view import Learner
from tests.page.markup import check
from tests.page.test_service import HOSTILE, tags


def record(learner: str = "a", prediction: Any = "yes", label: Any = "yes", **others: Any) -> dict[str, Any]:
    """A prediction as it is published; measured where it has a label."""
    measured = label is not None
    return {
        "id": None, "learner": learner, "prediction": prediction, "score": 0.3, "probability": 0.7, "label": label,
        "loss": 0.5 if measured else None, "correct": prediction == label if measured else None,
        "updated": measured, "updates": 1, "topic": "t", "partition": 0, "offset": 0, "ts": None, **others,
    }  # fmt: skip


def taken(*records: Any, detector: str | None = "adwin") -> Predictions:
    found = Predictions(MonitorConfig(drift=detector))  # type: ignore[arg-type]
    for line, each in enumerate(records, 1):
        found.add(each if isinstance(each, bytes) else json.dumps(each).encode(), line)
    return found


def of(*records: Any, detector: str | None = "adwin") -> Learner:
    (learner,) = taken(*records, detector=detector).learners()
    return learner


def stream(rows: int, drift_at: int, seed: int = 1, weights: tuple[int, ...] = (6, 3, 1)) -> list[dict[str, Any]]:
    """Three classes; wrong one time in ten, after a row every second time."""
    draw = random.Random(seed)
    records = []
    for row in range(rows):
        label = draw.choices("abc", weights)[0]
        wrong = draw.random() < (0.5 if row >= drift_at else 0.1)
        prediction = draw.choice([c for c in "abc" if c != label]) if wrong else label
        records.append(record(prediction=prediction, label=label, loss=draw.random()))
    return records


# What is counted


@pytest.mark.parametrize("weights", [(6, 3, 1), (1, 1, 1), (1, 1, 0)])
def test_errors_and_baselines_are_those_of_progressive_validation(weights: tuple[int, ...]) -> None:
    records = stream(3000, 1500, weights=weights)
    tally = Tally(True, 1000, 0.999)
    codes: dict[str, int] = {}
    truth = np.array([codes.setdefault(each["label"], len(codes)) for each in records])
    predicted = np.array([codes.setdefault(each["prediction"], len(codes)) for each in records])
    loss = np.array([each["loss"] for each in records])
    tally.add(np.ones(3000, np.uint8), truth, predicted, loss, np.zeros(0), np.arange(3000), 3)

    learner = of(*records)

    assert (learner.seen, learner.labelled) == (3000, 3000)
    assert learner.error["total"] == pytest.approx(tally.error_rate("total"), rel=1e-12)
    assert learner.error["sliding"] == pytest.approx(tally.error_rate("sliding"), rel=1e-12)
    assert learner.loss["total"] == pytest.approx(tally.loss_mean("total"), rel=1e-12)
    assert learner.majority == pytest.approx(tally.baseline("majority"), rel=1e-12)
    assert learner.no_change == pytest.approx(tally.baseline("no_change"), rel=1e-12)


def test_drift_is_where_the_detector_finds_it_in_the_errors() -> None:
    records = stream(6000, 3000)
    errors = np.array([float(not each["correct"]) for each in records])
    levels = Detector("adwin", mode="up").update_many(errors)

    learner = of(*records)

    expected = (np.nonzero(levels == 2)[0] + 1).tolist()
    assert expected and 3000 < expected[0] < 3300
    assert [mark.labelled for mark in learner.marks] == expected
    assert learner.drift.detections == len(expected)
    assert learner.drift_ago == 6000 - expected[-1]


def test_a_regression_is_measured_by_how_far_off_it_is() -> None:
    learner = of(
        record(prediction=3.0, label=5, correct=None),
        record(prediction=10.0, label=6.5, correct=None),
        record(prediction=1.0, label=None),
    )

    assert learner.is_regression and (learner.seen, learner.labelled) == (3, 2)
    assert learner.error["total"] == pytest.approx((2.0 + 3.5) / 2)
    assert (learner.majority, learner.confusion, learner.calibration) == (None, None, ())


def test_labels_are_told_apart_by_their_text() -> None:
    learner = of(
        record(prediction=1, label="1", correct=True),
        record(prediction=True, label=1.0, correct=False),
        record(prediction=None, label=1, correct=False, probability=None),
    )

    assert learner.confusion is not None
    assert (learner.confusion.classes, learner.confusion.counts) == (("1", "true"), ((1, 1), (0, 0)))
    assert learner.error["total"] == pytest.approx(2 / 3)


def test_of_many_classes_the_commonest_are_told_and_the_others_together() -> None:
    records = [record(prediction=f"c{i}", label=f"c{i}") for i in range(40) for _ in range(i + 1)]

    confusion = of(*records).confusion

    assert confusion is not None and len(confusion.classes) == 21
    assert confusion.classes[-1] == "(all others)" and confusion.counts[-1][-1] == sum(range(1, 21))
    assert sum(confusion.labels) == len(records)


def test_probabilities_are_held_against_what_came() -> None:
    sure = [record(probability=0.95, prediction="yes", label="yes" if i < 9 else "no") for i in range(10)]
    unsure = [record(probability=0.55, prediction="yes", label="yes" if i < 1 else "no") for i in range(4)]

    low, high = of(*sure, *unsure, record(probability=None)).calibration

    assert (low.rows, low.correct) == (4, 0.25) and low.probability == pytest.approx(0.55)
    assert (high.rows, high.correct) == (10, 0.9) and high.probability == pytest.approx(0.95)


def test_outcomes_that_tell_of_no_updates_have_none() -> None:
    outcome = {"id": 1, "learner": "a", "prediction": "x", "score": 1.0, "label": "y", "loss": 2.0, "correct": False}

    learner = of(*[{**outcome, "delay_ms": 12}] * 3)

    assert (learner.labelled, learner.error["total"], learner.updates, learner.updated_share) == (3, 1.0, None, None)


def test_champions_stand_before_shadows() -> None:
    found = taken(record("b", shadow=True), record("c"), record("a", shadow=True)).learners()

    assert [(each.name, each.role) for each in found] == [("c", "champion"), ("b", "shadow"), ("a", "shadow")]


@pytest.mark.parametrize("rows", [1, 2, 479, 480, 481, 5000])
def test_a_curve_has_the_mean_of_every_row_and_few_points(rows: int) -> None:
    draw = np.random.default_rng(rows)
    errors = draw.random(rows)
    growing = Growing()

    for error in errors.tolist():
        growing.add(error, None, 0.5, 0.5, 1.0)

    curve = growing.curve()
    assert curve.labelled[0] == 0 and curve.labelled[-1] == rows and len(curve.error) <= 480
    means = [errors[a:b].mean() for a, b in zip(curve.labelled, curve.labelled[1:], strict=False)]
    assert curve.error == pytest.approx(means)
    assert curve.loss == () and set(curve.updated) == {1.0}
    coarse = curve.coarser(50)
    assert len(coarse.error) <= 50 and coarse.labelled[-1] == rows
    assert coarse.last(coarse.error, rows) == pytest.approx(errors.mean())


# What is no prediction


NO_PREDICTIONS = [
    b"not json", b"[]", b"7", b"{}", b'{"learner": "a"}', b'{"learner": 3, "prediction": 1}', b"\xff\xfe",
    b'{"learner": "a", "prediction": {"x": 1}}', b'{"learner": "a", "prediction": 1, "loss": "much"}',
    b'{"learner": "a", "prediction": "x", "label": "y", "loss": 1.0}',
]  # fmt: skip


@pytest.mark.parametrize("line", NO_PREDICTIONS)
def test_what_is_no_prediction_is_left_out_and_the_first_is_told(line: bytes) -> None:
    found = taken(record(), b"", b"  ", line, record(), b"{")

    assert (found.rows, found.skipped) == (2, 2)
    assert found.first_skipped is not None and found.first_skipped.startswith("line 4: ")
    assert found.learners()[0].labelled == 2
    assert "2 lines left out" in check(predictions.page("f", found, "1").html).text


def test_a_learner_is_of_one_task() -> None:
    found = taken(record(prediction=1, label=1), record(prediction=1.5, label=2.5, correct=None))

    assert (found.rows, found.skipped) == (1, 1)
    assert found.learners()[0].seen == 1


# What is drawn


def test_learners_of_one_kind_are_in_one_picture() -> None:
    numbers = [record(name, prediction=1.0, label=2, correct=None) for name in ("p", "q")]
    found = taken(*[record(name) for name in ("a", "b", "c")], *numbers)

    root = check(predictions.page("f.ndjson", found, "0.1").html)

    pictures = [[line.all("title")[0].text for line in each.all("polyline")] for each in root.all("section")]
    assert pictures == [["a", "b", "c"], ["p", "q"]]


@pytest.mark.parametrize("records", [[record(label=None)], [record()], [record(correct=False)] * 3, stream(600, 300)])
def test_there_is_a_page_of_anything(records: list[dict[str, Any]]) -> None:
    made = predictions.page("f.ndjson", taken(*records), "0.1")

    root = check(made.html)
    assert "Predictions in f.ndjson" in root.text
    assert len(root.all("script")) == 1 and "fetch" not in made.html


def test_without_a_detector_no_drift_is_told() -> None:
    root = check(predictions.page("f", taken(*stream(600, 300), detector=None), "1").html)

    assert root.of("mark") == [] and "drift by" not in root.text


@pytest.mark.parametrize("text", [text.replace("\ud800", "") for text in HOSTILE])
def test_hostile_names_and_classes_are_shown_and_never_elements(text: str) -> None:
    def named(name: str) -> str:
        records = [record(name, prediction=name, label=name), record(name, prediction=name, label="other")]
        return predictions.page(name, taken(*records, b"{"), name).html

    assert tags(check(named(text))) == tags(check(named("plain")))


@pytest.mark.parametrize("value", [1e308, -1e308, 0.0, 5e-324])
def test_numbers_as_large_as_they_come_are_drawn(value: float) -> None:
    records = [record(prediction=value, label=-value, correct=None, loss=abs(value))] * 700

    root = check(predictions.page("f", taken(*records), "1").html)

    assert len(root.of("chart")) == 1
