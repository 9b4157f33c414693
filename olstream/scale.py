"""`scale: standard`: each number less its mean so far, in units of its deviation so far.

    n ← n + 1    d = x - μ    μ ← μ + d / n    M ← M + d (x - μ)    z = (x - μ) / √(M / n)

The statistics (Welford) include the value itself, and are kept only where the row is learnt.
Deviation 0 gives 0. What has only ever been 0 or 1 passes unchanged, and is counted all the same:
one day it may be 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from olstream import intact
from olstream.learners._jit import F64, I64, U8, kernel
from olstream.learners._state import UNSEEN


class Entries(Protocol):
    """A batch, as far as scaling goes."""

    @property
    def indptr(self) -> I64: ...
    @property
    def indices(self) -> I64: ...
    @property
    def values(self) -> F64: ...
    @property
    def numeric(self) -> U8: ...


class Scaler:
    """Statistics by column: `count`, `mean`, `m2` (sum of squared deviations), `binary` (1: only ever 0 or 1)."""

    def __init__(self, n_columns: int) -> None:
        self.count = np.zeros(n_columns)
        self.mean = np.zeros(n_columns)
        self.m2 = np.zeros(n_columns)
        self.binary = np.ones(n_columns, np.uint8)

    def standardise(self, batch: Entries, learnt: NDArray[np.bool_], n_columns: int) -> NDArray[np.bool_]:
        """Replace the values of a batch. True for rows with a value too large to count: it is 0 then, and not kept."""
        self._grow(n_columns)
        unstable = np.zeros(len(batch.indptr) - 1, np.uint8)
        entries = batch.indptr, batch.indices, batch.values, batch.numeric
        _standardise(*entries, learnt.view(np.uint8), self.count, self.mean, self.m2, self.binary, unstable)
        return unstable.view(np.bool_)

    def state(self, n_columns: int) -> dict[str, NDArray[Any]]:
        """The statistics of the first columns, copied."""
        self._grow(n_columns)
        return {name: getattr(self, name)[:n_columns].copy() for name in ("count", "mean", "m2", "binary")}

    @classmethod
    def restore(cls, arrays: Mapping[str, NDArray[Any]], n_columns: int) -> Self:
        """What `state` gave of so many columns, made anew; ValueError where it cannot have been."""
        self = cls(0)
        self.count, self.mean, self.m2 = (
            intact.array(arrays, name, np.float64, (n_columns,)).copy() for name in ("count", "mean", "m2")
        )
        self.binary = intact.array(arrays, "binary", np.uint8, (n_columns,)).copy()
        return self

    def _grow(self, n_columns: int) -> None:
        size = len(self.count)
        if n_columns > size:
            more = max(n_columns, 2 * size) - size
            self.count, self.mean, self.m2 = (np.pad(a, (0, more)) for a in (self.count, self.mean, self.m2))
            self.binary = np.pad(self.binary, (0, more), constant_values=1)


@kernel
def _standardise(
    indptr: I64, indices: I64, values: F64, numeric: U8, learnt: U8,
    count: F64, mean: F64, m2: F64, binary: U8, unstable: U8,
) -> None:  # fmt: skip
    for i in range(indptr.size - 1):
        for k in range(indptr[i], indptr[i + 1]):
            if numeric[k] == 0:
                continue
            j = indices[k]
            x = values[k]
            zero_or_one = binary[j] == 1 and (x == 0.0 or x == 1.0)
            n = count[j] + 1.0
            d = x - mean[j]
            mu = mean[j] + d / n
            m = m2[j] + d * (x - mu)
            if not (np.isfinite(mu) and np.isfinite(m)):
                values[k] = 0.0
                unstable[i] = 1
                continue
            if not zero_or_one:
                deviation = np.sqrt(m / n)
                values[k] = (x - mu) / deviation if deviation > 0.0 else 0.0
            if learnt[i] == 1 and j != UNSEEN:
                count[j] = n
                mean[j] = mu
                m2[j] = m
                if not zero_or_one:
                    binary[j] = 0
