"""Learning alone: our kernels and `Learner.learn_many` against other libraries, over the same rows in memory."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from olstream import Learner
from olstream.bench import rivals
from olstream.bench.forms import Problem, Told, forms, measured, problem
from olstream.bench.load import FEATURES
from olstream.bench.part import Bench, Part, Row, percent, speed

SIZES: Final = {f"{FEATURES} numbers": FEATURES, f"{FEATURES} of 2^18 features": 2**18}
ROWS_MAX: Final = 50_000  # River takes its time
AGAINST: Final = "olstream arow, kernel"  # ratios are to its rate
IN_FULL: Final = ("arow", "pa1")  # through `learn_many` too
PROGRAMS: Final = {"Vowpal Wabbit": "vowpal", "scikit-learn": "scikit", "River": "river_models"}


def measure(bench: Bench) -> Part:
    n = min(bench.records, ROWS_MAX)
    part = Part(f"learner: {n:,} rows in memory, one pass; us of CPU, in all threads")
    part.numbers = {"records": n, "sizes": {}}
    for title, names in SIZES.items():
        bench.say(f"learner, {title} ...")
        of_size = _of_size(bench, problem(n, names))
        part.rows += [Row(title, ""), *of_size.rows]
        part.numbers["sizes"][title] = of_size.numbers
    return part


def _of_size(bench: Bench, rows: Problem) -> Part:
    part = Part("", numbers={"ours": [], "left_out": []})
    found = {f"{form.shown}, kernel": measured(form, rows, bench.repetitions) for form in forms()}
    found |= {f"olstream {name}, learn_many": _in_full(name, rows, bench.repetitions) for name in IN_FULL}
    against = found[AGAINST]
    assert isinstance(against, Told)
    for what, told in found.items():
        if isinstance(told, Told):
            wrong = "" if told.wrong is None else percent(told.wrong)
            part.rows.append(Row(what, speed(told.us), f"{against.us / told.us:.2g}", wrong))
            part.numbers["ours"].append({"what": what, "us": round(told.us, 4), "wrong": told.wrong})
        else:
            part.rows.append(Row(what, told))
            part.numbers["left_out"].append(what)
    with tempfile.TemporaryDirectory(prefix="olstream-bench-") as directory:
        path = Path(directory, "rows.npz")
        binary, multiclass = (rows.targets[task].astype(np.int64) for task in ("binary", "multiclass"))
        np.savez(path, names=rows.names, columns=rows.columns, values=rows.values, binary=binary, multiclass=multiclass)
        for name, program in PROGRAMS.items():
            rivals.compare(part, bench, name, program, [path], against.us)
    return part


def _in_full(name: str, rows: Problem, repetitions: int) -> Told:
    told, labels = _as_given(rows), rows.targets["binary"].tolist()
    _learn_many(name, told[:1000], labels[:1000])  # compiles
    runs = [_learn_many(name, told, labels) for _ in range(repetitions)]
    return Told(median(run.us for run in runs), runs[0].wrong)


def _as_given(rows: Problem) -> Any:
    """As a caller has them: a matrix, or where that would be nearly empty a mapping for each row."""
    if rows.names == FEATURES:
        return rows.values
    names = [f"feature_{j}" for j in range(rows.names)]
    pairs = zip(rows.columns.tolist(), rows.values.tolist(), strict=True)
    return [{names[j]: value for j, value in zip(row, given, strict=True)} for row, given in pairs]


def _learn_many(name: str, rows: Any, labels: Sequence[float]) -> Told:
    learner = Learner(name)
    start_s = time.process_time()
    reports = learner.learn_many(rows, labels)
    us = (time.process_time() - start_s) / len(labels) * 1e6
    return Told(us, float(np.mean((np.array([report.score for report in reports]) >= 0.0) != (np.array(labels) > 0.0))))
