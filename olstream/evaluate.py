"""Progressive validation: how good the predictions were, each made before its row was learnt.

Gama, Sebastiao, Rodrigues. On Evaluating Stream Learning Algorithms. Machine Learning 90, 2013.

    total     P_i = (1/i) Σ L_k
    sliding   mean of the last min(i, window) losses
    fading    S_i = L_i + a S_{i-1},  N_i = 1 + a N_{i-1},  P_i = S_i / N_i

each for the error (0 or 1) and for the learner's own loss, beside two predictors that know
nothing of the features: the majority class so far and the last class. Row by row, so that
batches of any size give the same bits; what a sliding mean needs is kept, not its sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from olstream import intact
from olstream.history import History, is_due, note
from olstream.learners._jit import F64, I64, U8, kernel
from olstream.learners._score import LARGEST
from olstream.margins import Margins

Window: TypeAlias = Literal["total", "sliding", "fading"]
CONFUSION_MAX: Final = 8  # declared classes of the confusion table; the rest are one class, `other`

_COUNTS: Final = ("seen", "labelled", "updates", "errors", "majority_errors", "no_change_errors")
_PLACES: Final = ("last", "majority", "head", "stored")
_SUMS: Final = ("loss", "absolute", "squared", "fading_n", "fading_error", "fading_loss")
SEEN, LABELLED, UPDATES, ERRORS, MAJORITY_ERRORS, NO_CHANGE_ERRORS = range(6)
LAST, MAJORITY, HEAD, STORED = range(6, 10)
LOSS, ABSOLUTE, SQUARED, FADING_N, FADING_ERROR, FADING_LOSS = range(6)


class Tally:
    """The counters of one learner and its three windows."""

    def __init__(self, classify: bool, window: int, fading: float, declared: int = 0) -> None:
        self.classify = classify
        self.window = window
        self.fading = fading
        self.counts = np.zeros(len(_COUNTS) + len(_PLACES), np.int64)
        self.counts[[LAST, MAJORITY]] = -1
        self.sums = np.zeros(len(_SUMS), np.float64)
        self.per_class = np.zeros(0, np.int64)
        side = declared if declared <= CONFUSION_MAX else CONFUSION_MAX + 1
        self.confusion = np.zeros((side, side), np.int64)  # [label, predicted]; last = other past the eighth
        self.recent_errors = np.zeros(0, np.float64)  # 0 or 1; in regression how far off
        self.recent_losses = np.zeros(0, np.float64)
        self.history = History(window)
        self.margins = Margins()

    def add(
        self, measured: U8, truth: I64, predicted: I64, loss: F64, absolute: F64, updates: I64, classes: int
    ) -> None:
        """Rows in order; only measured ones count. `absolute` is |error|, empty in classification."""
        self._make_room(int(np.count_nonzero(measured)), classes)
        history = self.history
        _add(
            self.classify, self.window, self.fading, self.counts, self.sums, self.per_class, self.confusion,
            self.recent_errors, self.recent_losses, history.places, history.recent, history.life,
            measured, truth, predicted, loss, absolute, updates,
        )  # fmt: skip

    def _make_room(self, rows: int, classes: int) -> None:
        need = min(self.window, int(self.counts[STORED]) + rows)
        if need > self.recent_losses.size:
            size = min(self.window, max(need, 2 * self.recent_losses.size))
            self.recent_errors = _grown(self.recent_errors, size)
            self.recent_losses = _grown(self.recent_losses, size)
        if classes > self.per_class.size:
            self.per_class = _grown(self.per_class, max(classes, 2 * self.per_class.size))

    @property
    def seen(self) -> int:
        return int(self.counts[SEEN])

    @property
    def labelled(self) -> int:
        return int(self.counts[LABELLED])

    @property
    def updates(self) -> int:
        return int(self.counts[UPDATES])

    @property
    def errors(self) -> int:
        return int(self.counts[ERRORS])

    @property
    def loss_sum(self) -> float:
        return float(self.sums[LOSS])

    @property
    def absolute_sum(self) -> float:
        return float(self.sums[ABSOLUTE])

    @property
    def squared_sum(self) -> float:
        return float(self.sums[SQUARED])

    def error_rate(self, window: Window = "total") -> float | None:
        """None before the first label, and in regression."""
        if not self.classify or not self.labelled:
            return None
        return self.errors / self.labelled if window == "total" else self._lately(window)

    def mean_absolute_error(self, window: Window = "total") -> float | None:
        """None before the first label, and in classification."""
        if self.classify or not self.labelled:
            return None
        return self.absolute_sum / self.labelled if window == "total" else self._lately(window)

    def _lately(self, window: Window) -> float:
        if window == "fading":
            return float(self.sums[FADING_ERROR] / self.sums[FADING_N])
        recent = self._recent()[0]
        return float(np.sum(recent / recent.size))

    def loss_mean(self, window: Window = "total") -> float | None:
        if not self.labelled:
            return None
        if window == "total":
            return self.loss_sum / self.labelled
        if window == "sliding":
            recent = self._recent()[1]
            return float(np.sum(recent / recent.size))
        return float(self.sums[FADING_LOSS] / self.sums[FADING_N])

    def baseline(self, name: Literal["majority", "no_change"]) -> float | None:
        """The error of a predictor that knows only the labels so far."""
        if not self.classify or not self.labelled:
            return None
        return float(self.counts[MAJORITY_ERRORS if name == "majority" else NO_CHANGE_ERRORS] / self.labelled)

    def _recent(self) -> tuple[F64, F64]:
        """The window, oldest first."""
        stored, head = int(self.counts[STORED]), int(self.counts[HEAD])
        order = (np.arange(stored) + head - stored) % max(1, self.window)
        return self.recent_errors[order], self.recent_losses[order]

    def state(self) -> dict[str, NDArray[Any]]:
        """Copies; the window oldest first, so that equal histories look equal."""
        errors, losses = self._recent()
        counts = self.counts.copy()
        counts[HEAD] = counts[STORED] % self.window
        known = int(np.max(np.nonzero(self.per_class)[0], initial=-1)) + 1
        return {
            "counts": counts,
            "sums": self.sums.copy(),
            "per_class": self.per_class[:known].copy(),
            "confusion": self.confusion.copy(),
            "recent_errors": errors,
            "recent_losses": losses,
            **self.history.state(),
            **self.margins.state(),
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]], classes: int) -> None:
        """Take over a saved state; where the window has become smaller, its newest rows.

        ValueError where it cannot be one of a learner with so many classes.
        """
        _refuse_impossible(arrays, classes, self.counts.size, self.sums.size)
        kept = min(self.window, arrays["recent_losses"].size)
        self.counts = arrays["counts"].copy()
        self.counts[STORED], self.counts[HEAD] = kept, kept % self.window
        self.sums = arrays["sums"].copy()
        self.per_class = arrays["per_class"].copy()
        self.recent_errors = arrays["recent_errors"][-kept:].copy() if kept else np.zeros(0, np.float64)
        self.recent_losses = arrays["recent_losses"][-kept:].copy() if kept else np.zeros(0, np.float64)
        if arrays["confusion"].shape == self.confusion.shape:
            self.confusion = intact.array(arrays, "confusion", np.int64, self.confusion.shape).copy()
        self.history.restore(arrays)
        self.margins.restore(arrays)


def _refuse_impossible(arrays: Mapping[str, NDArray[Any]], classes: int, counts: int, sums: int) -> None:
    """ValueError where these are no arrays of a tally."""
    n = intact.array(arrays, "counts", np.int64, (counts,))
    per_class = intact.array(arrays, "per_class", np.int64, (None,))
    losses = intact.array(arrays, "recent_losses", np.float64, (None,))
    intact.array(arrays, "recent_errors", np.float64, losses.shape)
    intact.array(arrays, "sums", np.float64, (sums,))
    intact.within("per_class", per_class.size, 0, classes + 1)
    intact.within("majority", n[MAJORITY], -1, max(per_class.size, 0))
    intact.within("counts", n[[SEEN, LABELLED, UPDATES, ERRORS, MAJORITY_ERRORS, NO_CHANGE_ERRORS]], 0, 2**62)
    if "confusion" not in arrays:
        raise ValueError("confusion is missing")


def _grown(array: NDArray[Any], size: int) -> NDArray[Any]:
    grown = np.zeros(size, array.dtype)
    grown[: array.size] = array
    return grown


@kernel
def _add(
    classify: bool, window: int, fading: float, n: I64, sums: F64, per_class: I64, confusion: I64,
    recent_errors: F64, recent_losses: F64, places: I64, recent: F64, life: F64,
    measured: U8, truth: I64, predicted: I64, loss: F64, absolute: F64, updates: I64,
) -> None:  # fmt: skip
    for row in range(measured.size):
        if measured[row] == 0:
            continue
        if classify:
            error = 1.0 if predicted[row] != truth[row] or truth[row] < 0 else 0.0
            n[ERRORS] += int(error)
            _add_class(n, per_class, confusion, truth[row], predicted[row])
        else:
            error = absolute[row]
            sums[ABSOLUTE] = min(sums[ABSOLUTE] + absolute[row], LARGEST)
            sums[SQUARED] = min(sums[SQUARED] + absolute[row] * absolute[row], LARGEST)
        n[LABELLED] += 1
        sums[LOSS] = min(sums[LOSS] + loss[row], LARGEST)
        sums[FADING_N] = 1.0 + fading * sums[FADING_N]
        sums[FADING_ERROR] = min(error + fading * sums[FADING_ERROR], LARGEST)
        sums[FADING_LOSS] = min(loss[row] + fading * sums[FADING_LOSS], LARGEST)
        recent_errors[n[HEAD]] = error
        recent_losses[n[HEAD]] = loss[row]
        n[HEAD] = (n[HEAD] + 1) % window
        n[STORED] = min(n[STORED] + 1, window)
        if is_due(places, n[LABELLED]):
            wrong = float(n[ERRORS]) if classify else sums[ABSOLUTE]
            naive = float(n[MAJORITY_ERRORS]), float(n[NO_CHANGE_ERRORS])
            note(places, recent, life, float(n[LABELLED]), wrong, sums[LOSS], naive, float(updates[row]))


@kernel
def _add_class(n: I64, per_class: I64, confusion: I64, truth: int, predicted: int) -> None:
    """Both baselines and the confusion table. A class that is not known is right for nobody."""
    n[MAJORITY_ERRORS] += 1 if n[MAJORITY] != truth or truth < 0 else 0
    n[NO_CHANGE_ERRORS] += 1 if n[LAST] != truth or truth < 0 else 0
    n[LAST] = truth
    if truth < 0:
        return
    per_class[truth] += 1
    best = n[MAJORITY]
    if best < 0 or per_class[truth] > per_class[best] or (per_class[truth] == per_class[best] and truth < best):
        n[MAJORITY] = truth
    if confusion.size > 0 and predicted >= 0:
        other = confusion.shape[0] - 1
        confusion[min(truth, other), min(predicted, other)] += 1
