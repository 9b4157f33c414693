"""Errors on real data, predict-then-learn in file order: what a wrong formula would not reach."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any

import pytest

from olstream.config import LearnerConfig, MonitorConfig
from olstream.evaluate import Tally
from olstream.messages import Example
from olstream.model import Model

BATCH = 500


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
    model = Model("m", LearnerConfig(**config), MonitorConfig())
    for start in range(0, len(examples), BATCH):
        model.predict_then_update(examples[start : start + BATCH])
    return model.tally


@pytest.mark.parametrize(("algorithm", "params", "percent"), [("pa1", {"C": 1.0}, 20.9), ("arow", {"r": 1.0}, 15.6)])
def test_a9a(data_dir: Path, algorithm: str, params: dict[str, float], percent: float) -> None:
    tally = _tally(_libsvm(data_dir / "a9a.libsvm.gz"), algorithm=algorithm, params=params)

    assert tally.labelled == 32_561
    assert 100 * (tally.error_rate() or 1) == pytest.approx(percent, abs=0.3)


def test_electricity_with_scaling(data_dir: Path) -> None:
    examples = _csv(data_dir / "electricity.csv.gz", "class")

    tally = _tally(examples, algorithm="pa1", params={"C": 1.0}, scale="standard")

    assert tally.labelled == 45_312
    assert 100 * (tally.error_rate() or 1) == pytest.approx(7.7, abs=0.3)


def test_bike_sharing_regression(data_dir: Path) -> None:
    without = ("instant", "dteday", "casual", "registered")
    codes = ("season", "yr", "mnth", "hr", "holiday", "weekday", "workingday", "weathersit")
    examples = _csv(data_dir / "bike-sharing-hour.csv.gz", "cnt", without)

    tally = _tally(examples, algorithm="pa2", task="regression", scale="standard", features={"category": list(codes)})

    assert tally.labelled == 17_379
    assert (tally.mean_absolute_error() or 1e9) <= 53.0
