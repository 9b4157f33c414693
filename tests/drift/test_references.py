"""Each detector against its slow reference, value by value."""

from __future__ import annotations

import math
from typing import Any

import pytest

from olstream.drift import NAMES, Detector
from olstream.drift.detector import METHODS
from olstream.learners._jit import F64
from tests.drift.references import REFERENCES
from tests.drift.streams import BINARY, EVERY

PYTHON = {"lambda": "lambda_"}
FORMS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in NAMES),
    ("adwin", {"delta": 0.2, "clock": 1, "max_buckets": 2, "min_window": 1, "min_samples": 3}),
    ("adwin", {"delta": 1e-9, "clock": 7, "max_buckets": 12, "min_samples": 210}),
    ("adwin", {"mode": "up"}),
    ("adwin", {"mode": "down", "clock": 5}),
    ("ddm", {"min_samples": 5, "warning": 1.0, "drift": 1.5}),
    ("ddm", {"min_errors": 10}),
    ("eddm", {"min_samples": 3, "min_errors": 2, "warning": 0.9, "drift": 0.6}),
    ("hddm_a", {"drift": 0.01, "warning": 0.2, "two_sided": True}),
    ("hddm_w", {"drift": 0.01, "warning": 0.2, "lambda": 0.2, "two_sided": True}),
    ("page_hinkley", {"lambda": 8.0, "mode": "both"}),
    ("page_hinkley", {"lambda": 5.0, "delta": 0.0, "alpha": 1.0, "min_samples": 1, "mode": "down"}),
    ("page_hinkley", {"lambda": 10.0, "delta": 0.05, "alpha": 0.99}),
    ("kswin", {"alpha": 0.05, "window": 50, "stat": 20, "seed": 7}),
    ("kswin", {"threshold": "paper", "seed": 2**53}),
    ("kswin", {"mode": "up", "alpha": 0.02}),
    ("kswin", {"mode": "down", "alpha": 0.02}),
]


def agrees(name: str, params: dict[str, Any], values: F64) -> list[int]:
    """The levels, once all that is told after each value has been compared."""
    detector = Detector(name, **params)
    reference = REFERENCES[name](**{PYTHON.get(key, key): value for key, value in params.items()})
    levels = []
    for i, x in enumerate(values.tolist()):
        levels.append(detector.update(x))
        assert levels[-1] == reference.update(x) == detector.level, i
        assert detector.window_events == reference.events, i
        seen = (detector.statistic, detector.threshold)
        assert all(map(near, seen, reference.seen or (None, None))), (i, seen, reference.seen)
    return levels


def near(a: float | None, b: float | None) -> bool:
    return a is b if a is None or b is None else math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)


CASES = [
    pytest.param(name, params, stream, id=f"{name} {params or ''} {stream}")
    for name, params in FORMS
    for stream in (BINARY if METHODS[name].binary else EVERY)
]


@pytest.mark.parametrize(("name", "params", "stream"), CASES)
def test_a_detector_does_what_its_formulas_say(name: str, params: dict[str, Any], stream: str) -> None:
    for seed in range(1 if params else 2):
        levels = agrees(name, params, EVERY[stream](seed))

        assert 2 in levels or stream != "back_and_forth" or name == "page_hinkley"
