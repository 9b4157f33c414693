"""What a model says about each row of a batch: what is published of it, and what is counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from olstream.alarms import Alarm
from olstream.confidence import probabilities, side_probability
from olstream.learners._jit import F64, I64, U8
from olstream.learners.base import OVERFLOW
from olstream.messages import Label, Reject
from olstream.vectorize import Batch
from olstream.waiting import Row


@dataclass(frozen=True, slots=True)
class Counts:
    """What one batch adds to counters. `seen`: accepted rows without late ones; weight 0 is in no other count."""

    seen: int = 0
    labelled: int = 0
    late: int = 0  # labels that came by themselves
    unmeasured: int = 0  # of those, because another slot had predicted
    unlabelled: int = 0
    updated: int = 0
    passive: int = 0
    skipped: int = 0
    unstable: int = 0
    mistakes: int = 0
    loss: float = 0.0
    absolute_error: float = 0.0
    squared_error: float = 0.0
    features: int = 0
    novel: int = 0
    overflowed: int = 0


@dataclass(slots=True)
class Rows:
    """Columns by position in the batch, all (n,); nan and -1 are null.

    At the positions in `rejects` they hold nothing of use, with `measured` and `updated` 0 and
    `entries` -1. A regression's prediction is its score. The label is the example's own.
    Of a late row, whose label came by itself, score, prediction, loss and `correct` are those of the prediction that
    was made when its features came, and `entries` is -1; margin and what follows are of the model that learns it.
    """

    task: str
    n: int
    rejects: Mapping[int, Reject]
    classes: Sequence[Label | None]  # JSON form by class index
    texts: Sequence[str | None]
    counts: Counts
    score: F64
    margin: F64
    loss: F64
    variance: F64
    step: F64
    score_after: F64
    margin_after: F64
    loss_after: F64
    probability: F64
    predicted: I64  # class index
    truth: I64  # class index of the label, where it has one
    known: I64  # classes known before the row; binary: 1 for the negative + 2 for the positive
    updates: I64  # of the model so far, this row's included
    entries: I64  # features given, without the bias
    correct: NDArray[np.int8]
    measured: U8  # has a label and a weight: what enters tally and counts
    updated: U8
    skip: U8  # learners.base.SKIP_REASONS
    scores: F64  # (n, K): multiclass, else (0, 0)
    spreads: F64  # their variances, where the learner has some
    target: F64  # the label as kernels take it: +1 or -1, a class index or a value
    weight: F64  # importance, class weight included
    batch: Batch  # the accepted rows as the learner met them
    alarms: Sequence[Alarm] = ()  # of drift detectors; a row is a position among accepted ones until `spread_out`
    answer: str | None = None  # what followed from drift after the last row

    def __len__(self) -> int:
        return self.n

    @property
    def distance(self) -> F64:
        """How far off each prediction was, for a regression."""
        with np.errstate(over="ignore"):
            return np.minimum(np.abs(self.target - self.score), np.finfo(np.float64).max)

    def scores_of(self, row: int) -> dict[str, float] | None:
        """{class text: score} of the classes known to the row; binary: the score and its negative."""
        if self.task == "regression":
            return None
        if self.task == "multiclass":
            return self._named(self.scores[row, : self.known[row]])
        f = float(self.score[row])
        return self._sides(row, -f, f)

    def probabilities_of(self, row: int) -> dict[str, float] | None:
        """{class text: probability}, which sum to 1."""
        if self.task == "regression":
            return None
        if self.task == "multiclass":
            known = int(self.known[row])
            return self._named(probabilities(self.scores, self.spreads, row, known)) if known else {}
        if self.known[row] != 3:
            return self._sides(row, 1.0, 1.0)
        f, v = float(self.score[row]), float(self.variance[row])
        return self._sides(row, float(side_probability(-f, v)), float(side_probability(f, v)))

    def _named(self, numbers: F64) -> dict[str, float]:
        return {str(self.texts[k]): number for k, number in enumerate(numbers.tolist())}

    def _sides(self, row: int, negative: float, positive: float) -> dict[str, float]:
        known = int(self.known[row])
        return {str(self.texts[k]): number for k, number in enumerate((negative, positive)) if known >> k & 1}

    def spread_out(self, accepted: I64, n: int) -> None:
        """Make room for the rejected rows, where there are any."""
        for name in _COLUMNS:
            column = getattr(self, name)
            filler = np.nan if column.dtype == np.float64 else 0
            wide = np.full((n, *column.shape[1:]), filler, column.dtype)
            if column.shape[0] == self.n:
                wide[accepted] = column
                setattr(self, name, wide)
        self.alarms = [replace(alarm, row=int(accepted[alarm.row])) for alarm in self.alarms]
        refused = np.ones(n, np.bool_)
        refused[accepted] = False
        self.entries[refused] = self.predicted[refused] = self.truth[refused] = -1
        self.correct[refused] = -1
        self.n = n


_COLUMNS = (
    "score", "margin", "loss", "variance", "step", "score_after", "margin_after", "loss_after", "probability",
    "predicted", "truth", "known", "updates", "entries", "correct", "measured", "updated", "skip", "scores", "spreads",
    "target", "weight",
)  # fmt: skip


def counted(rows: Rows, learnt: NDArray[np.bool_], novel: int, overflowed: int, late: Mapping[int, Row]) -> Counts:
    """What a batch adds, once it is measured; no row of it is refused. `learnt`: rows that were to be learnt."""
    measured = rows.measured != 0
    labelled, updated = int(np.count_nonzero(measured)), int(np.count_nonzero(rows.updated))
    mistakes, absolute, squared = 0, 0.0, 0.0
    if rows.task == "regression":
        distance = rows.distance[measured]
        absolute, squared = _total(distance), _total(distance, 2)
    else:
        mistakes = labelled - int(np.count_nonzero(rows.correct[measured] == 1))
    return Counts(
        seen=rows.n - len(late),
        labelled=labelled,
        late=len(late),
        unmeasured=sum(not row.is_measured for row in late.values()),
        unlabelled=int(np.count_nonzero(np.isnan(rows.target) & (rows.weight > 0.0))),
        updated=updated,
        passive=int(np.count_nonzero(learnt)) - updated - int(np.count_nonzero(rows.skip[learnt])),
        skipped=int(np.count_nonzero(rows.skip)),
        unstable=int(np.count_nonzero(rows.skip == OVERFLOW)),
        mistakes=mistakes,
        loss=_total(rows.loss[measured]),
        absolute_error=absolute,
        squared_error=squared,
        features=int(np.sum(rows.entries)) + len(late),
        novel=novel,
        overflowed=overflowed,
    )


def _total(numbers: F64, power: int = 1) -> float:
    """A sum for a counter: finite whatever happens."""
    with np.errstate(over="ignore"):
        return min(float(np.sum(numbers**power)), float(np.finfo(np.float64).max))
