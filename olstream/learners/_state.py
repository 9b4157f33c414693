"""What a learner has learnt: arrays with a row for each class, or one row in all, and a column for each feature."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from olstream import intact
from olstream.learners._jit import F64, I64
from olstream.learners._window import PREFIX, Window, in_order

BIAS: Final = 0  # column of the constant feature
UNSEEN: Final = 1  # and of all that was never learnt: nothing is written there
COLUMNS_MIN: Final = 16


@dataclass(frozen=True, slots=True)
class Anatomy:
    """Which arrays a learner has. `prior`: the variance of every weight at the start, None for first order."""

    prior: float | None = None
    is_full: bool = False  # the covariance is a matrix, kept as its square root, and not its diagonal
    is_shared: bool = False  # by all classes
    has_sums: bool = False  # a second array like the weights
    counters: tuple[float, ...] = ()  # numbers of each row, as they begin
    window: int = 0  # labelled examples that are kept, the last of them


class Arrays(NamedTuple):
    """The arrays as kernels take them, for K rows and D columns: both may be more than are in use.

    `spread` holds what the variances of the weights are made of: nothing (K, 0), the diagonal (K, D), or square
    roots R of covariances R R^T (K, D, D), of which a shared one is the only (1, D, D).
    """

    weights: F64  # (K, D)
    spread: F64
    sums: F64  # (K, D), or (K, 0)
    counters: F64  # (K, n)
    work: F64  # (2, 2, D) with roots: for two rows, R^T x and S x of the example in hand


class LinearState:
    """`held` are the arrays. What lies in them past the rows and columns in use is as new; they grow by doubling."""

    def __init__(self, anatomy: Anatomy) -> None:
        self.anatomy = anatomy
        self.window = Window(anatomy.window)
        self.held = self._new(1, COLUMNS_MIN)

    def use(self, rows: int, columns: int) -> Arrays:
        """The arrays, with room for so many rows and columns. They are replaced where they have to grow."""
        have_rows, have_columns = self.held.weights.shape
        if rows > have_rows or columns > have_columns:
            rows = have_rows if rows <= have_rows else max(rows, 2 * have_rows)
            columns = have_columns if columns <= have_columns else max(columns, 2 * have_columns)
            old, self.held = self.held, self._new(rows, columns)
            for array, before in zip(self.held[:-1], old[:-1], strict=True):
                array[tuple(map(slice, before.shape))] = before
        return self.held

    def widen(self, rows: int, columns: int, share: float) -> None:
        """Bring the variances in use so far toward the prior; nothing without variances."""
        prior, spread = self.anatomy.prior, self.held.spread
        if prior is None:
            return
        if not self.anatomy.is_full:
            spread[:rows, :columns] += share * (prior - spread[:rows, :columns])
            return
        for root in spread[:rows, :columns, :columns]:
            root[:] = np.linalg.cholesky((1.0 - share) * (root @ root.T) + share * prior * np.eye(columns))

    def reset(self) -> None:
        """As before the first row."""
        self.held = self._new(*self.held.weights.shape)
        self.window.rows.clear()

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.held) + self.window.nbytes

    def arrays(self, rows: int, columns: int) -> dict[str, NDArray[Any]]:
        """A copy of what is in use, by name."""
        arrays, anatomy = self.use(rows, columns), self.anatomy
        found = {"weights": arrays.weights[:rows, :columns]}
        if anatomy.is_full:
            found["roots"] = arrays.spread[:rows, :columns, :columns]
        elif anatomy.prior is not None:
            found["variances"] = arrays.spread[:rows, :columns]
        if anatomy.has_sums:
            found["sums"] = arrays.sums[:rows, :columns]
        if anatomy.counters:
            found["counters"] = arrays.counters[:rows]
        return {name: array.copy() for name, array in found.items()} | self.window.arrays()

    def take(self, saved: Mapping[str, NDArray[Any]], rows: int, columns: int) -> None:
        """Go on from what `arrays` gave with so many rows and columns; ValueError where it cannot have been."""
        given = {name: intact.array(saved, name, np.float64, of) for name, of in self._shapes(rows, columns).items()}
        arrays = self.use(rows, columns)
        places = {"roots": arrays.spread, "variances": arrays.spread, "sums": arrays.sums, "counters": arrays.counters}
        for name, array in given.items():
            places.get(name, arrays.weights)[tuple(map(slice, array.shape))] = array
        if self.anatomy.window:
            self.window.take(saved, rows, columns)

    def _shapes(self, rows: int, columns: int) -> dict[str, tuple[int, ...]]:
        """Of what `arrays` gives."""
        anatomy = self.anatomy
        shapes: dict[str, tuple[int, ...]] = {"weights": (rows, columns)}
        if anatomy.is_full:
            shapes["roots"] = (1 if anatomy.is_shared else rows, columns, columns)
        elif anatomy.prior is not None:
            shapes["variances"] = (rows, columns)
        if anatomy.has_sums:
            shapes["sums"] = (rows, columns)
        if anatomy.counters:
            shapes["counters"] = (rows, len(anatomy.counters))
        return shapes

    def _new(self, rows: int, columns: int) -> Arrays:
        anatomy = self.anatomy
        if anatomy.prior is None:
            spread = np.zeros((rows, 0))
        elif anatomy.is_full:
            spread = np.zeros((1 if anatomy.is_shared else rows, columns, columns))
            spread[:] = np.sqrt(anatomy.prior) * np.eye(columns)
        else:
            spread = np.full((rows, columns), anatomy.prior)
        return Arrays(
            weights=np.zeros((rows, columns)),
            spread=spread,
            sums=np.zeros((rows, columns if anatomy.has_sums else 0)),
            counters=np.tile(np.array(anatomy.counters, np.float64), (rows, 1)),
            work=np.zeros((2, 2, columns if anatomy.is_full else 0)),
        )


def of_columns(arrays: Mapping[str, NDArray[Any]], columns: I64) -> dict[str, NDArray[Any]]:
    """What `LinearState.arrays` gave with its columns in this order: the same whatever order features came in."""
    found = {}
    for name, array in arrays.items():
        if name == "roots":
            found[name] = array[:, columns[:, np.newaxis], columns]
        elif name == "counters" or name.startswith(PREFIX):
            found[name] = array
        else:
            found[name] = array[..., columns]
    return found | in_order(arrays, columns)
