"""Learning alone: our kernels and `Learner.learn_many` against other libraries, over the same rows in memory."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import numpy as np

from olstream import Learner
from olstream.bench import rivals
from olstream.bench.load import FEATURES, lessons
from olstream.bench.part import Bench, Part, Row, percent, speed
from olstream.learners import base
from olstream.learners._jit import F64
from olstream.learners._state import LinearState

ALGORITHMS: Final = {"arow": "AROW", "pa1": "PA-I"}
PROGRAMS: Final = {"Vowpal Wabbit": "vowpal", "scikit-learn": "scikit", "River": "river_pa"}


class Rows(NamedTuple):
    """`x` (n, 20) and `y` +1 or -1."""

    x: F64
    y: F64


def measure(bench: Bench) -> Part:
    rows = _rows(bench.records)
    part = Part(f"learner: {bench.records:,} rows of {FEATURES} numbers in memory, one pass; us of CPU, in all threads")
    bench.say("learner ...")
    ways: dict[str, Callable[[], tuple[float, float]]] = {}
    for name, shown in ALGORITHMS.items():
        ways[f"olstream {shown}, kernel"] = partial(_kernel, name, rows)
        ways[f"olstream {shown}, learn_many"] = partial(_learn_many, name, rows)
    ours = {}
    for what, way in ways.items():
        way()
        runs = [way() for _ in range(bench.repetitions)]
        ours[what] = median(us for us, _ in runs), runs[0][1]
    against_us = next(iter(ours.values()))[0]
    part.rows = [Row(what, speed(us), f"{against_us / us:.2g}", percent(wrong)) for what, (us, wrong) in ours.items()]
    part.numbers = {
        "records": bench.records,
        "ours": [{"what": what, "us": round(us, 4), "wrong": wrong} for what, (us, wrong) in ours.items()],
    }
    with tempfile.TemporaryDirectory(prefix="olstream-bench-") as directory:
        path = Path(directory, "rows.npz")
        np.savez(path, x=rows.x, y=rows.y.astype(np.int64))
        for name, program in PROGRAMS.items():
            rivals.compare(part, bench, name, program, [path], against_us)
    return part


def _rows(n: int) -> Rows:
    told = list(lessons(n))
    x = np.array([list(lesson.features.values()) for lesson in told])
    return Rows(x, np.array([lesson.label for lesson in told], np.float64))


def _kernel(name: str, rows: Rows) -> tuple[float, float]:
    """One call over all rows, the bias a column like the others: microseconds per row, share of wrong ones."""
    algorithm = base.algorithm(name)
    learning = algorithm.learning("binary", algorithm.check("binary", {}))
    n, width = len(rows.y), FEATURES + 1
    state = LinearState(learning.anatomy)
    state.use(1, width)
    entries = base.Entries(
        np.arange(0, (n + 1) * width, width), np.tile(np.arange(width), n), np.insert(rows.x, 0, 1.0, axis=1).ravel()
    )
    columns = base.Columns(n)
    columns.numbers[base.TARGET] = rows.y
    columns.numbers[base.WEIGHT] = 1.0
    start_s = time.process_time()
    learning.run(state, entries, columns)
    us = (time.process_time() - start_s) / n * 1e6
    return us, float(np.mean((columns.numbers[base.SCORE] >= 0.0) != (rows.y > 0.0)))


def _learn_many(name: str, rows: Rows) -> tuple[float, float]:
    learner = Learner(name)
    start_s = time.process_time()
    reports = learner.learn_many(rows.x, rows.y)
    us = (time.process_time() - start_s) / len(rows.y) * 1e6
    return us, float(np.mean((np.array([report.score for report in reports]) >= 0.0) != (rows.y > 0.0)))
