"""The rows that a batch solver works on, dense or sparse, and the Newton system that their active part makes.

    A (m, n) rows                       V = I + sigma A_J^T A_J,  J the active rows

Only active rows enter V. It is solved directly where it is small, in n or, by Woodbury's identity, in |J|
unknowns, and by conjugate gradients where both are many.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

F64: TypeAlias = NDArray[np.float64]
I64: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
Product: TypeAlias = Callable[[F64], F64]

DIRECT_UNKNOWNS_MAX: Final = 2000  # a system of that size takes about as long as a few hundred products
DIRECT_WORK_MAX: Final = 4e9  # multiplications, about 0.3 s
PAIRS_MAX: Final = 16  # entries of a column that are paired one by one
DIRECT_CELLS_MAX: Final = 1 << 24  # numbers of the active rows written out, 128 MiB
DENSE_CELLS_PER_ENTRY: Final = 16  # rows with fewer cells for each entry are quicker written out
CG_STEPS_MAX: Final = 2000


def sums(places: I64, values: F64, size: int) -> F64:
    """The sum of the values at each place (size,), in their order."""
    return np.bincount(places, values, size).astype(np.float64, copy=False)


class Rows(Protocol):
    """A matrix (m, n)."""

    shape: tuple[int, int]

    def times(self, w: F64) -> F64:
        """A w (m,)."""
        ...

    def transposed(self, lam: F64) -> F64:
        """A^T lam (n,)."""
        ...

    def newton(self, active: Mask, sigma: float, g: F64, residual: float) -> tuple[F64, bool]:
        """d with V d = -g, and whether it is exact; else to a residual of that norm."""
        ...


class DenseRows:
    def __init__(self, values: F64) -> None:
        self.shape = (values.shape[0], values.shape[1])
        self._values = np.ascontiguousarray(values)

    def times(self, w: F64) -> F64:
        return self._values @ w

    def transposed(self, lam: F64) -> F64:
        return lam @ self._values

    def newton(self, active: Mask, sigma: float, g: F64, residual: float) -> tuple[F64, bool]:
        A = self._values[active]
        if _is_small(*A.shape) and (d := _direct(A, sigma, g)) is not None:
            return d, True
        diagonal = 1.0 + sigma * np.einsum("ij,ij->j", A, A)
        return _conjugate_gradients(lambda q: q + sigma * ((A @ q) @ A), diagonal, g, residual), False


class SparseRows:
    """Rows in CSR form; `rows` is the row of each entry. Entries of one place add up."""

    def __init__(self, rows: I64, indices: I64, values: F64, shape: tuple[int, int]) -> None:
        self.shape = shape
        self._rows, self._indices, self._values = rows, indices, values

    def times(self, w: F64) -> F64:
        return sums(self._rows, self._values * w[self._indices], self.shape[0])

    def transposed(self, lam: F64) -> F64:
        return sums(self._indices, self._values * lam[self._rows], self.shape[1])

    def newton(self, active: Mask, sigma: float, g: F64, residual: float) -> tuple[F64, bool]:
        A, columns = self._active(active)
        k, n = A.shape
        d = -g  # V is the identity on the columns that no active row has
        part = g[columns]
        exact = None
        if k <= n and k <= DIRECT_UNKNOWNS_MAX:
            exact = _woodbury(A.gram(), A.times, A.transposed, sigma, part)
        elif k * n <= DIRECT_CELLS_MAX and _is_small(k, n):
            exact = _direct(A.written_out(), sigma, part)
        if exact is not None:
            d[columns] = exact
            return d, True

        def V(q: F64) -> F64:
            return q + sigma * A.transposed(A.times(q))

        diagonal = 1.0 + sigma * sums(A._indices, A._values**2, n)
        d[columns] = _conjugate_gradients(V, diagonal, part, residual)
        return d, False

    def gram(self) -> F64:
        """A A^T (m, m): columns of many entries as a dense product, the others pair by pair."""
        m, n = self.shape
        many = np.bincount(self._indices, minlength=n) > PAIRS_MAX
        is_many = many[self._indices]
        places = (np.cumsum(many) - 1)[self._indices[is_many]]
        block = SparseRows(self._rows[is_many], places, self._values[is_many], (m, int(many.sum()))).written_out()
        few = np.flatnonzero(~is_many)
        few = few[np.argsort(self._indices[few], kind="stable")]
        rows, columns, values = self._rows[few], self._indices[few], self._values[few]
        upper = np.zeros((m, m))
        for apart in range(1, PAIRS_MAX):
            same = np.flatnonzero(columns[apart:] == columns[:-apart])
            pairs = rows[same] * m + rows[same + apart]
            upper += sums(pairs, values[same] * values[same + apart], m * m).reshape(m, m)
        upper += upper.T
        upper.flat[:: m + 1] += sums(rows, values**2, m)
        return block @ block.T + upper

    def _active(self, active: Mask) -> tuple[SparseRows, I64]:
        """The active rows on the columns that they have, and which these are."""
        kept = active[self._rows]
        rows, indices = (np.cumsum(active) - 1)[self._rows[kept]], self._indices[kept]
        used = np.zeros(self.shape[1], np.bool_)
        used[indices] = True
        columns = np.flatnonzero(used)
        indices = (np.cumsum(used) - 1)[indices]
        return SparseRows(rows, indices, self._values[kept], (int(active.sum()), columns.size)), columns

    def written_out(self) -> F64:
        places = self._rows * self.shape[1] + self._indices
        return sums(places, self._values, self.shape[0] * self.shape[1]).reshape(self.shape)


def _is_small(k: int, n: int) -> bool:
    unknowns = min(k, n)
    return unknowns <= DIRECT_UNKNOWNS_MAX and float(unknowns) ** 2 * max(k, n) <= DIRECT_WORK_MAX


def _direct(A: F64, sigma: float, g: F64) -> F64 | None:
    """d with (I + sigma A^T A) d = -g; None where rounding leaves no direction downhill."""
    k, n = A.shape
    if k < n:
        return _woodbury(A @ A.T, lambda q: A @ q, lambda q: q @ A, sigma, g)
    V = sigma * (A.T @ A)
    V.flat[:: n + 1] += 1.0
    solved = _solved(V, g)
    return None if solved is None else _downhill(-solved, g)


def _woodbury(gram: F64, times: Product, transposed: Product, sigma: float, g: F64) -> F64 | None:
    """The same by (I + sigma A^T A)^-1 = I - A^T (I / sigma + A A^T)^-1 A."""
    gram.flat[:: gram.shape[0] + 1] += 1.0 / sigma
    solved = _solved(gram, times(g))
    return None if solved is None else _downhill(transposed(solved) - g, g)


def _solved(system: F64, right: F64) -> F64 | None:
    try:
        return np.asarray(np.linalg.solve(system, right), np.float64)
    except np.linalg.LinAlgError:
        return None


def _downhill(d: F64, g: F64) -> F64 | None:
    is_downhill = float(g @ d) < 0.0  # not where d is not finite either
    return d if is_downhill else None


def _conjugate_gradients(V: Product, diagonal: F64, g: F64, residual: float) -> F64:
    """d with V d = -g to a residual of that norm, preconditioned by the diagonal of V."""
    d, r = np.zeros_like(g), -g
    z: F64 = r / diagonal
    p, rz = z, float(r @ z)
    for _ in range(min(CG_STEPS_MAX, 10 * g.size)):
        if math.sqrt(float(r @ r)) <= residual or rz <= 0.0:
            break
        Vp = V(p)
        curvature = float(p @ Vp)
        if not curvature > 0.0:
            break
        alpha = rz / curvature
        d = d + alpha * p
        r = r - alpha * Vp
        z = r / diagonal
        rz, before = float(r @ z), rz
        p = z + (rz / before) * p
    return d


@dataclass(frozen=True, slots=True)
class Entries:
    """The numbers of X (m, n), all finite: where `indices` is None a dense array, else CSR entries with their rows.

    Columns that no row has are left out; `used` (n_used,) are the others, and `indices` count among these.
    """

    values: F64
    rows_of: I64 | None
    indices: I64 | None
    shape: tuple[int, int]
    used: I64

    def size_exponent(self) -> int:
        """a with every row of norm at most 2^a, and the longest not much shorter."""
        _, exponent = math.frexp(float(np.abs(self.values).max(initial=0.0)))
        squares = np.ldexp(self.values, -exponent) ** 2
        if self.rows_of is None:
            longest = float(squares.sum(axis=1).max(initial=0.0))
        else:
            longest = float(sums(self.rows_of, squares, self.shape[0]).max(initial=0.0))
        return exponent + math.frexp(math.sqrt(longest))[1]

    def rows(self, factor: F64, exponent: int) -> Rows:
        """Each row times its factor (m,), in units of 2^exponent."""
        scaled = np.ldexp(self.values, -exponent)
        if self.rows_of is None or self.indices is None:
            return DenseRows(scaled * factor[:, np.newaxis])
        m, n = self.shape[0], self.used.size
        sparse = SparseRows(self.rows_of, self.indices, scaled * factor[self.rows_of], (m, n))
        is_dense = m * n <= DENSE_CELLS_PER_ENTRY * self.values.size
        return DenseRows(sparse.written_out()) if is_dense else sparse


def entries_of(X: Any, columns: int | None) -> Entries:
    """X, an array or in CSR form: `indptr` (m + 1,), `indices` and `data` or `values`.

    A CSR form without a shape has the given number of columns, or as many as it needs.
    """
    if not hasattr(X, "indptr"):
        values = np.asarray(X, np.float64)
        if values.ndim != 2:
            raise ValueError(f"X has {values.ndim} dimensions and needs 2")
        found = Entries(values, None, None, (values.shape[0], values.shape[1]), np.arange(values.shape[1]))
    else:
        found = _csr(X if getattr(X, "format", "csr") == "csr" else X.tocsr(), columns)
    if not np.all(np.isfinite(found.values)):
        raise ValueError("X has a number that is not finite")
    return found


def _csr(X: Any, columns: int | None) -> Entries:
    indptr, indices = np.asarray(X.indptr, np.int64), np.asarray(X.indices, np.int64)
    values = np.asarray(X.data if hasattr(X, "data") else X.values, np.float64)
    if not (indptr.ndim == 1 and indptr.size and indptr[0] >= 0 and np.all(np.diff(indptr) >= 0)):
        raise ValueError("indptr must be the bounds of the rows, one more than there are rows, and never fall")
    if indices.shape != values.shape or indptr[-1] > values.size:
        raise ValueError(f"{values.size} values, {indices.size} indices and rows up to {indptr[-1]} do not go together")
    indices, values = indices[indptr[0] : indptr[-1]], values[indptr[0] : indptr[-1]]
    used, places = np.unique(indices, return_inverse=True)
    last = int(used[-1]) if used.size else -1
    n = int(X.shape[1]) if hasattr(X, "shape") else last + 1 if columns is None else columns
    if used.size and not (used[0] >= 0 and last < n):
        raise ValueError(f"an index is outside of {n} columns")
    m = indptr.size - 1
    return Entries(values, np.repeat(np.arange(m), np.diff(indptr)), places, (m, n), used)
