"""Errors on real texts, predict-then-learn in file order, told into words by `features.text`."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from olstream.config import FieldsConfig, LearnerConfig, MonitorConfig
from olstream.decode import Decoder
from olstream.messages import Example
from olstream.model import Model

BATCH = 500


@pytest.mark.parametrize(
    ("file", "rows", "percent_max"), [("sms-spam", 5_574, 2.5), ("sentence-polarity", 10_662, 27.8)]
)
def test_arow_learns_words(data_dir: Path, file: str, rows: int, percent_max: float) -> None:
    decoder = Decoder(FieldsConfig(features="."), ["seq"], 1 << 20)
    learner = {"algorithm": "arow", "params": {"r": 1.0}, "features": {"text": {"text": "words"}}}
    model = Model("m", LearnerConfig.model_validate(learner), MonitorConfig())

    with gzip.open(data_dir / f"{file}.ndjson.gz") as lines:
        examples = [example for example in decoder.decode(list(lines)) if isinstance(example, Example)]
    for start in range(0, len(examples), BATCH):
        model.predict_then_update(examples[start : start + BATCH])

    assert model.tally.labelled == rows
    assert 100 * (model.tally.error_rate() or 1) <= percent_max
