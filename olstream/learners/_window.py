"""The last labelled examples of a learner that learns from many at once, with a multiplier for each and each class."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    """At most `most` examples, the oldest first."""

    def __init__(self, most: int) -> None:
        self.rows: deque[Kept] = deque(maxlen=most)

    def add(self, indices: I64, values: F64, target: float, weight: float) -> None:
        self.rows.append(Kept(indices.copy(), values.copy(), target, weight, np.zeros(0)))

    def let_go(self, n: int) -> None:
        """The newest n."""
        for _ in range(min(n, len(self.rows))):
            self.rows.pop()

    def matrix(self) -> Matrix:
        ends = np.cumsum([0, *(row.indices.size for row in self.rows)])
        indices = np.concatenate([np.zeros(0, np.int64), *(row.indices for row in self.rows)])
        return Matrix(ends, indices, np.concatenate([np.zeros(0), *(row.values for row in self.rows)]))

    @property
    def targets(self) -> F64:
        return np.array([row.target for row in self.rows], np.float64)

    @property
    def weights(self) -> F64:
        return np.array([row.weight for row in self.rows], np.float64)

    def lam(self, classes: int) -> F64:
        """(classes, m)."""
        found = np.zeros((classes, len(self.rows)))
        for i, row in enumerate(self.rows):
            found[: row.lam.size, i] = row.lam
        return found

    def put_lam(self, lam: F64) -> None:
        self.rows = deque((row._replace(lam=lam[:, i].copy()) for i, row in enumerate(self.rows)), self.rows.maxlen)

    @property
    def nbytes(self) -> int:
        return sum(row.indices.nbytes + row.values.nbytes + row.lam.nbytes for row in self.rows)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """A copy, by name; nothing where none are kept."""
        if not self.rows.maxlen:
            return {}
        classes = max((row.lam.size for row in self.rows), default=0)
        found: dict[str, NDArray[Any]] = dict(zip(("indptr", "indices", "values"), self.matrix(), strict=True))
        found |= {"targets": self.targets, "weights": self.weights, "lam": self.lam(classes)}
        return {PREFIX + name: array for name, array in found.items()}

    def take(self, saved: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what `arrays` gave."""
        indptr, indices, values, targets, weights, lam = (
            saved[PREFIX + name] for name in ("indptr", "indices", "values", "targets", "weights", "lam")
        )
        self.rows.clear()
        for i, (target, weight) in enumerate(zip(targets.tolist(), weights.tolist(), strict=True)):
            part = slice(indptr[i], indptr[i + 1])
            self.rows.append(Kept(indices[part].copy(), values[part].copy(), target, weight, lam[:, i].copy()))


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
