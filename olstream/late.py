"""Predictions whose labels come later: what is kept of them, and their loss once the label is known.

The loss is the learner's own, of the scores as they were. A learner measures as it learns, in one kernel. So that each
one's own kernel measures here too, it is given a state that predicts what was predicted: a column for each row, with
the score for a weight and the variance for a variance, and rows that hold a 1 in their column and weigh nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from olstream.learners._jit import F64, I64, kernel
from olstream.learners._state import LinearState
from olstream.learners.base import KNOWN, LOSS, TARGET, WEIGHT, Columns, Entries, Learning
from olstream.rows import Rows
from olstream.waiting import Made, Row

AT_ONCE: Final = 256
AT_ONCE_FULL: Final = 16  # a covariance has as many rows as columns


def made_of(rows: Rows, places: Sequence[int], prior: float | None) -> Iterator[Made]:
    """What was predicted at these places."""
    several, has_spreads = rows.task == "multiclass", rows.spreads.size > 0
    variance = np.nan_to_num(rows.variance, nan=0.0)
    at = np.array(places, np.int64)
    spans = np.stack([rows.batch.indptr[at], rows.batch.indptr[at + 1]])
    fresh = fresh_variances(prior or 0.0, spans, rows.batch.values)
    columns = (array[at].tolist() for array in (rows.score, variance, rows.predicted, rows.known))
    for k, fresh_variance, score, spread, predicted, known in zip(places, fresh.tolist(), *columns, strict=True):
        yield Made(
            score=score,
            variance=spread,
            fresh=fresh_variance,
            predicted=predicted,
            known=known,
            scores=rows.scores[k, :known].tobytes() if several else b"",
            spreads=rows.spreads[k, :known].tobytes() if has_spreads else b"",
        )


def as_predicted(rows: Rows, late: Mapping[int, Row], learning: Learning) -> None:
    """What is measured of late rows, by place, is the prediction made when their features came. None is refused."""
    places = np.array(list(late), np.int64)
    made = [row.made for row in late.values() if row.made is not None]
    rows.loss[places] = losses(learning, made, rows.target[places], rows.task == "multiclass")
    rows.score[places] = [one.score for one in made]
    rows.predicted[places] = predicted = np.array([one.predicted for one in made], np.int64)
    if rows.task != "regression":
        rows.correct[places] = (predicted == rows.truth[places]) & (predicted >= 0)
    rows.entries[places] = -1
    rows.measured[places] &= np.array([row.is_measured for row in late.values()])


def losses(learning: Learning, made: Sequence[Made], targets: F64, several: bool) -> F64:
    """(n,) for targets as kernels take them; `several`: one weight vector for each class."""
    found = np.empty(len(made))
    # A pass remembers scores from row to row, up to the classes that a row knows: none may know fewer than the last.
    order = np.argsort([one.known for one in made], kind="stable") if several else np.arange(len(made))
    size = AT_ONCE_FULL if learning.anatomy.is_full else AT_ONCE
    for start in range(0, len(made), size):
        some = order[start : start + size]
        found[some] = _losses(learning, [made[i] for i in some], targets[some], several)
    return found


def _losses(learning: Learning, made: Sequence[Made], targets: F64, several: bool) -> F64:
    n, anatomy = len(made), learning.anatomy
    known = np.array([one.known for one in made], np.int64)
    classes = int(known.max()) + 1 if several else 1  # and one that a label brings
    state = LinearState(anatomy)
    arrays = state.use(classes, n)
    spread = np.zeros((classes, n))
    for i, one in enumerate(made):
        scores, spreads = _of_classes(one) if several else (np.array([one.score]), np.array([one.variance]))
        arrays.weights[: scores.size, i] = scores
        spread[: spreads.size, i] = spreads
        spread[spreads.size :, i] = one.fresh
    if anatomy.is_full:
        arrays.spread[:] = 0.0
        for root, variances in zip(arrays.spread, spread, strict=False):
            root[range(n), range(n)] = np.sqrt(variances)
    elif anatomy.prior is not None:
        arrays.spread[:classes, :n] = spread
    columns = Columns(n, classes if several else None, anatomy.prior is not None)
    columns.numbers[TARGET] = np.minimum(targets, known) if several else targets
    columns.numbers[WEIGHT] = 0.0
    columns.codes[KNOWN] = known
    learning.run(state, Entries(np.arange(n + 1), np.arange(n), np.ones(n)), columns)
    found: F64 = columns.numbers[LOSS]
    return found


def _of_classes(one: Made) -> tuple[F64, F64]:
    return np.frombuffer(one.scores, np.float64), np.frombuffer(one.spreads, np.float64)


@kernel
def fresh_variances(prior: float, spans: I64, values: F64) -> F64:
    """Of the score that a class would have of which nothing is known: prior ‖x‖² for x = values[from:to]."""
    found = np.zeros(spans.shape[1])
    for row in range(found.size):
        for k in range(spans[0, row], spans[1, row]):
            found[row] += prior * values[k] * values[k]
    return found
