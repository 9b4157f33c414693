"""Each detector against its slow reference, value by value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from olstream.drift import NAMES, Detector
from olstream.learners._jit import F64
from tests.drift.references import REFERENCES
from tests.drift.streams import BINARY, EVERY

SEEDS = range(3)
FORMS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in NAMES),
    ("adwin", {"delta": 0.2, "clock": 1, "max_buckets": 2, "min_window": 1, "min_samples": 3}),
    ("adwin", {"delta": 1e-9, "clock": 7, "max_buckets": 12, "min_samples": 200}),
    ("ddm", {"min_samples": 5, "warning": 1.0, "drift": 1.5}),
    ("ddm", {"min_errors": 10}),
]


def agrees(name: str, params: dict[str, Any], values: F64) -> list[int]:
    """The levels, once all that is told after each value has been compared."""
    detector, reference = Detector(name, **params), REFERENCES[name](**params)
    levels = []
    for i, x in enumerate(values.tolist()):
        levels.append(detector.update(x))
        assert levels[-1] == reference.update(x) == detector.level, i
        assert detector.window_events == reference.events, i
        seen = None if detector.statistic is None else (detector.statistic, detector.threshold)
        assert seen == (None if reference.seen is None else pytest.approx(reference.seen, rel=1e-9, abs=1e-12)), i
    return levels


@pytest.mark.parametrize("stream", EVERY)
@pytest.mark.parametrize(("name", "params"), FORMS, ids=str)
def test_a_detector_does_what_its_formulas_say(name: str, params: dict[str, Any], stream: str) -> None:
    if Detector(name, **params).binary and stream not in BINARY:
        pytest.skip("takes errors only")

    levels = np.array([agrees(name, params, EVERY[stream](seed)) for seed in SEEDS])

    if stream in ("abrupt", "back_and_forth"):
        assert np.all(np.any(levels == 2, axis=1))
