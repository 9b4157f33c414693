"""A support vector machine over the last labelled rows, solved exactly now and again, warm started.

Yan, Li. An efficient augmented Lagrangian method for support vector machine.
Optimization Methods and Software 35, 2020.

    SVC   min 1/2 ‖w‖² + C Σ h_i max(0, 1 - y_i w·x_i)         w (d,) weights, the bias among them
    SVR   min 1/2 ‖w‖² + C Σ h_i max(0, |w·x_i - y_i| - ε)     h  importance weight

over the last `window` rows with a label, each `every` of them, and at first after 1, 2, 4, ... Between two solutions
nothing changes. Several classes are learnt one against the rest. The step that is told of a row is its multiplier,
so that w = Σ step y x. The solver is `olstream.svm`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from olstream.alm import Solution, svm
from olstream.learners._jit import F64, I64, kernel
from olstream.learners._linear import hinge
from olstream.learners._rows import before, has_size, is_barred, many, one
from olstream.learners._score import LARGEST, NORMAL, clamp, dot, squared
from olstream.learners._state import Anatomy, Arrays, LinearState
from olstream.learners._window import lam_of, matrix_of, targets_of, weights_of
from olstream.learners.base import (
    BARRED,
    KNOWN,
    LOSS,
    LOSS_AFTER,
    MARGIN,
    MARGIN_AFTER,
    OVERFLOW,
    SCORE,
    SCORE_AFTER,
    SKIP,
    STEP,
    TARGET,
    TASKS,
    UPDATED,
    WEIGHT,
    Algorithm,
    Columns,
    Entries,
    Learning,
    Number,
    Run,
    Task,
)

PAPER: Final = (
    "Yan, Li. An efficient augmented Lagrangian method for support vector machine. "
    "Optimization Methods and Software 35, 2020"
)  # fmt: skip

ITERATIONS_MAX: Final = 50  # of one solution, so that none holds the stream up for long; the next goes on from there
ROWS, NEW = 0, 1  # counters: labelled rows so far, and those of them since the last solution


@kernel
def _toward_class(p: F64, a: Arrays, k: int, idx: I64, val: F64, out: F64, code: I64, row: int) -> None:
    f, y = dot(a.weights[k], idx, val), out[TARGET, row]
    before(out, code, row, f, y * f, hinge(y * f, 1.0, p), math.nan)
    if not math.isnan(y) and not is_barred(out, code, row):
        has_size(out, code, row, squared(val))


@kernel
def _toward_value(p: F64, a: Arrays, k: int, idx: I64, val: F64, out: F64, code: I64, row: int) -> None:
    f, y = dot(a.weights[k], idx, val), out[TARGET, row]
    before(out, code, row, f, math.nan, max(0.0, abs(clamp(y - f)) - p[0]) if not math.isnan(y) else y, math.nan)
    if not math.isnan(y) and not is_barred(out, code, row):
        has_size(out, code, row, squared(val))


@kernel
def _among(p: F64, a: Arrays, idx: I64, val: F64, now: F64, y: int, rival: int, out: F64, code: I64, row: int) -> None:
    m = clamp(now[y] - now[rival])
    before(out, code, row, out[SCORE, row], m, hinge(m, 1.0, p), math.nan)
    if not is_barred(out, code, row):
        has_size(out, code, row, squared(val))


class _Windowed:
    """The pass: rows are measured by a kernel up to the next one after which the window is solved."""

    def __init__(self, task: Task, given: Mapping[str, Any]) -> None:
        self.task, self.given = task, given
        self.every = int(given["every"])
        p = np.array([given.get("eps", 0.0)])
        lessons = {"binary": _toward_class, "regression": _toward_value}
        self.measure: Run = many(_among, p) if task == "multiclass" else one(lessons[task], p)

    def __call__(self, state: LinearState, entries: Entries, columns: Columns) -> None:
        for start, end, solves in self._stretches(state, entries, columns):
            part = self._measured(state, entries, columns, start, end)
            columns.numbers[:, start:end], columns.codes[:, start:end] = part.numbers, part.codes
            if columns.scores.size:
                columns.scores[start:end] = part.scores
            if solves:
                self._learn(state, entries, columns, end - 1)

    def _measured(self, state: LinearState, entries: Entries, columns: Columns, start: int, end: int) -> Columns:
        part = Columns(end - start, columns.scores.shape[1] if self.task == "multiclass" else None)
        part.numbers[:], part.codes[:] = columns.numbers[:, start:end], columns.codes[:, start:end]
        self.measure(state, Entries(entries.indptr[start : end + 1], entries.indices, entries.values), part)
        return part

    def _stretches(self, state: LinearState, entries: Entries, columns: Columns) -> Iterator[tuple[int, int, bool]]:
        """(start, end, whether the window is solved after it), of rows that the window has taken meanwhile."""
        out, counters, start = columns.numbers, state.held.counters[0], 0
        teaches = ~np.isnan(out[TARGET]) & (out[WEIGHT] > 0.0) & (columns.codes[BARRED] == 0)
        for row in np.flatnonzero(teaches).tolist():
            part = slice(entries.indptr[row], entries.indptr[row + 1])
            if not NORMAL <= squared(entries.values[part]) <= LARGEST:
                continue
            state.window.add(entries.indices[part], entries.values[part], out[TARGET, row], out[WEIGHT, row])
            counters += 1.0
            rows = int(counters[ROWS])
            if rows % self.every == 0 or (rows < self.every and rows & (rows - 1) == 0):
                yield start, row + 1, True
                start = row + 1
        if start < out.shape[1]:
            yield start, out.shape[1], False

    def _learn(self, state: LinearState, entries: Entries, columns: Columns, row: int) -> None:
        out, codes, a = columns.numbers, columns.codes, state.held
        classes = max(int(codes[KNOWN, row]), int(out[TARGET, row]) + 1) if self.task == "multiclass" else 1
        if self.task == "multiclass" and classes < 2:
            return
        try:
            found = self._solutions(state, classes)
        except ValueError:  # C and the sizes of the numbers are too far apart: what is new goes again
            state.window.let_go(int(a.counters[0, NEW]))
            a.counters[0] -= a.counters[0, NEW]
            codes[SKIP, row] = OVERFLOW
            return
        a.counters[0, NEW] = 0.0
        state.window.put_lam(np.array([solution.lam for solution in found]))
        codes[UPDATED, row] = any(np.any(a.weights[k] != solution.w) for k, solution in enumerate(found))
        for k, solution in enumerate(found):
            a.weights[k] = solution.w
        if codes[UPDATED, row]:
            out[STEP, row] = max(abs(float(solution.lam[-1])) for solution in found)
        codes[KNOWN, row], known = classes if self.task == "multiclass" else codes[KNOWN, row], codes[KNOWN, row]
        again = self._measured(state, entries, columns, row, row + 1)
        codes[KNOWN, row] = known
        for after, number in ((SCORE_AFTER, SCORE), (MARGIN_AFTER, MARGIN), (LOSS_AFTER, LOSS)):
            out[after, row] = again.numbers[number, 0]

    def _solutions(self, state: LinearState, classes: int) -> list[Solution]:
        rows, weights, given = state.window.last, state.held.weights, self.given
        matrix, targets, lam = matrix_of(rows), targets_of(rows), lam_of(rows, classes)
        return [
            svm(
                matrix,
                np.where(targets == k, 1.0, -1.0) if self.task == "multiclass" else targets,
                C=given["C"],
                eps=given["eps"] if self.task == "regression" else None,
                weight=weights_of(rows),
                tol=given["tol"],
                start=(weights[k], lam[k]),
                iterations_max=ITERATIONS_MAX,
                columns=weights.shape[1],
            )
            for k in range(classes)
        ]


def _build(task: Task, given: Mapping[str, Any]) -> Learning:
    return Learning(_Windowed(task, given), Anatomy(counters=(0.0, 0.0), window=int(given["window"])))


ALGORITHMS: Final = (
    Algorithm(
        name="alm_svm",
        title="Support vector machine by augmented Lagrangian",
        paper=PAPER,
        formulas=__doc__,
        tasks=TASKS,
        build=_build,
        params=(
            Number("C", 1.0, "cost of a loss", above=0.0),
            Number("eps", 0.1, "errors up to this are none", at_least=0.0, tasks=("regression",)),
            Number("window", 1000.0, "labelled rows that it is solved over", at_least=1, whole=True),
            Number("every", 100.0, "labelled rows from one solution to the next", at_least=1, whole=True),
            Number("tol", 1e-6, "relative accuracy of the solution", at_least=1e-12, at_most=0.1),
        ),
        build_rest=lambda given: _build("multiclass", given),
    ),
)
