"""The two passes over a batch: for one weight vector, and for one of each class. All learners share them.

Row by row, in order: the row is scored, and then given to the learner's lesson.

    one    binary (target +1 or -1) and regression     lesson(p, a, k, idx, val, out, code, row)
    many   multiclass                                  lesson(p, a, idx, val, now, y, rival, out, code, row)

A lesson writes what is reported of its row (`before`, then `after` where it changed something), and nothing into
the arrays before all of it is known to be finite, so no state ever holds NaN or inf. A row with weight 0 or no label
is scored and changes nothing: predicting is the same pass.
"""

from __future__ import annotations

import math

import numpy as np

from olstream.learners._jit import F64, I64, Kernel, bound, kernel, lent, no_part
from olstream.learners._score import LARGEST, NORMAL, best_of, plain
from olstream.learners._state import Arrays, LinearState
from olstream.learners.base import (
    BARRED,
    KNOWN,
    LOSS,
    LOSS_AFTER,
    MARGIN,
    MARGIN_AFTER,
    SCORE,
    SCORE_AFTER,
    SKIP,
    STEP,
    TARGET,
    UPDATED,
    VARIANCE,
    WEIGHT,
    WINNER,
    ZERO_NORM,
    Columns,
    Entries,
    Run,
)


def one(lesson: Kernel, p: F64) -> Run:
    """The pass for one weight vector: toward the class, or in regression toward the target."""
    rows = bound(_one, lesson=lesson)

    def run(state: LinearState, entries: Entries, columns: Columns) -> None:
        rows(p, state.held, *entries, columns.numbers, columns.codes)

    return run


def many(lesson: Kernel, p: F64, reach: Kernel | None = None, score: Kernel = plain, counts_alone: bool = False) -> Run:
    """The pass for one weight vector per class. `reach` gives the variance of a class's score, where there is one.

    `counts_alone`: the lesson is also given rows that know no other class, with -1 for the rival.
    """
    rows = bound(_many, lesson=lesson, score=score, reach=reach or _no_reach, counts_alone=counts_alone)

    def run(state: LinearState, entries: Entries, columns: Columns) -> None:
        spreads = columns.scores[:0] if reach is None else columns.spreads
        rows(p, state.held, *entries, columns.numbers, columns.codes, columns.scores, spreads)

    return run


@kernel
def before(out: F64, code: I64, row: int, f: float, m: float, l: float, v: float) -> None:  # noqa: E741
    """What is reported of a row that changes nothing; a change writes over the half of it."""
    out[SCORE, row] = out[SCORE_AFTER, row] = f
    out[MARGIN, row] = out[MARGIN_AFTER, row] = m
    out[LOSS, row] = out[LOSS_AFTER, row] = l
    out[VARIANCE, row] = min(v, LARGEST)
    out[STEP, row] = 0.0
    code[SKIP, row] = 0
    code[UPDATED, row] = 0


@kernel
def after(out: F64, code: I64, row: int, step: float, f: float, m: float, l: float) -> None:  # noqa: E741
    out[SCORE_AFTER, row] = f
    out[MARGIN_AFTER, row] = m
    out[LOSS_AFTER, row] = l
    out[STEP, row] = step
    code[UPDATED, row] = 1


@kernel
def is_barred(out: F64, code: I64, row: int) -> bool:
    """Whether a row is not to be learnt; if it was decided before that it cannot be, why."""
    if not out[WEIGHT, row] > 0.0:
        return True
    code[SKIP, row] = code[BARRED, row]
    return bool(code[BARRED, row] != 0)


@kernel
def has_size(out: F64, code: I64, row: int, q: float) -> bool:
    """Whether a squared size of x can be divided by; if not, the row is taken for the zero vector."""
    if NORMAL <= q <= LARGEST:
        return True
    code[SKIP, row] = ZERO_NORM
    return False


@kernel
def _no_reach(spread: F64, idx: I64, val: F64, work: F64) -> float:
    return math.nan


# What stands for a learner's own parts in the templates below
lesson: Kernel = no_part
score: Kernel = plain
reach: Kernel = _no_reach
counts_alone = False


def _one(p: F64, a: Arrays, indptr: I64, indices: I64, values: F64, out: F64, code: I64) -> None:
    p, a, indptr, indices, values, out, code = lent((p, a, indptr, indices, values, out, code))
    for row in range(out.shape[1]):
        start, end = indptr[row], indptr[row + 1]
        lesson(p, a, 0, indices[start:end], values[start:end], out, code, row)


def _many(
    p: F64, a: Arrays, indptr: I64, indices: I64, values: F64, out: F64, code: I64, scores: F64, spreads: F64
) -> None:
    p, a, indptr, indices, values = lent((p, a, indptr, indices, values))
    out, code, scores, spreads = lent((out, code, scores, spreads))
    now = np.zeros(a.weights.shape[0] + 1)  # scores; still 0 for a class that the row brings
    for row in range(out.shape[1]):
        start, end = indptr[row], indptr[row + 1]
        idx, val = indices[start:end], values[start:end]
        known = code[KNOWN, row]
        for k in range(known):
            now[k] = score(a, k, idx, val)
            if spreads.size > 0:
                spreads[row, k] = reach(a.spread[min(k, a.spread.shape[0] - 1)], idx, val, a.work[0])
        if scores.size > 0:
            scores[row, :known] = now[:known]
        best = best_of(now, known, -1)
        code[WINNER, row] = best
        f = now[best] if best >= 0 else 0.0
        if math.isnan(out[TARGET, row]):
            before(out, code, row, f, math.nan, math.nan, math.nan)
            continue
        y = int(out[TARGET, row])
        rival = best_of(now, known, y)
        before(out, code, row, f, math.nan, 0.0, math.nan)
        if rival >= 0 or counts_alone:
            lesson(p, a, idx, val, now, y, rival, out, code, row)


@kernel
def classes_then(code: I64, row: int, y: int) -> int:
    """How many classes are known once a row has been learnt."""
    return int(max(code[KNOWN, row], y + 1))
