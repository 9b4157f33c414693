"""Published predictions, one by one, into what the page shows of a learner."""

from __future__ import annotations

from collections import deque
from math import fsum, isfinite
from typing import Final, TypeAlias

import msgspec

from olstream.config import MonitorConfig
from olstream.messages import label_text
from olstream.page.growing import Growing
from olstream.page.lookout import Lookout
from olstream.page.mix import Mix
from olstream.page.view import LAST_ROWS, Drift, Learner
from olstream.watched import watched

_LARGEST: Final = 1e300  # so that no sum overflows

Scalar: TypeAlias = str | int | float | bool | None


class Record(msgspec.Struct, gc=False):
    """What counts here of a prediction as it is published, or of an outcome; other keys may be there."""

    learner: str
    prediction: Scalar
    label: Scalar = None
    loss: float | None = None
    correct: bool | None = None
    updated: bool | None = None
    probability: float | None = None
    shadow: bool = False

    @property
    def is_measured(self) -> bool:
        return self.label is not None and (self.loss is not None or self.correct is not None)

    @property
    def error(self) -> float:
        """0 or 1; in a regression how far off. ValueError where it cannot be told."""
        if self.correct is not None:
            return 0.0 if self.correct else 1.0
        if not (_is_number(self.prediction) and _is_number(self.label)):
            raise ValueError("`correct` is null, and prediction and label are not both numbers")
        return min(abs(float(self.prediction) - float(self.label)), _LARGEST)  # type: ignore[arg-type]


class Followed:
    """One learner's predictions so far."""

    def __init__(self, name: str, monitor: MonitorConfig) -> None:
        self.name = name
        self.seen = self.labelled = 0
        self.updates: int | None = 0
        self.is_shadow = False
        self.is_regression: bool | None = None  # known with the first label
        self._monitor = monitor
        self._lookout: Lookout | None = None
        self._growing = Growing()
        self._mix = Mix()
        self._recent: deque[tuple[float, float | None]] = deque(maxlen=LAST_ROWS)

    def add(self, record: Record) -> None:
        """ValueError, and nothing done, for a record that is not of this learner's task."""
        error = record.error if record.is_measured else None
        if error is not None:
            self._decide(record.correct is None)
        self.seen += 1
        self.is_shadow = record.shadow
        if record.updated is None:  # an outcome does not tell
            self.updates = None
        elif self.updates is not None:
            self.updates += record.updated
        if error is not None:
            self._measure(record, error)

    def _decide(self, is_regression: bool) -> None:
        if self.is_regression is None:
            self.is_regression = is_regression
            found = watched(self._monitor, "regression" if is_regression else "classification")
            self._lookout = Lookout(found) if found else None
        elif self.is_regression != is_regression:
            raise ValueError(f"learner {self.name!r} is measured by `correct` in some records and not in others")

    def _measure(self, record: Record, error: float) -> None:
        majority, no_change = None, None
        if record.correct is not None:
            predicted = None if record.prediction is None else label_text(record.prediction)
            majority, no_change = self._mix.add(label_text(record.label), predicted)
            if record.probability is not None:
                self._mix.said(record.probability, record.correct)
        self.labelled += 1
        self._recent.append((error, record.loss))
        self._growing.add(error, record.loss, majority, no_change, record.updated)
        if self._lookout:
            self._lookout.add(error)

    def learner(self) -> Learner:
        """All of it, as the page shows a learner."""
        curve = self._growing.curve()
        all_rows = self.labelled
        drift, marks = self._lookout.drift() if self._lookout else (Drift(), ())
        errors, losses = [error for error, _ in self._recent], [loss for _, loss in self._recent]
        return Learner(
            self.name,
            role="shadow" if self.is_shadow else "champion",
            task="regression" if self.is_regression else "",
            seen=self.seen,
            labelled=self.labelled,
            updates=self.updates,
            updated_share=curve.last(curve.updated, all_rows),
            error={"sliding": _mean(errors), "fading": None, "total": curve.last(curve.error, all_rows)},
            loss={"sliding": _mean(losses), "fading": None, "total": curve.last(curve.loss, all_rows)},
            majority=curve.last(curve.majority, all_rows),
            no_change=curve.last(curve.no_change, all_rows),
            classes=self._mix.classes or None,
            drift=drift,
            life=curve,
            marks=marks,
            confusion=self._mix.confusion(),
            calibration=self._mix.calibration(),
        )


def _mean(values: list[float] | list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    mean = fsum(value / len(known) for value in known)
    return mean if isfinite(mean) else None


def _is_number(value: Scalar) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
