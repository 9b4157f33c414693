"""Error curves in bounded memory: what the counts of a tally were at evenly spaced numbers of labelled rows.

    recent   the last points, a fixed number of rows apart
    life     from the first row on; where it is full every second point goes, and the distance doubles

A point holds sums since the beginning, so the mean between any two of them is exact, whatever lay between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from olstream import intact
from olstream.learners._jit import F64, I64, kernel

POINTS_MAX: Final = 241  # odd, so that thinning keeps the first and the last
PARTS: Final = 5  # of a sliding window that lie between two recent points

LABELLED, ERROR, LOSS, MAJORITY, NO_CHANGE, UPDATES = range(6)
EVERY, STORED, HEAD, LIFE_EVERY, LIFE_STORED = range(5)


@dataclass(frozen=True, slots=True)
class Curve:
    """Means between neighbouring points, each list one shorter than `labelled`. `every`: rows between new points."""

    every: int
    labelled: Sequence[int]
    error: Sequence[float]
    loss: Sequence[float]
    majority: Sequence[float]
    no_change: Sequence[float]
    updated: Sequence[float]


class History:
    """Both curves of one learner."""

    def __init__(self, window: int) -> None:
        self._recent_every = max(1, window // PARTS)
        self.places = np.array([self._recent_every, 1, 1, 1, 1], np.int64)
        self.recent = np.zeros((POINTS_MAX, UPDATES + 1), np.float64)  # the first point: no rows, no errors
        self.life = np.zeros((POINTS_MAX, UPDATES + 1), np.float64)

    def curves(self, classify: bool) -> dict[str, Curve]:
        recent, life = self._recent(), self._life()
        every, life_every = int(self.places[EVERY]), int(self.places[LIFE_EVERY])
        return {"recent": _curve(recent, every, classify), "life": _curve(life, life_every, classify)}

    def _recent(self) -> F64:
        """Oldest first."""
        stored, head = int(self.places[STORED]), int(self.places[HEAD])
        found: F64 = self.recent[(np.arange(stored) + head - stored) % POINTS_MAX]
        return found

    def _life(self) -> F64:
        return self.life[: self.places[LIFE_STORED]].copy()

    def state(self) -> dict[str, NDArray[Any]]:
        """Copies, oldest first."""
        every = self.places[[EVERY, LIFE_EVERY]]
        return {"history.every": every, "history.recent": self._recent(), "history.life": self._life()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from `state`; where the window is another now, the next recent points are so far apart."""
        every = intact.array(arrays, "history.every", np.int64, (2,))
        recent = intact.array(arrays, "history.recent", np.float64, (None, UPDATES + 1))
        life = intact.array(arrays, "history.life", np.float64, (None, UPDATES + 1))
        intact.within("history.every", every, 1, 2**62)
        intact.within("history", np.array([len(recent), len(life)]), 0, POINTS_MAX + 1)
        self.places[STORED] = len(recent)
        self.places[HEAD] = len(recent) % POINTS_MAX
        self.places[[LIFE_EVERY, LIFE_STORED]] = every[1], len(life)
        self.recent[: len(recent)] = recent
        self.life[: len(life)] = life


def _curve(points: F64, every: int, classify: bool) -> Curve:
    rows = np.diff(points[:, LABELLED])
    error, loss, majority, no_change, updated = (
        (np.diff(points[:, column]) / rows).tolist() for column in range(ERROR, UPDATES + 1)
    )
    labelled = points[:, LABELLED].astype(np.int64).tolist()
    if not classify:
        majority, no_change = [], []
    return Curve(every, labelled, error, loss, majority, no_change, updated)


@kernel
def is_due(places: I64, labelled: int) -> bool:
    """Whether a curve has a point at so many labelled rows."""
    return bool(labelled % places[EVERY] == 0 or labelled % places[LIFE_EVERY] == 0)


@kernel
def note(
    places: I64, recent: F64, life: F64, labelled: float, error: float, loss: float, naive: tuple[float, float],
    updates: float,
) -> None:  # fmt: skip
    """Keep what the tally has come to, where a curve has a point."""
    if labelled % places[EVERY] == 0:
        _put(recent[places[HEAD]], labelled, error, loss, naive, updates)
        places[HEAD] = (places[HEAD] + 1) % POINTS_MAX
        places[STORED] = min(places[STORED] + 1, POINTS_MAX)
    if labelled % places[LIFE_EVERY] == 0:
        if places[LIFE_STORED] == POINTS_MAX:
            _thin(places, life)
        if labelled % places[LIFE_EVERY] == 0:
            _put(life[places[LIFE_STORED]], labelled, error, loss, naive, updates)
            places[LIFE_STORED] += 1


@kernel
def _put(
    point: F64, labelled: float, error: float, loss: float, naive: tuple[float, float], updates: float
) -> None:  # fmt: skip
    point[LABELLED], point[ERROR], point[LOSS], point[UPDATES] = labelled, error, loss, updates
    point[MAJORITY], point[NO_CHANGE] = naive


@kernel
def _thin(places: I64, life: F64) -> None:
    """Every second point stays, and so does the last."""
    kept = (POINTS_MAX + 1) // 2
    for i in range(kept):
        life[i] = life[2 * i]
    places[LIFE_STORED] = kept
    places[LIFE_EVERY] *= 2
