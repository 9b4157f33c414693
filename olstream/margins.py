"""How sure a learner was: its signed margins before and after each update, as counts and means.

A margin is positive where the row was on the right side, and 1 is where a hinge loss ends. Kept with the tally, so
exact after recovery; sums go row by row, so that batches leave no trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from olstream import intact
from olstream.learners._jit import F64, I64, U8, kernel
from olstream.learners._score import LARGEST

EDGES: Final = (-5.0, -2.0, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)  # upper bounds; the last part has none
# A margin that is 1 by construction comes out as 1.0000000000000002 as often as not.
BOUNDS: Final = np.asarray(EDGES) + np.abs(EDGES) * 1e-9
BEFORE, AFTER = range(2)


class Margins:
    """Of one learner's measured rows that had a margin: a regression has none."""

    def __init__(self) -> None:
        self.counts = np.zeros((2, len(EDGES) + 1), np.int64)
        self.sums = np.zeros(2)

    def add(self, measured: U8, before: F64, after: F64) -> None:
        _add(BOUNDS, self.counts[BEFORE], self.sums[BEFORE:], measured, before)
        _add(BOUNDS, self.counts[AFTER], self.sums[AFTER:], measured, after)

    def mean(self, when: int) -> float | None:
        rows = int(self.counts[when].sum())
        return float(self.sums[when] / rows) if rows else None

    def state(self) -> dict[str, NDArray[Any]]:
        """Copies."""
        return {"margins.counts": self.counts.copy(), "margins.sums": self.sums.copy()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from `state`; ValueError where it is none."""
        counts = intact.array(arrays, "margins.counts", np.int64, self.counts.shape)
        intact.within("margins.counts", counts, 0, 2**62)
        self.counts = counts.copy()
        self.sums = intact.array(arrays, "margins.sums", np.float64, self.sums.shape).copy()


@kernel
def _add(bounds: F64, counts: I64, total: F64, measured: U8, margins: F64) -> None:
    for row in range(measured.size):
        margin = margins[row]
        if measured[row] != 0 and margin == margin:  # not nan
            place = 0
            while place < bounds.size and bounds[place] < margin:
                place += 1
            counts[place] += 1
            total[0] = min(max(total[0] + margin, -LARGEST), LARGEST)
