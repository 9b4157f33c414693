"""The drift detectors of a service, along the errors of a file's predictions."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Final

import numpy as np

from olstream.alarms import DRIFT, Alarms
from olstream.page.view import LAST_ROWS, Drift, Mark, Watcher
from olstream.watched import Watched

_TOGETHER: Final = 1024  # errors that the detectors take at once


class Lookout:
    """Of one learner: errors 0 and 1, or what a regression is off by, which takes the place of its loss."""

    def __init__(self, watched: Sequence[Watched]) -> None:
        self._alarms = Alarms(watched)
        self._waiting: list[float] = []
        self._rows = 0

    def add(self, error: float) -> None:
        self._waiting.append(error)
        if len(self._waiting) == _TOGETHER:
            self._watch()

    def _watch(self) -> None:
        errors = np.array(self._waiting, np.float64)
        self._waiting.clear()
        self._alarms.add(np.ones(errors.size, np.uint8), (errors == 0.0).astype(np.int8), errors, self._rows)
        self._rows += errors.size

    def drift(self) -> tuple[Drift, tuple[Mark, ...]]:
        """As of the last row. As in a service the level stays up while the last detection is among the last rows."""
        self._watch()
        readings = self._alarms.readings()
        marks = [Mark(row, reading.detector, reading.signal) for reading in readings for row in reading.marks]
        marks.sort(key=attrgetter("labelled"))
        ago = self._rows - marks[-1].labelled if marks else None
        return Drift(
            DRIFT if ago is not None and ago < LAST_ROWS else max((each.level for each in readings), default=None),
            sum(each.detections for each in readings),
            sum(each.warnings for each in readings),
            marks[-1] if marks else None,
            ago,
            tuple(
                Watcher(
                    each.detector, each.signal, each.level, each.statistic, each.threshold, each.window_events,
                    each.detections, each.warnings,
                )
                for each in readings
            ),
        ), tuple(marks)  # fmt: skip
