"""The drift detectors of one learner: its errors or its losses, row by row, and what they said of them.

A loss has no upper bound and any unit, and the detectors' bounds are for values in [0, 1]: they are given

    x = l / (l + m)        l: the loss of the row,  m: the mean loss of all rows before it

which keeps the order of losses, is 1/2 for an ordinary one, and does not change with the unit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from olstream.drift import Detector
from olstream.learners._jit import F64, I64, U8, kernel
from olstream.learners._score import LARGEST
from olstream.watched import Watched

PREFIX: Final = "drift."
MARKS_MAX: Final = 100  # detections that each detector remembers, the last of them
WARNING, DRIFT = 1, 2
_DETECTIONS, _WARNINGS, _LEVEL = range(3)


@dataclass(frozen=True, slots=True)
class Alarm:
    """What a detector began to say at one row of a batch. `labelled`: that row's number among labelled ones."""

    row: int
    detector: str
    signal: str
    level: Literal[1, 2]
    labelled: int


@dataclass(frozen=True, slots=True)
class Reading:
    """How a detector stands. None is "not known yet"."""

    detector: str
    signal: str
    level: int
    detections: int
    warnings: int
    statistic: float | None
    threshold: float | None
    window_events: int | None
    marks: Sequence[int]  # numbers of the labelled rows at which it last said drift, rising


class _Watch:
    """One detector over one signal."""

    def __init__(self, watched: Watched) -> None:
        self.watched = watched
        self.detector = Detector(watched.detector, **watched.params)
        self.counts = np.zeros(3, np.int64)
        self.marks = np.zeros(0, np.int64)

    def add(self, values: F64, rows: I64, labelled: int) -> list[Alarm]:
        levels = self.detector.update_many(values)
        if not levels.any():
            self.counts[_LEVEL] = 0
            return []
        before = np.append(self.counts[_LEVEL], levels[:-1])
        begins = (levels == DRIFT) | ((levels == WARNING) & (before != WARNING))
        said = levels[begins]
        self.counts[_DETECTIONS] += np.count_nonzero(said == DRIFT)
        self.counts[_WARNINGS] += np.count_nonzero(said == WARNING)
        self.counts[_LEVEL] = levels[-1]
        numbers = labelled + 1 + np.flatnonzero(begins)
        self.marks = np.append(self.marks, numbers[said == DRIFT])[-MARKS_MAX:]
        detector, signal = self.watched.detector, self.watched.signal
        told = zip(rows[begins].tolist(), said.tolist(), numbers.tolist(), strict=True)
        return [Alarm(row, detector, signal, level, number) for row, level, number in told]

    def reading(self) -> Reading:
        watched, detector = self.watched, self.detector
        detections, warnings, level = self.counts.tolist()
        return Reading(
            watched.detector, watched.signal, level, detections, warnings,
            detector.statistic, detector.threshold, detector.window_events, self.marks.tolist(),
        )  # fmt: skip

    def state(self) -> dict[str, NDArray[Any]]:
        return {**self.detector.state(), "told": self.counts.copy(), "marks": self.marks.copy()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        own = dict(arrays)
        self.counts, self.marks = own.pop("told").copy(), own.pop("marks").copy()
        self.detector.restore(own)


class Alarms:
    """All detectors of a learner. `unanswered`: drift was said, and what is to follow from it has not been done."""

    def __init__(self, watched: Sequence[Watched]) -> None:
        self._watches = {f"{PREFIX}{of.detector}.{of.signal}.": _Watch(of) for of in watched}
        self.unanswered = False

    def add(self, measured: U8, correct: NDArray[np.int8], loss: F64, labelled: int, loss_sum: float) -> list[Alarm]:
        """Rows in order, of which measured ones count, after `labelled` others whose losses came to `loss_sum`."""
        if not self._watches:
            return []
        rows = np.flatnonzero(measured)
        signals = {"error": (correct[rows] != 1).astype(np.float64), "loss": _relative(loss[rows], loss_sum, labelled)}
        found = [
            alarm
            for watch in self._watches.values()
            for alarm in watch.add(signals[watch.watched.signal], rows, labelled)
        ]
        self.unanswered |= any(alarm.level == DRIFT for alarm in found)
        return found

    def readings(self) -> list[Reading]:
        return [watch.reading() for watch in self._watches.values()]

    def params(self) -> dict[str, Any]:
        """What each detector was made with: one that was made otherwise cannot go on from its state."""
        return {key: dict(watch.detector.params) for key, watch in self._watches.items()}

    def state(self) -> dict[str, NDArray[Any]]:
        """Copies."""
        found: dict[str, NDArray[Any]] = {PREFIX + "unanswered": np.array([self.unanswered], np.int64)}
        for key, watch in self._watches.items():
            found |= {key + name: array for name, array in watch.state().items()}
        return found

    def restore(self, params: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from `state`; a detector that is new, or has other parameters now, begins here."""
        self.unanswered = bool(arrays[PREFIX + "unanswered"][0])
        for key, watch in self._watches.items():
            if params.get(key) == watch.detector.params:
                own = {name.removeprefix(key): array for name, array in arrays.items() if name.startswith(key)}
                watch.restore(own)


@kernel
def _relative(loss: F64, total: float, count: int) -> F64:
    found = np.zeros(loss.size)
    for row in range(loss.size):
        mean = total / count if count > 0 else 0.0
        if loss[row] > mean:
            found[row] = 1.0 / (1.0 + mean / loss[row])
        elif mean > 0.0:
            found[row] = loss[row] / mean / (1.0 + loss[row] / mean)
        total = min(total + loss[row], LARGEST)
        count += 1
    return found
