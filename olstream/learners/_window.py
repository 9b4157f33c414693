"""The last labelled examples of a learner that learns from many at once, with a multiplier for each and each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from olstream import intact
from olstream.learners._jit import F64, I64

PREFIX: Final = "window."


class Matrix(NamedTuple):
    """Examples in CSR form."""

    indptr: I64
    indices: I64
    data: F64


class Kept(NamedTuple):
    """One example: `lam` (K,) or shorter where classes came later, whose multipliers are 0."""

    indices: I64
    values: F64
    target: float
    weight: float
    lam: F64


class Window:
    """The last `most` examples, the oldest first; and those before them until `put_lam` says what was learnt."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.rows: list[Kept] = []

    def add(self, indices: I64, values: F64, target: float, weight: float) -> None:
        self.rows.append(Kept(indices.copy(), values.copy(), target, weight, np.zeros(0)))

    def let_go(self, n: int) -> None:
        """The newest n."""
        del self.rows[len(self.rows) - n :]

    @property
    def last(self) -> list[Kept]:
        return self.rows[-self.most :]

    def put_lam(self, lam: F64) -> None:
        """The multipliers (classes, m) of the last rows."""
        self.rows = [row._replace(lam=lam[:, i].copy()) for i, row in enumerate(self.last)]

    @property
    def nbytes(self) -> int:
        return sum(row.indices.nbytes + row.values.nbytes + row.lam.nbytes for row in self.rows)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """A copy, by name; nothing where none are kept."""
        if not self.most:
            return {}
        classes = max((row.lam.size for row in self.rows), default=0)
        found: dict[str, NDArray[Any]] = dict(zip(("indptr", "indices", "values"), matrix_of(self.rows), strict=True))
        found |= {"targets": targets_of(self.rows), "weights": weights_of(self.rows), "lam": lam_of(self.rows, classes)}
        return {PREFIX + name: array for name, array in found.items()}

    def take(self, saved: Mapping[str, NDArray[Any]], classes: int, columns: int) -> None:
        """Go on from what `arrays` gave; ValueError where it cannot have been."""
        targets = intact.array(saved, PREFIX + "targets", np.float64, (None,))
        n = targets.size
        indptr = intact.array(saved, PREFIX + "indptr", np.int64, (n + 1,))
        indices = intact.array(saved, PREFIX + "indices", np.int64, (None,))
        values = intact.array(saved, PREFIX + "values", np.float64, indices.shape)
        weights = intact.array(saved, PREFIX + "weights", np.float64, (n,))
        lam = intact.array(saved, PREFIX + "lam", np.float64, (None, n))
        intact.ends(PREFIX + "indptr", indptr, indices.size)
        intact.within(PREFIX + "indptr", indptr[0], 0, 1)
        intact.within(PREFIX + "indices", indices, 0, columns)
        intact.within(PREFIX + "lam", lam.shape[0], 0, classes + 1)
        self.rows.clear()
        for i, (target, weight) in enumerate(zip(targets.tolist(), weights.tolist(), strict=True)):
            part = slice(indptr[i], indptr[i + 1])
            self.rows.append(Kept(indices[part].copy(), values[part].copy(), target, weight, lam[:, i].copy()))


def matrix_of(rows: Sequence[Kept]) -> Matrix:
    ends = np.cumsum([0, *(row.indices.size for row in rows)])
    indices = np.concatenate([np.zeros(0, np.int64), *(row.indices for row in rows)])
    return Matrix(ends, indices, np.concatenate([np.zeros(0), *(row.values for row in rows)]))


def targets_of(rows: Sequence[Kept]) -> F64:
    return np.array([row.target for row in rows], np.float64)


def weights_of(rows: Sequence[Kept]) -> F64:
    return np.array([row.weight for row in rows], np.float64)


def lam_of(rows: Sequence[Kept], classes: int) -> F64:
    """(classes, m)."""
    found = np.zeros((classes, len(rows)))
    for i, row in enumerate(rows):
        found[: row.lam.size, i] = row.lam
    return found


def in_order(arrays: Mapping[str, NDArray[Any]], columns: I64) -> dict[str, NDArray[Any]]:
    """The entries of `Window.arrays` by the places that their columns have in this order; nothing without a window."""
    if PREFIX + "indices" not in arrays:
        return {}
    indptr, values = arrays[PREFIX + "indptr"], arrays[PREFIX + "values"]
    place = np.empty(columns.size, np.int64)
    place[columns] = np.arange(columns.size)
    indices = place[arrays[PREFIX + "indices"]]
    order = np.lexsort((indices, np.repeat(np.arange(indptr.size - 1), np.diff(indptr))))
    return {PREFIX + "indices": indices[order], PREFIX + "values": values[order]}
