"""A curve of any number of rows in bounded room: when its points are too many, each two become one."""

from __future__ import annotations

from itertools import accumulate
from math import isfinite, nan
from typing import Final

from olstream.page.view import Curve

_POINTS: Final = 240  # at least, of so many rows
_LARGEST: Final = 1e300  # so that no sum overflows


class Growing:
    def __init__(self) -> None:
        self.every = 1
        self._sums: list[list[float]] = []
        self._open: list[float] = []
        self._rows = 0

    def add(self, *values: float | None) -> None:
        """One row: error, loss, majority, no change, updated. One that is None makes its whole line unknown."""
        row = [nan if value is None else min(value, _LARGEST) for value in values]
        self._open = [total + value for total, value in zip(self._open, row, strict=True)] if self._rows else row
        self._rows += 1
        if self._rows == self.every:
            self._sums.append(self._open)
            self._rows = 0
        if len(self._sums) == 2 * _POINTS:
            pairs = zip(self._sums[::2], self._sums[1::2], strict=True)
            self._sums = [[a + b for a, b in zip(*pair, strict=True)] for pair in pairs]
            self.every *= 2

    def curve(self) -> Curve:
        sums = [*self._sums, self._open] if self._rows else self._sums
        if not sums:
            return Curve()
        sizes = [self.every] * len(self._sums) + ([self._rows] if self._rows else [])
        error, loss, majority, no_change, updated = (
            tuple(total / n for total, n in zip(line, sizes, strict=True)) if all(map(isfinite, line)) else ()
            for line in zip(*sums, strict=True)
        )
        edges = tuple(accumulate(sizes, initial=0))
        return Curve(edges, error, loss, majority, no_change, updated, self.every)
