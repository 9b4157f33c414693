"""Regret against what a solver says of the same rows."""

from __future__ import annotations

from threading import Event
from typing import Any

import numpy as np
import pytest

from olstream.alm import svm
from olstream.config import HindsightConfig, LearnerConfig, MonitorConfig
from olstream.hindsight import Found, Hindsight
from olstream.messages import Example, Label
from olstream.model import Model
from tests.page import Service, example
from tests.test_pipeline import chunk_of, pipeline_of


def stream(task: str, n: int, seed: int = 7) -> tuple[Any, list[Label]]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    score = x @ rng.normal(size=(4, 3)) + 0.3 * rng.normal(size=(n, 3))
    if task == "regression":
        return x, score[:, 0].tolist()
    return x, (score[:, 0] > 0).astype(int).tolist() if task == "binary" else np.argmax(score, axis=1).tolist()


def watched(task: str, n: int, size: int = 50, classes: Any = None, **keys: int) -> tuple[Hindsight, Any]:
    """The hindsight of a learner, and its reports."""
    x, labels = stream(task, n)
    model = Model("m", LearnerConfig(algorithm="pa1", task=task, bias=False, classes=classes), MonitorConfig())  # type: ignore[arg-type]
    found = Hindsight(HindsightConfig(**keys), task, float(model.params.get("eps", 0.0)))  # type: ignore[arg-type]
    examples = [Example(features=row, label=label) for row, label in zip(x.tolist(), labels, strict=True)]
    all_rows = []
    for start in range(0, n, size):
        all_rows.append(model.predict_then_update(examples[start : start + size]))
        found.add(all_rows[-1])
        found.wait()
    return found, all_rows


def test_regret_of_two_classes_is_the_learners_hinge_loss_less_the_best_fixed_models() -> None:
    found, rows = watched("binary", 400, classes=[0, 1], window=200, every=100)
    x, labels = stream("binary", 400)
    x, y = x[200:], 2.0 * np.array(labels[200:]) - 1.0

    best = np.mean(np.maximum(0.0, 1.0 - y * (x @ svm(x, y, tol=1e-6).w)))

    own = np.mean(np.concatenate([of.loss for of in rows])[200:])
    assert found.found is not None
    assert found.found[:2] == pytest.approx((best, own - best), abs=1e-4)
    assert own - best > 0.0


def test_regret_of_a_regression_is_told_in_its_own_loss() -> None:
    found, rows = watched("regression", 300, window=150, every=50)
    x, target = stream("regression", 300)
    x, y = x[150:], np.array(target[150:])

    best = np.mean(np.maximum(0.0, np.abs(x @ svm(x, y, eps=0.1, tol=1e-6).w - y) - 0.1))

    own = np.mean(np.concatenate([of.loss for of in rows])[150:])
    assert found.found is not None
    assert found.found[:2] == pytest.approx((best, own - best), abs=1e-4)


def test_regret_of_several_classes_is_against_one_model_for_each() -> None:
    found, rows = watched("multiclass", 300, window=300, every=300)
    x, labels = stream("multiclass", 300)
    y = np.array(labels)

    scores = np.array([x @ svm(x, np.where(y == k, 1.0, -1.0), tol=1e-6).w for k in range(3)])
    own_score = scores[y, np.arange(300)]
    scores[y, np.arange(300)] = -np.inf
    best = np.mean(np.maximum(0.0, 1.0 - own_score + scores.max(axis=0)))

    own = np.mean(np.concatenate([of.loss for of in rows]))
    assert found.found is not None
    assert found.found[:2] == pytest.approx((best, own - best), abs=2e-3)


@pytest.mark.parametrize("size", [1, 37, 400])
def test_the_window_holds_the_last_rows_however_they_came(size: int) -> None:
    found, _ = watched("binary", 400, size=size, classes=[0, 1], window=100, every=400)
    expected, _ = watched("binary", 400, classes=[0, 1], window=100, every=400)

    assert expected.found is not None
    assert found.found == pytest.approx(expected.found, abs=1e-9)
    assert found._held < 100 + size


def test_nothing_is_known_before_enough_rows_and_of_one_class() -> None:
    few, _ = watched("binary", 99, classes=[0, 1], every=100)
    model = Model("m", LearnerConfig(task="multiclass"), MonitorConfig())
    one_class = Hindsight(HindsightConfig(every=5), "multiclass", 0.0)
    one_class.add(model.predict_then_update([Example(features=[1.0], label="a")] * 10))
    one_class.wait()

    assert (few.found, one_class.found) == (None, None)


def test_rows_without_label_or_weight_and_refused_ones_are_not_in_the_window() -> None:
    model = Model("m", LearnerConfig(algorithm="pa1", bias=False, classes=[0, 1]), MonitorConfig())
    found = Hindsight(HindsightConfig(every=4, window=4), "binary", 0.0)
    good = [Example(features=[1.0, float(i)], label=i % 2, weight=1.0 + i) for i in range(4)]
    others = [
        Example(features=[9.0, 9.0]),
        Example(features=[9.0, 9.0], label=1, weight=0.0),
        Example(features=[9.0, 9.0], label="x"),
    ]

    found.add(model.predict_then_update([good[0], others[0], good[1], others[2], good[2], others[1], good[3]]))
    found.wait()

    x, y, h = np.array([[1.0, i] for i in range(4)]), np.array([-1.0, 1.0, -1.0, 1.0]), np.array([1.0, 2.0, 3.0, 4.0])
    w = svm(x, y, weight=h, tol=1e-8).w
    assert found.found is not None
    assert found.found.loss == pytest.approx(np.average(np.maximum(0.0, 1.0 - y * (x @ w)), weights=h), abs=1e-3)


@pytest.mark.parametrize(("task", "classes"), [("binary", [0, 1]), ("multiclass", [0, 1, 2]), ("regression", None)])
def test_a_row_whose_label_came_late_counts_with_what_was_predicted_of_it(task: str, classes: Any) -> None:
    x, labels = stream(task, 60)
    learner = {"algorithm": "pa1", "task": task, "bias": False, "classes": classes}
    pipeline = pipeline_of({"m": learner}, routes=[{"learner": "m"}])
    eps = float(pipeline.models["m"].params.get("eps", 0.0))  # type: ignore[arg-type]
    found = Hindsight(HindsightConfig(window=60, every=60), task, eps)
    rows: list[dict[str, Any]] = [{"features": dict(zip("abcd", row, strict=True))} for row in x.tolist()]
    first = [row | {"id": i} for i, row in enumerate(rows[:40])]
    between = [row | {"label": label} for row, label in zip(rows[40:], labels[40:], strict=True)]
    late = [{"id": i, "label": label} for i, label in enumerate(labels[:40])]

    results = [
        result
        for messages in ([*first, {"features": {}, "label": []}], [*between, b"{", rows[0], *late])
        for result in pipeline.process(chunk_of(*messages)).results
    ]
    for result in results:
        found.add(result.rows)
    found.wait()

    own = np.concatenate([result.rows.loss[result.rows.measured != 0] for result in results])
    assert sum(len(result.late) for result in results) == 40
    assert found.found is not None and found.found.rows == own.size == 60
    assert found.found.loss + found.found.regret == pytest.approx(own.mean())
    if task != "multiclass":
        x, y = np.roll(x, 20, axis=0), np.roll(labels, 20).astype(np.float64)
        y = y if task == "regression" else 2.0 * y - 1.0
        w = svm(x, y, eps=eps if task == "regression" else None, tol=1e-6).w
        off = np.abs(x @ w - y) - eps if task == "regression" else 1.0 - y * (x @ w)
        assert found.found.loss == pytest.approx(np.mean(np.maximum(0.0, off)), abs=1e-3)


def test_numbers_too_far_apart_leave_the_last_regret_and_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    found, _ = watched("binary", 100, classes=[0, 1], window=100, every=100)
    before = found.found
    model = Model("m", LearnerConfig(classes=[0, 1]), MonitorConfig())
    extremes = [Example(features=[10.0**e, 1.0], label=e % 2) for e in (-300, 300, 290, -290) * 25]

    found.add(model.predict_then_update(extremes))
    found.wait()

    assert found.found == before or isinstance(found.found, Found)
    assert all(np.isfinite(number) for number in found.found or ())


def test_metrics_show_regret_once_it_is_known() -> None:
    service = Service({"fraud": {"algorithm": "pa1", "classes": [0, 1]}}, monitor={"hindsight": {"every": 10}})
    before = service.samples()

    service.take("fraud", *(example(i % 2, x=float(i % 2), y=1.0) for i in range(20)))
    service.metrics.hindsight["fraud"].wait()

    after = service.samples()
    assert 'regret{learner="fraud"}' not in before
    assert after['hindsight_loss{learner="fraud"}'] >= 0.0
    assert 'regret{learner="fraud"}' in after


def test_a_window_that_comes_while_one_is_worked_on_is_taken_next(monkeypatch: pytest.MonkeyPatch) -> None:
    found, rows = watched("binary", 100, classes=[0, 1], window=50, every=1000)
    gate, seen = Event(), list[int]()
    best = found._best

    def slow(piece: Any, at: int) -> Found | None:
        seen.append(at)
        assert gate.wait(30)
        return best(piece, at)

    monkeypatch.setattr(found, "_best", slow)
    for n in (950, 1000, 1000):
        found._since = n
        found.add(rows[1])
    gate.set()
    found.wait()

    assert seen in ([150, 250], [250], [150, 200, 250], [200, 250])
    assert found.found is not None and (found.found.at, found.found.rows, found.ago) == (250, 50, 0)
