"""How soon each drift detector sees that errors have become more, how often it is mistaken, and what a value costs."""

from __future__ import annotations

import time
from statistics import median
from typing import Any, Final

import numpy as np

from olstream.bench.part import Bench, Part, Row
from olstream.drift import NAMES, Detector
from olstream.drift.base import DRIFT
from olstream.learners._jit import F64, I64

STREAMS: Final = 20  # of each kind
ROWS: Final = 20_000
CHANGE: Final = 10_000  # the row at which the change begins
IN_TIME: Final = 5_000  # a drift later than so many rows after that is not of the change
LOW, HIGH = 0.2, 0.4  # shares of errors
CHANGES: Final = {"abrupt": 1, "gradual": 2_000}  # rows from the one share to the other


def measure(bench: Bench) -> Part:
    kinds = [*CHANGES, "no change"]
    part = Part(f"drift: {LOW:.0%} errors that become {HIGH:.0%}, {STREAMS} streams of each kind; us of CPU per value")
    part.numbers = {"streams": STREAMS, "rows": ROWS, "ours": [_numbers(bench, name) for name in NAMES]}
    for kind in kinds:
        part.rows.append(Row(kind, ""))
        part.rows += [Row(of["what"], _shown(of, kind)) for of in part.numbers["ours"]]
    return part


def _numbers(bench: Bench, name: str) -> dict[str, Any]:
    bench.say(f"drift, {name} ...")
    found: dict[str, Any] = {"what": name}
    for kind, over in CHANGES.items():
        after = [row - CHANGE for row in _first(_drifts(name, over))]
        found[kind] = {"found": len(after), "delay": median(after) if after else None}
    alarms = sum(drifts.size for drifts in _drifts(name, None))
    found["false_alarms"] = round(alarms / (STREAMS * ROWS) * 1e4, 4)
    found["us"] = round(median(_cost(name) for _ in range(bench.repetitions)), 4)
    return found


def _shown(of: dict[str, Any], kind: str) -> str:
    if kind not in CHANGES:
        return f"{of['false_alarms']:.2f} false alarms in 10,000 rows; {of['us']:.3f} us"
    seen = of[kind]
    return f"found in {seen['found']}" + (f", after {seen['delay']:,.0f} rows" if seen["found"] else "")


def _drifts(name: str, over: int | None) -> list[I64]:
    """The rows of each stream at which the detector says drift."""
    return [np.flatnonzero(Detector(name).update_many(stream(over, seed)) == DRIFT) for seed in range(STREAMS)]


def _first(drifts: list[I64]) -> list[int]:
    """The first drift of each stream that is of the change, where there is one."""
    return [int(row) for rows in drifts for row in rows[(rows >= CHANGE) & (rows < CHANGE + IN_TIME)][:1]]


def stream(over: int | None, seed: int) -> F64:
    """Errors, 0 or 1, that become more over so many rows; with None they stay as they are."""
    ends, shares = [CHANGE - 1, CHANGE - 1 + (over or 1)], [LOW, LOW if over is None else HIGH]
    rates = np.interp(np.arange(ROWS), ends, shares)
    return (np.random.default_rng(seed).random(ROWS) < rates).astype(np.float64)


def _cost(name: str) -> float:
    """Microseconds of CPU per value."""
    values, detector = stream(None, 0), Detector(name)
    detector.update_many(values[:0])  # compiles
    start_s = time.process_time()
    detector.update_many(values)
    return (time.process_time() - start_s) / ROWS * 1e6
