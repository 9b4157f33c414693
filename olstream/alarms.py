"""The drift detectors of one learner: its errors or its losses, row by row, and what they said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from olstream import intact
from olstream.drift import Detector
from olstream.drift.shares import SETTLED, shares
from olstream.learners._jit import F64, I64, U8
from olstream.watched import Watched

PREFIX: Final = "drift."
MARKS_MAX: Final = 100  # detections that each detector remembers, the last of them
STABLE, WARNING, DRIFT = range(3)
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

    def add(self, values: F64, rows: I64, numbers: I64) -> list[Alarm]:
        """One value of each of these rows, whose numbers among labelled ones are given."""
        if not values.size:
            return []
        levels = self.detector.update_many(values)
        if not levels.any():
            self.counts[_LEVEL] = STABLE
            return []
        before = np.append(self.counts[_LEVEL], levels[:-1])
        begins = (levels == DRIFT) | ((levels == WARNING) & (before != WARNING))
        said = levels[begins]
        self.counts[_DETECTIONS] += np.count_nonzero(said == DRIFT)
        self.counts[_WARNINGS] += np.count_nonzero(said == WARNING)
        self.counts[_LEVEL] = levels[-1]
        self.marks = np.append(self.marks, numbers[begins][said == DRIFT])[-MARKS_MAX:]
        detector, signal = self.watched.detector, self.watched.signal
        told = zip(rows[begins].tolist(), said.tolist(), numbers[begins].tolist(), strict=True)
        return [Alarm(row, detector, signal, level, number) for row, level, number in told]

    def begin_anew(self) -> None:
        """The learner is another now: its errors so far say nothing of it. What was said stays counted."""
        self.detector = Detector(self.watched.detector, **self.watched.params)
        self.counts[_LEVEL] = STABLE

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
        self.counts = intact.array(own, "told", np.int64, self.counts.shape).copy()
        self.marks = intact.array(own, "marks", np.int64, (None,))[-MARKS_MAX:].copy()
        self.detector.restore({name: array for name, array in own.items() if name not in ("told", "marks")})


class Alarms:
    """All detectors of a learner. `unanswered`: drift was said, and what is to follow from it has not been done."""

    def __init__(self, watched: Sequence[Watched]) -> None:
        self._watches = {f"{PREFIX}{of.detector}.{of.signal}.": _Watch(of) for of in watched}
        self._unit = np.zeros(1)  # of losses: m
        self.unanswered = False

    def add(self, measured: U8, correct: NDArray[np.int8], loss: F64, labelled: int) -> list[Alarm]:
        """Rows in order, of which measured ones count, after `labelled` others."""
        if not self._watches:
            return []
        rows = np.flatnonzero(measured)
        numbers = np.arange(labelled + 1, labelled + 1 + rows.size)
        found: list[Alarm] = []
        for watch in self._watches.values():
            if watch.watched.signal == "error":
                found += watch.add((correct[rows] != 1).astype(np.float64), rows, numbers)
        losses = shares(loss[rows], numbers, self._unit)
        settled = numbers > SETTLED
        for watch in self._watches.values():
            if watch.watched.signal == "loss":
                found += watch.add(losses[settled], rows[settled], numbers[settled])
        self.unanswered |= any(alarm.level == DRIFT for alarm in found)
        return found

    def warm_up(self) -> None:
        """Compile every detector, that of losses too, which are not watched from the first row on."""
        self.add(np.ones(1, np.uint8), np.ones(1, np.int8), np.zeros(1), SETTLED)

    def answered(self) -> None:
        """What was to follow from drift has been done."""
        self.unanswered = False
        for watch in self._watches.values():
            watch.begin_anew()

    def readings(self) -> list[Reading]:
        return [watch.reading() for watch in self._watches.values()]

    def params(self) -> dict[str, Any]:
        """What each detector was made with: one that was made otherwise cannot go on from its state."""
        return {key: dict(watch.detector.params) for key, watch in self._watches.items()}

    def state(self) -> dict[str, NDArray[Any]]:
        """Copies."""
        found: dict[str, NDArray[Any]] = {
            PREFIX + "unanswered": np.array([self.unanswered], np.int64),
            PREFIX + "unit": self._unit.copy(),
        }
        for key, watch in self._watches.items():
            found |= {key + name: array for name, array in watch.state().items()}
        return found

    def restore(self, params: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from `state`; a detector that is new, or has other parameters now, begins here."""
        self.unanswered = bool(intact.array(arrays, PREFIX + "unanswered", np.int64, (1,))[0])
        self._unit = intact.array(arrays, PREFIX + "unit", np.float64, (1,)).copy()
        for key, watch in self._watches.items():
            if params.get(key) == watch.detector.params:
                own = {name.removeprefix(key): array for name, array in arrays.items() if name.startswith(key)}
                watch.restore(own)
