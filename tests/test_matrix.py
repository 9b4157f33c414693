"""Rows of a batch solver: every way to solve the Newton system gives the same direction."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from olstream import matrix
from olstream.alm import svm
from olstream.matrix import Rows, entries_of
from tests.references.lesson import Matrix, Vector


def drawn(m: int, n: int, density: float) -> tuple[Matrix, Vector]:
    rng = np.random.default_rng(m + n)
    A = np.where(rng.random((m, n)) < density, rng.normal(size=(m, n)), 0.0)
    return A, rng.normal(size=n)


def rows_of(A: Matrix) -> Rows:
    """With every column, also one without entries."""
    csr = scipy.sparse.csr_array(A)
    return Rows(csr.indptr.astype(np.int64), csr.indices.astype(np.int64), csr.data, (A.shape[0], A.shape[1]))


SHAPES = [(80, 10, 0.5), (30, 200, 0.1), (50, 60, 1.0), (150, 70, 1.0), (150, 300, 0.3)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("is_direct", [True, False])
def test_the_newton_direction_solves_the_system_of_the_active_rows(
    shape: tuple[int, int, float], is_direct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    A, g = drawn(*shape)
    active = np.arange(len(A)) % 3 != 0
    if not is_direct:
        monkeypatch.setattr(matrix, "DIRECT_UNKNOWNS_MAX", 0)

    d, exact = rows_of(A).newton(active, 7.0, g, 1e-12)

    V = np.eye(A.shape[1]) + 7.0 * A[active].T @ A[active]
    assert V @ d == pytest.approx(-g, abs=1e-9)
    assert exact == is_direct


@pytest.mark.parametrize("shape", SHAPES)
def test_both_direct_ways_give_one_direction(shape: tuple[int, int, float]) -> None:
    A, g = drawn(*shape)
    rows, every = rows_of(A), np.arange(len(A))

    in_columns, in_rows = rows._direct(every, 3.0, g), rows._woodbury(every, 3.0, g)

    assert in_columns is not None and in_rows is not None
    assert in_columns == pytest.approx(in_rows, abs=1e-9)


def test_without_active_rows_the_direction_is_the_gradient() -> None:
    A, g = drawn(6, 4, 0.5)

    d, _ = rows_of(A).newton(np.zeros(6, np.bool_), 7.0, g, 1e-12)

    assert np.array_equal(d, -g)


@pytest.mark.parametrize("shape", SHAPES)
def test_products_are_those_of_the_matrix(shape: tuple[int, int, float]) -> None:
    A, w = drawn(*shape)
    lam = np.arange(len(A), dtype=float)

    assert rows_of(A).times(w) == pytest.approx(A @ w, abs=1e-12)
    assert rows_of(A).transposed(lam) == pytest.approx(lam @ A, abs=1e-9)


def test_a_singular_system_is_left_to_conjugate_gradients() -> None:
    g = np.arange(6.0)

    d, exact = rows_of(np.ones((4, 6))).newton(np.ones(4, np.bool_), 1e18, g, 1e-9)

    assert not exact
    assert float(g @ d) < 0.0


def test_conjugate_gradients_find_the_same_model(monkeypatch: pytest.MonkeyPatch) -> None:
    A, _ = drawn(150, 400, 0.03)
    y = np.where(np.arange(150) % 2 == 0, 1.0, -1.0)
    rows = scipy.sparse.csr_array(A)
    direct = svm(rows, y, tol=1e-9)
    monkeypatch.setattr(matrix, "DIRECT_UNKNOWNS_MAX", 0)

    found = svm(rows, y, tol=1e-9)

    assert found.converged
    assert found.objective == pytest.approx(direct.objective, rel=1e-8)
    assert found.w == pytest.approx(direct.w, abs=1e-4)


def test_entries_of_one_place_add_up() -> None:
    twice = SimpleNamespace(indptr=[0, 3, 3], indices=[0, 2, 0], data=[1.0, 2.0, 0.5])

    entries = entries_of(twice, None)

    assert entries.shape == (2, 3)
    assert entries.used.tolist() == [0, 2]
    assert entries.rows(np.array([2.0, 1.0]), 0).times(np.array([1.0, 10.0])).tolist() == [43.0, 0.0]


def test_entries_in_any_order_make_the_same_system() -> None:
    A, g = drawn(9, 6, 0.8)
    rows, indices = np.nonzero(A)
    order = np.lexsort((np.random.default_rng(0).random(rows.size), rows))
    halves = np.repeat(order, 2)
    bounds = np.append(0, np.cumsum(2 * np.bincount(rows, minlength=9)))
    mixed = SimpleNamespace(indptr=bounds, indices=indices[halves], data=A[rows, indices][halves] / 2.0)

    d, _ = entries_of(mixed, 6).rows(np.ones(9), 0).newton(np.ones(9, np.bool_), 2.0, g, 0.0)

    assert d == pytest.approx(-np.linalg.solve(np.eye(6) + 2.0 * A.T @ A, g), abs=1e-12)


def test_rows_may_stand_in_the_middle_of_longer_arrays() -> None:
    ring = SimpleNamespace(indptr=[2, 3, 5], indices=[9, 9, 1, 0, 1, 9], values=[0.0, 0.0, 5.0, 6.0, 7.0, 0.0])

    entries = entries_of(ring, 2)

    assert entries.rows(np.ones(2), 0).times(np.array([1.0, 2.0])).tolist() == [10.0, 20.0]


def test_rows_are_at_most_as_long_as_their_unit() -> None:
    A, _ = drawn(20, 5, 0.8)
    for size in (1e-300, 1.0, 1e300):
        for form in (A * size, scipy.sparse.csr_array(A * size)):
            entries = entries_of(form, None)
            scaled = entries.rows(np.ones(20), entries.size_exponent())
            lengths = [np.linalg.norm(scaled.transposed(row)) for row in np.eye(20)]

            assert 0.25 < max(lengths) <= 1.0


@pytest.mark.parametrize(("parts", "said"), [
    (dict(indptr=[0, 2, 1]), "never fall"),
    (dict(indptr=[]), "never fall"),
    (dict(indptr=[0, 1, 9]), "do not go together"),
    (dict(indices=[0]), "do not go together"),
    (dict(indices=[0, 5]), "outside of 3 columns"),
    (dict(indices=[0, -1]), "outside of 3 columns"),
])  # fmt: skip
def test_bounds_and_indices_that_make_no_rows_are_refused(parts: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        entries_of(SimpleNamespace(**{"indptr": [0, 1, 2], "indices": [0, 1], "data": [1.0, 2.0], **parts}), 3)
