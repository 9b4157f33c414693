"""Margins before and after the update: what is counted is what the rows say."""

from __future__ import annotations

import numpy as np
import pytest

from olstream.config import LearnerConfig, MonitorConfig
from olstream.margins import AFTER, BEFORE, EDGES, Margins
from olstream.messages import Example
from olstream.model import Model


def test_margins_of_measured_rows_are_counted_by_their_upper_bounds() -> None:
    margins, nan = Margins(), float("nan")
    before = np.array([-7.0, 0.0, 1.0 + 1e-15, 1.1, nan, 50.0])

    margins.add(np.array([1, 1, 1, 1, 1, 0], np.uint8), before, before + 1.0)

    counted = {bound: n for bound, n in zip((*EDGES, np.inf), margins.counts[BEFORE].tolist(), strict=True) if n}
    assert counted == {-5.0: 1, 0.0: 1, 1.0: 1, 2.0: 1}
    assert margins.mean(BEFORE) == pytest.approx((-7.0 + 0.0 + 1.0 + 1.1) / 4)
    assert margins.mean(AFTER) == pytest.approx((-7.0 + 0.0 + 1.0 + 1.1) / 4 + 1.0)


def test_huge_margins_leave_a_finite_mean() -> None:
    margins = Margins()

    margins.add(np.ones(3, np.uint8), np.full(3, 1.7e308), np.full(3, -1.7e308))

    assert np.isfinite(margins.sums).all() and margins.sums[BEFORE] > 1e308


@pytest.mark.parametrize("size", [1, 7, 200])
def test_a_models_margins_are_those_of_its_rows_however_they_came(size: int) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(200, 3))
    examples = [Example(features=row, label=int(row[0] > 0)) for row in x.tolist()]
    model = Model("m", LearnerConfig(algorithm="pa1", classes=[0, 1]), MonitorConfig())
    before, after = [], []

    for start in range(0, 200, size):
        rows = model.predict_then_update(examples[start : start + size])
        before += rows.margin.tolist()
        after += rows.margin_after.tolist()
    meta, arrays = model.state()
    back = Model.restore("m", model.config, MonitorConfig(), meta, arrays)

    for margins in (model.tally.margins, back.tally.margins):
        assert margins.sums.tolist() == [sum(before), sum(after)]
        assert margins.counts.sum(axis=1).tolist() == [200, 200]


def test_a_regression_has_no_margins() -> None:
    model = Model("m", LearnerConfig(algorithm="pa1", task="regression"), MonitorConfig())

    model.predict_then_update([Example(features={"x": 1.0}, label=2.0)] * 5)

    assert model.tally.margins.mean(BEFORE) is None
