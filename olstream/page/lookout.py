"""A detector along the errors of one learner, and what it found."""

from __future__ import annotations

from collections import deque
from typing import Final

import numpy as np

from olstream.drift import Detector
from olstream.errors import ConfigError
from olstream.page.view import LAST_ROWS, Drift, Mark, Watcher

_TOGETHER: Final = 1024  # errors that the detector takes at once
_MARKS: Final = 100


class Lookout:
    def __init__(self, detector: Detector, signal: str) -> None:
        if detector.binary and signal != "error":
            raise ConfigError(f"{detector.name} watches errors of 0 and 1, and a regression has others: take adwin")
        self.marks: deque[Mark] = deque(maxlen=_MARKS)
        self._detector = detector
        self._signal = signal
        self._waiting: list[float] = []
        self._rows = self._detections = self._warnings = self._level = 0

    def add(self, error: float) -> None:
        self._waiting.append(error)
        if len(self._waiting) == _TOGETHER:
            self._watch()

    def _watch(self) -> None:
        levels = self._detector.update_many(np.array(self._waiting, np.float64)).tolist()
        self._waiting.clear()
        for level in levels:
            self._rows += 1
            self._warnings += level == 1 and self._level == 0
            if level == 2:
                self._detections += 1
                self.marks.append(Mark(self._rows, self._detector.name, self._signal))
            self._level = level

    def drift(self) -> Drift:
        """As of the last row. As in a service the level stays up while the last detection is among the last rows."""
        if self._waiting:
            self._watch()
        watched = self._detector
        watcher = Watcher(
            watched.name, self._signal, self._level, watched.statistic, watched.threshold, watched.window_events,
            self._detections, self._warnings,
        )  # fmt: skip
        last = self.marks[-1] if self.marks else None
        ago = None if last is None else self._rows - last.labelled
        level = 2 if ago is not None and ago < LAST_ROWS else self._level
        return Drift(level, self._detections, self._warnings, last, ago, (watcher,))
