"""The rows that a batch solver works on, and the Newton system that their active part makes.

    A (m, n) rows                       V = I + sigma A_J^T A_J,  J the active rows

Only active rows enter V. It is solved directly where it is small, in n or, by Woodbury's identity, in |J|
unknowns, and by conjugate gradients where both are many.

Kernels of our own and not BLAS: its threads wait for each other, which beside other processes takes
longer than the work, and their number decides how sums are rounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from olstream.learners._jit import F64, I64, kernel

Mask: TypeAlias = NDArray[np.bool_]

DIRECT_UNKNOWNS_MAX: Final = 2000  # 32 MiB, and about 1 s
DIRECT_WORK_MAX: Final = 4e9  # multiplications
CG_STEPS_MAX: Final = 2000
PANEL: Final = 32


def dot(a: F64, b: F64) -> float:
    """a·b, added up in the same order by every machine."""
    return float(np.multiply(a, b).sum())


@dataclass(frozen=True, slots=True)
class Rows:
    """A matrix (m, n) in CSR form; the indices of a row rise."""

    indptr: I64
    indices: I64
    values: F64
    shape: tuple[int, int]

    def times(self, w: F64) -> F64:
        """A w (m,)."""
        return _times(self.indptr, self.indices, self.values, np.arange(self.shape[0]), w)

    def transposed(self, lam: F64) -> F64:
        """A^T lam (n,)."""
        return _transposed(self.indptr, self.indices, self.values, np.arange(self.shape[0]), lam, self.shape[1])

    def newton(self, active: Mask, sigma: float, g: F64, residual: float) -> tuple[F64, bool]:
        """d with V d = -g, and whether it is exact; else to a residual of that norm."""
        rows, n = np.flatnonzero(active), self.shape[1]
        entries = np.diff(self.indptr)[rows].astype(np.float64)
        in_rows = _work(rows.size, rows.size * float(entries.sum()) / 2.0)
        in_columns = _work(n, dot(entries, entries) / 2.0)
        d = None
        if rows.size and min(in_rows, in_columns) <= DIRECT_WORK_MAX:
            d = self._woodbury(rows, sigma, g) if in_rows < in_columns else self._direct(rows, sigma, g)
        if rows.size == 0:
            return -g, True
        if d is not None and dot(g, d) < 0.0:  # rounding can leave no direction downhill, or none that is finite
            return d, True
        return self._conjugate_gradients(rows, sigma, g, residual), False

    def _direct(self, rows: I64, sigma: float, g: F64) -> F64 | None:
        V = np.eye(self.shape[1])
        _add_squares(self.indptr, self.indices, self.values, rows, sigma, V)
        return -_solve(V, g) if _cholesky(V) else None

    def _woodbury(self, rows: I64, sigma: float, g: F64) -> F64 | None:
        """By V^-1 = I - A_J^T (I / sigma + A_J A_J^T)^-1 A_J."""
        K = np.diag(np.full(rows.size, 1.0 / sigma))
        _add_products(self.indptr, self.indices, self.values, rows, self.shape[1], K)
        if not _cholesky(K):
            return None
        solved = _solve(K, _times(self.indptr, self.indices, self.values, rows, g))
        return _transposed(self.indptr, self.indices, self.values, rows, solved, g.size) - g

    def _conjugate_gradients(self, rows: I64, sigma: float, g: F64, residual: float) -> F64:
        """Preconditioned by the diagonal of V."""
        csr = self.indptr, self.indices, self.values
        diagonal = 1.0 + sigma * _transposed(*csr[:2], self.values**2, rows, np.ones(rows.size), g.size)
        d, r = np.zeros_like(g), -g
        z: F64 = r / diagonal
        p, rz = z, dot(r, z)
        for _ in range(min(CG_STEPS_MAX, 10 * g.size)):
            if math.sqrt(dot(r, r)) <= residual or rz <= 0.0:
                break
            Vp = p + sigma * _transposed(*csr, rows, _times(*csr, rows, p), g.size)
            curvature = dot(p, Vp)
            if not curvature > 0.0:
                break
            alpha = rz / curvature
            d = d + alpha * p
            r = r - alpha * Vp
            z = r / diagonal
            rz, before = dot(r, z), rz
            p = z + (rz / before) * p
        return d


def _work(unknowns: int, products: float) -> float:
    """Multiplications to make a system and to solve it."""
    return math.inf if unknowns > DIRECT_UNKNOWNS_MAX else products + float(unknowns) ** 3 / 6.0


@kernel
def _times(indptr: I64, indices: I64, values: F64, rows: I64, w: F64) -> F64:
    """A_J w for the rows J."""
    out = np.zeros(rows.size)
    for i in range(rows.size):
        total = 0.0
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            total += values[e] * w[indices[e]]
        out[i] = total
    return out


@kernel
def _transposed(indptr: I64, indices: I64, values: F64, rows: I64, lam: F64, n: int) -> F64:
    """A_J^T lam for the rows J."""
    out = np.zeros(n)
    for i in range(rows.size):
        if lam[i] != 0.0:
            for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
                out[indices[e]] += values[e] * lam[i]
    return out


@kernel
def _add_squares(indptr: I64, indices: I64, values: F64, rows: I64, sigma: float, V: F64) -> None:
    """V + sigma A_J^T A_J, its upper triangle."""
    n = V.shape[0]
    for i in range(rows.size):
        start, end = indptr[rows[i]], indptr[rows[i] + 1]
        for e in range(start, end):
            a = sigma * values[e]
            k = indices[e]
            if end - start == n:  # without gaps: the same sums, several at once
                for j in range(k, n):
                    V[k, j] += a * values[start + j]
            else:
                for f in range(e, end):
                    V[k, indices[f]] += a * values[f]


@kernel
def _add_products(indptr: I64, indices: I64, values: F64, rows: I64, n: int, K: F64) -> None:
    """K + A_J A_J^T, its upper triangle."""
    written = np.zeros(n)
    for i in range(rows.size):
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            written[indices[e]] = values[e]
        for j in range(i, rows.size):
            total = 0.0
            for e in range(indptr[rows[j]], indptr[rows[j] + 1]):
                total += values[e] * written[indices[e]]
            K[i, j] += total
        for e in range(indptr[rows[i]], indptr[rows[i] + 1]):
            written[indices[e]] = 0.0


@kernel
def _cholesky(A: F64) -> bool:
    """U with A = U^T U in place of the upper triangle of A; False where A is not positive definite.

    Some pivots at a time, so that a row is changed by all of them while it is near.
    """
    n = A.shape[0]
    for start in range(0, n, PANEL):
        end = min(start + PANEL, n)
        for i in range(start, n):
            for k in range(start, min(i, end)):
                a = A[k, i]
                for j in range(i, n):
                    A[i, j] -= a * A[k, j]
            if i < end:
                if not 0.0 < A[i, i] < np.inf:
                    return False
                pivot = math.sqrt(A[i, i])
                for j in range(i, n):
                    A[i, j] /= pivot
    return True


@kernel
def _solve(U: F64, b: F64) -> F64:
    """x with U^T U x = b."""
    n = b.size
    x = b.copy()
    for k in range(n):
        x[k] /= U[k, k]
        for j in range(k + 1, n):
            x[j] -= U[k, j] * x[k]
    for k in range(n - 1, -1, -1):
        total = x[k]
        for j in range(k + 1, n):
            total -= U[k, j] * x[j]
        x[k] = total / U[k, k]
    return x


@dataclass(frozen=True, slots=True)
class Entries:
    """The numbers of X (m, n), all finite, in CSR form.

    Columns that no row has are left out; `used` (n_used,) are the others, and `indices` count among these.
    """

    indptr: I64
    indices: I64
    values: F64
    shape: tuple[int, int]
    used: I64

    def size_exponent(self) -> int:
        """a with every row of norm at most 2^a, and the longest not much shorter."""
        _, exponent = math.frexp(float(np.abs(self.values).max(initial=0.0)))
        squares = np.ldexp(self.values, -exponent) ** 2
        sums = _times(self.indptr, np.zeros_like(self.indices), squares, np.arange(self.shape[0]), np.ones(1))
        return exponent + math.frexp(math.sqrt(float(sums.max(initial=0.0))))[1]

    def rows(self, factor: F64, exponent: int) -> Rows:
        """Each row times its factor (m,), in units of 2^exponent."""
        values = np.ldexp(self.values, -exponent) * np.repeat(factor, np.diff(self.indptr))
        return Rows(self.indptr, self.indices, values, (self.shape[0], self.used.size))


def entries_of(X: Any, columns: int | None) -> Entries:
    """X, an array or in CSR form: `indptr` (m + 1,), `indices` and `data` or `values`.

    A CSR form without a shape has the given number of columns, or as many as it needs.
    """
    if hasattr(X, "indptr"):
        found = _csr(X if getattr(X, "format", "csr") == "csr" else X.tocsr(), columns)
    else:
        values = doubles("X", X)
        if values.ndim != 2:
            raise ValueError(f"X has {values.ndim} dimensions and needs 2")
        m, n = values.shape
        rows, indices = np.nonzero(values)
        found = _compact(rows, indices, values[rows, indices], (m, n))
    if not np.all(np.isfinite(found.values)):
        raise ValueError("X has a number that is not finite")
    return found


def doubles(name: str, given: ArrayLike) -> F64:
    """The given numbers as an array of doubles; ValueError where they are none, or where no double holds one."""
    try:
        array = np.asarray(given)
        if array.dtype.kind in "buifO":
            with np.errstate(over="ignore"):
                return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"{name} must be an array of numbers that a double can hold, with rows of equal length")


def _csr(X: Any, columns: int | None) -> Entries:
    indptr, indices = np.asarray(X.indptr, np.int64), np.asarray(X.indices, np.int64)
    values = doubles("X", X.data if hasattr(X, "data") else X.values)
    if not (indptr.ndim == 1 and indptr.size and indptr[0] >= 0 and np.all(np.diff(indptr) >= 0)):
        raise ValueError("indptr must be the bounds of the rows, one more than there are rows, and never fall")
    if indices.shape != values.shape or indptr[-1] > values.size:
        raise ValueError(f"{values.size} values, {indices.size} indices and rows up to {indptr[-1]} do not go together")
    indices, values = indices[indptr[0] : indptr[-1]], values[indptr[0] : indptr[-1]]
    needed = int(indices.max(initial=-1)) + 1
    n = int(X.shape[1]) if hasattr(X, "shape") else needed if columns is None else columns
    if needed > n or int(indices.min(initial=0)) < 0:
        raise ValueError(f"an index is outside of {n} columns")
    m = indptr.size - 1
    rows = np.repeat(np.arange(m), np.diff(indptr))
    rises = np.diff(indices) > 0
    if not np.all(rises | (np.diff(rows) > 0)):
        rows, indices, values = _sorted(rows, indices, values)
    return _compact(rows, indices, values, (m, n))


def _sorted(rows: I64, indices: I64, values: F64) -> tuple[I64, I64, F64]:
    """The entries in order, those of one place added up."""
    order = np.lexsort((indices, rows))
    rows, indices = rows[order], indices[order]
    is_first = np.append(True, (np.diff(rows) > 0) | (np.diff(indices) > 0))
    with np.errstate(over="ignore"):
        return rows[is_first], indices[is_first], np.add.reduceat(values[order], np.flatnonzero(is_first))


def _compact(rows: I64, indices: I64, values: F64, shape: tuple[int, int]) -> Entries:
    used, places = np.unique(indices, return_inverse=True)
    indptr = np.append(0, np.cumsum(np.bincount(rows, minlength=shape[0])))
    return Entries(indptr, places, values, shape, used)
