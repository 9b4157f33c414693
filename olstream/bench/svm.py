"""The batch solver alone: how long it takes to a model of a given accuracy, against liblinear's dual solver."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

import numpy as np

from olstream.alm import Solution, svm
from olstream.bench import rivals
from olstream.bench.part import Bench, Part, Row, percent, speed
from olstream.learners._jit import F64

ROWS: Final = 5_000
COLUMNS: Final = 123
FILLED: Final = 14
C: Final = 1.0
ACCURACIES: Final = (1e-3, 1e-6)  # above the optimum, as a share of it


class Problem(NamedTuple):
    """`x` (5000, 124) of zeros and ones, the last column constant; `y` -1 or +1."""

    x: F64
    y: F64


def measure(bench: Bench) -> Part:
    problem = _problem()
    part = Part(f"svm: {ROWS:,} rows of {FILLED} of {COLUMNS} features, C = {C:g}; us of CPU, in all threads")
    part.numbers = {"records": ROWS, "ours": []}
    bench.say("svm ...")
    optimum = _timed(problem, 1e-9)[1].objective
    with tempfile.TemporaryDirectory(prefix="olstream-bench-") as directory:
        path = Path(directory, "rows.npz")
        np.savez(path, x=problem.x, y=problem.y, optimum=optimum, C=C)
        for accuracy in ACCURACIES:
            runs = [_timed(problem, accuracy) for _ in range(bench.repetitions)]
            us, solution = median(us for us, _ in runs), runs[0][1]
            wrong = float(np.mean((problem.x @ solution.w >= 0.0) != (problem.y > 0.0)))
            found = {"what": f"olstream svm, to {accuracy:g}", "us": round(us, 4), "wrong": wrong,
                     "above": solution.objective / optimum - 1.0}  # fmt: skip
            part.rows.append(Row(str(found["what"]), speed(us), "1", percent(wrong)))
            part.numbers["ours"].append(found)
            rivals.compare(part, bench, f"liblinear, to {accuracy:g}", "liblinear", [path, accuracy], us)
    return part


def _timed(problem: Problem, accuracy: float) -> tuple[float, Solution]:
    """Microseconds per row, and the solution, which is within the accuracy of the optimum."""
    start_s = time.process_time()
    solution = svm(problem.x, problem.y, C, tol=accuracy)
    return (time.process_time() - start_s) / ROWS * 1e6, solution


def _problem() -> Problem:
    """Features of very different frequency, and classes that overlap, as in records of people or of clicks."""
    rng = np.random.default_rng(0)
    frequency: Any = 1.0 / np.arange(2.0, COLUMNS + 2.0)
    chosen = np.array([rng.choice(COLUMNS, FILLED, replace=False, p=frequency / frequency.sum()) for _ in range(ROWS)])
    x = np.zeros((ROWS, COLUMNS + 1))
    np.put_along_axis(x, chosen, 1.0, axis=1)
    x[:, -1] = 1.0
    score = x[:, :-1] @ rng.normal(size=COLUMNS)
    noisy = score - np.median(score) + rng.logistic(size=ROWS)
    return Problem(x, np.where(noisy > 0.0, 1.0, -1.0))
