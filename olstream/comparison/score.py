"""What one entrant's predictions came to: errors, and the curve of them along the stream.

    fading   S_i = e_i + a S_{i-1},  N_i = 1 + a N_{i-1},  P_i = S_i / N_i      (see evaluate.py)

An error e is 0 or 1 in classification, the distance from the label in regression.
"""

from __future__ import annotations

from math import sqrt
from typing import Final

from olstream.learners._jit import F64
from olstream.learners._score import LARGEST

POINTS_MAX: Final = 500


class Curve:
    """The fading average after every row, of which at most POINTS_MAX are kept, evenly spaced."""

    def __init__(self, fading: float) -> None:
        self.points: list[tuple[int, float]] = []  # labelled rows so far, average
        self._fading = fading
        self._sum = 0.0
        self._weight = 0.0
        self._rows = 0
        self._stride = 1

    def add(self, error: float) -> None:
        self._sum = min(error + self._fading * self._sum, LARGEST)
        self._weight = 1.0 + self._fading * self._weight
        self._rows += 1
        if self._rows % self._stride == 0:
            self.points.append((self._rows, self._sum / self._weight))
            if len(self.points) > POINTS_MAX:
                self.points = self.points[1::2]
                self._stride *= 2

    def to_the_end(self) -> list[tuple[int, float]]:
        """The points, the last row's included."""
        if self._rows % self._stride == 0:
            return self.points
        return [*self.points, (self._rows, self._sum / self._weight)]


class Score:
    """The counts of one entrant. Rows without a label are in `rows` alone."""

    def __init__(self, fading: float) -> None:
        self.curve = Curve(fading)
        self.rows = 0
        self.labelled = 0
        self.error_sum = 0.0
        self.squared_sum = 0.0
        self.updates: int | None = None
        self.loss_sum: float | None = None
        self.seconds = 0.0

    def add(self, errors: F64) -> None:
        """Of labelled rows, in order."""
        self.labelled += errors.size
        for error in errors.tolist():
            self.error_sum = min(self.error_sum + error, LARGEST)
            self.squared_sum = min(self.squared_sum + error * error, LARGEST)
            self.curve.add(error)

    def learnt(self, updates: int, loss: float) -> None:
        """What a learner tells of itself, for as many rows as it likes."""
        self.updates = (self.updates or 0) + updates
        self.loss_sum = min((self.loss_sum or 0.0) + loss, LARGEST)

    @property
    def error_mean(self) -> float | None:
        """The error rate, or the mean absolute error; None before the first label."""
        return self.error_sum / self.labelled if self.labelled else None

    @property
    def root_mean_squared_error(self) -> float | None:
        return sqrt(self.squared_sum / self.labelled) if self.labelled else None

    @property
    def loss_mean(self) -> float | None:
        return self.loss_sum / self.labelled if self.labelled and self.loss_sum is not None else None

    @property
    def rows_per_s(self) -> float | None:
        return self.rows / self.seconds if self.seconds else None
