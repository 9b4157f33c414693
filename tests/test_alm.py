"""The batch solver against another exact solver, its own certificate, and every way rows can be odd."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
import scipy.sparse

import olstream
from olstream.alm import Solution, svm
from tests.references import coordinate_descent
from tests.references.lesson import Matrix, Vector

compiled = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="coordinate descent in plain Python takes hours")  # type: ignore[attr-defined]


def real(path: Path, rows: int) -> tuple[Matrix, Vector]:
    """The first rows of a file in libsvm's form, with a constant column 0."""
    with gzip.open(path, "rt") as lines:
        split = [line.split() for line, _ in zip(lines, range(rows), strict=False)]
    cells = [[(int(i), float(v)) for i, v in (entry.split(":") for entry in row[1:])] for row in split]
    X = np.zeros((len(split), 1 + max(i for row in cells for i, _ in row)))
    X[:, 0] = 1.0
    for row, entries in enumerate(cells):
        for i, v in entries:
            X[row, i] = v
    return X, np.sign([float(row[0]) for row in split])


def drawn(seed: int, m: int = 60, n: int = 5, noise: float = 1.0) -> tuple[Matrix, Vector, Vector]:
    """Rows, labels and targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    t = X @ rng.normal(size=n) + noise * rng.normal(size=m)
    return X, np.where(t > 0, 1.0, -1.0), t


def certified(X: Matrix, y: Vector, found: Solution, cost: Any, eps: float | None = None) -> float:
    """How far above the optimum the objective can be, as a share: by weak duality, from the definitions alone."""
    cost = np.broadcast_to(np.asarray(cost, float), y.shape)
    if eps is None:
        assert np.all((found.lam >= 0) & (found.lam <= cost))
        w = X.T @ (found.lam * y)
        losses = np.maximum(0.0, 1.0 - y * (X @ found.w))
        dual = found.lam.sum() - 0.5 * w @ w
    else:
        assert np.all(np.abs(found.lam) <= cost)
        w = -X.T @ found.lam
        losses = np.maximum(0.0, np.abs(y - X @ found.w) - eps)
        dual = -y @ found.lam - eps * np.abs(found.lam).sum() - 0.5 * w @ w
    primal = 0.5 * found.w @ found.w + cost @ losses
    assert found.w == pytest.approx(w, rel=1e-9, abs=1e-12 * (1.0 + cost.sum()))  # what the sum rounds to
    assert found.objective == pytest.approx(primal, rel=1e-9)
    return float((primal - dual) / primal)


FILES = [("svmguide3.libsvm.gz", 5000), ("german-numer-scale.libsvm.gz", 5000), ("a9a.libsvm.gz", 5000)]


@compiled
@pytest.mark.parametrize(("name", "rows"), FILES)
@pytest.mark.parametrize(("C", "rounds"), [(0.01, 300), (1.0, 3000)])
def test_the_objective_is_that_of_coordinate_descent_for_svc(
    data_dir: Path, name: str, rows: int, C: float, rounds: int
) -> None:
    X, y = real(data_dir / name, rows)

    found = svm(X, y, C)

    at_least, at_most = coordinate_descent.svc(X, y, np.full(len(y), C), rounds)
    assert found.converged
    assert at_least * (1 - 1e-12) <= found.objective <= at_most * (1 + 1e-6)
    assert found.objective == pytest.approx(at_least, rel=1e-6)
    assert certified(X, y, found, C) < 1e-6
    assert found.iterations <= 40


@compiled
@pytest.mark.parametrize(("name", "rows"), FILES)
def test_the_objective_is_that_of_coordinate_descent_for_svr(data_dir: Path, name: str, rows: int) -> None:
    X, y = real(data_dir / name, rows)
    rng = np.random.default_rng(0)
    t = X @ rng.normal(size=X.shape[1]) + y + 0.3 * rng.normal(size=len(y))

    found = svm(X, t, 0.1, eps=0.2)

    at_least, at_most = coordinate_descent.svr(X, t, np.full(len(y), 0.1), 0.2, 1500)
    assert found.converged
    assert at_least * (1 - 1e-12) <= found.objective <= at_most * (1 + 1e-6)
    assert found.objective == pytest.approx(at_least, rel=1e-6)
    assert certified(X, t, found, 0.1, 0.2) < 1e-6
    assert found.iterations <= 40


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("C", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("eps", [None, 0.0, 0.5])
def test_a_gap_of_1e9_is_reached_and_certified(seed: int, C: float, eps: float | None) -> None:
    X, y, t = drawn(seed)
    target = y if eps is None else t

    found = svm(X, target, C, eps, tol=1e-9)

    assert found.converged and max(found.gap, found.residual) <= 1e-9
    assert certified(X, target, found, C, eps) <= 2e-9


def test_lam_tells_on_which_side_of_the_margin_a_row_is() -> None:
    X, y, t = drawn(1)
    classes, numbers = svm(X, y, 0.5, tol=1e-9), svm(X, t, 0.5, eps=0.5, tol=1e-9)

    margin, error = y * (X @ classes.w), X @ numbers.w - t

    assert {*classes.lam[margin > 1 + 1e-6]} == {0.0}
    assert {*classes.lam[margin < 1 - 1e-6]} == {0.5}
    assert {*numbers.lam[np.abs(error) < 0.5 - 1e-6]} == {0.0}
    assert np.array_equal(numbers.lam[np.abs(error) > 0.5 + 1e-6], 0.5 * np.sign(error[np.abs(error) > 0.5 + 1e-6]))


def test_two_points_by_hand() -> None:
    found = svm([[2.0], [-2.0]], [1, -1], C=1.0)

    assert found.w == pytest.approx([0.5], abs=1e-6)
    assert found.objective == pytest.approx(0.125, rel=1e-6)


def test_importance_2_is_a_row_twice_and_importance_0_no_row() -> None:
    X, y, t = drawn(2)
    h = np.random.default_rng(0).integers(0, 3, len(y))
    times = np.repeat(np.arange(len(y)), h)

    for target, eps in ((y, None), (t, 0.3)):
        weighted, repeated = svm(X, target, 0.7, eps, h, tol=1e-9), svm(X[times], target[times], 0.7, eps, tol=1e-9)

        assert weighted.objective == pytest.approx(repeated.objective, rel=1e-8)
        assert weighted.w == pytest.approx(repeated.w, abs=1e-5)
        assert not np.any(weighted.lam[h == 0])
        assert certified(X, target, weighted, 0.7 * h, eps) < 2e-9


def test_zero_rows_cost_what_they_cost_and_move_nothing() -> None:
    X, y, t = drawn(3)
    zeros = np.vstack([X, np.zeros((3, 5))])

    classes = svm(zeros, np.append(y, [1, -1, 1]), 0.5, tol=1e-9)
    numbers = svm(zeros, np.append(t, [2.0, -2.0, 0.1]), 0.5, eps=0.3, tol=1e-9)

    assert classes.w == pytest.approx(svm(X, y, 0.5, tol=1e-9).w, abs=1e-6)
    assert classes.lam[-3:].tolist() == [0.5, 0.5, 0.5]
    assert numbers.w == pytest.approx(svm(X, t, 0.5, 0.3, tol=1e-9).w, abs=1e-6)
    assert numbers.lam[-3:].tolist() == [-0.5, 0.5, 0.0]


@pytest.mark.parametrize("rows", [np.zeros((4, 3)), scipy.sparse.csr_array((4, 3)), np.zeros((4, 0))])
def test_rows_that_are_all_zero_have_the_zero_model(rows: Any) -> None:
    found = svm(rows, [1, -1, 1, 1], C=2.0)

    assert found.converged
    assert (found.w.tolist(), found.lam.tolist(), found.objective) == ([0.0] * rows.shape[1], [2.0] * 4, 8.0)


def test_no_rows_have_the_zero_model() -> None:
    for found in (svm(np.zeros((0, 3)), []), svm(np.zeros((0, 3)), [], eps=0.1)):
        assert found.converged
        assert (found.w.tolist(), found.lam.size, found.objective) == ([0.0] * 3, 0, 0.0)


def test_contradictions_cancel() -> None:
    X, _, _ = drawn(4)

    found = svm(np.vstack([X, X]), np.repeat([1.0, -1.0], 60), 3.0)

    assert found.converged
    assert found.w == pytest.approx(np.zeros(5), abs=1e-5)
    assert found.objective == pytest.approx(2 * 60 * 3.0)


def test_one_class_is_put_on_its_side_by_the_constant() -> None:
    X = np.column_stack([drawn(5)[0], np.ones(60)])

    found = svm(X, np.ones(60), 1.0, tol=1e-9)

    assert found.converged and certified(X, np.ones(60), found, 1.0) < 2e-9
    assert np.all(X @ found.w >= 1 - 1e-4)


@pytest.mark.parametrize("C", [1e-300, 1e-100, 1e-8])
def test_a_c_so_small_that_every_row_has_all_of_it(C: float) -> None:
    X, y, t = drawn(6)

    classes, numbers = svm(X, y, C), svm(X, t, C, eps=0.0)

    assert classes.converged and numbers.converged
    assert {*classes.lam} == {C} == {*np.abs(numbers.lam)}
    assert classes.objective == pytest.approx(60 * C, rel=1e-6)
    assert classes.w == pytest.approx(C * X.T @ y, rel=1e-12)


@pytest.mark.parametrize("C", [1e6, 1e12, 1e40, 1e300])
def test_a_huge_c_is_the_hard_margin(C: float) -> None:
    X, y, _ = drawn(7, noise=0.0)

    found = svm(X, y, C)

    assert found.converged
    assert (y * (X @ found.w)).min() == pytest.approx(1.0, abs=1e-6)
    assert found.objective == pytest.approx(svm(X, y, 1e4).objective, rel=1e-5)


@pytest.mark.parametrize("C", [1e6, 1e8])
def test_classes_that_overlap_take_no_longer_with_a_huge_c(C: float) -> None:
    X, y, _ = drawn(17, m=300, n=10)

    found = svm(X, y, C)

    assert found.converged
    assert found.iterations <= 40 and found.newton_steps <= 400
    assert certified(X, y, found, C) < 1e-6


def test_where_rounding_keeps_the_gap_open_it_stops_and_says_so() -> None:
    X, y, _ = drawn(17, m=300, n=10)

    found = svm(X, y, 1e12, tol=1e-12)

    assert not found.converged
    assert found.gap < 1e-3 and found.iterations < 100


def test_a_c_beyond_the_digits_of_a_double_is_refused_where_classes_overlap() -> None:
    X, y, t = drawn(8)

    with pytest.raises(ValueError, match="too far apart"):
        svm(X, y, 1e40)
    with pytest.raises(ValueError, match="too far apart"):
        svm(X, t, 1e40, eps=0.1)


@pytest.mark.parametrize("exponent", [-30, 7, 200])
def test_units_do_not_matter_to_the_last_bit(exponent: int) -> None:
    X, y, t = drawn(9)
    unit = 2.0**exponent

    classes = svm(X * unit, y, 0.5 / unit / unit)
    numbers = svm(X * unit, t * unit, 0.5 / unit, eps=0.1 * unit)

    assert np.array_equal(classes.w * unit, svm(X, y, 0.5).w)
    assert np.array_equal(numbers.w, svm(X, t, 0.5, eps=0.1).w)


@pytest.mark.parametrize("size", [1e-300, 1e-150, 1e150, 1e300])
def test_numbers_of_any_size_give_a_finite_model_or_are_refused(size: float) -> None:
    X, y, t = drawn(10)
    mixed = X.copy()
    mixed[3] *= size
    for rows, target, eps in ((X * size, y, None), (mixed, y, None), (X * size, t, 0.1), (X, t * size, 0.1),
                              (mixed, t, 0.1), (X / size, t * size, 0.1)):  # fmt: skip
        try:
            found = svm(rows, target, 1.0, eps)
        except ValueError as error:
            assert "too far apart" in str(error) or "not finite" in str(error)
            continue
        assert np.isfinite(found.objective)
        assert np.all(np.isfinite(found.w)) and np.all(np.isfinite(found.lam))
        assert np.all(np.abs(found.lam) <= 1.0)


@pytest.mark.parametrize("size", [1e4, 1e6, 1.7e12])
@pytest.mark.parametrize("eps", [None, 0.1])
def test_a_column_of_milliseconds_does_not_spoil_the_others(size: float, eps: float | None) -> None:
    X, y, t = drawn(16, m=300)
    target = y if eps is None else t
    alone = svm(X, target, 1.0, eps)

    found = svm(np.column_stack([X, size * np.linspace(1.0, 1.001, 300)]), target, 1.0, eps)

    assert found.gap < 1e-5
    assert found.objective < alone.objective * (1 + 1e-5)
    assert found.w[:5] == pytest.approx(alone.w, abs=0.3)


def test_every_form_of_rows_gives_the_same_model() -> None:
    rng = np.random.default_rng(11)
    X = np.where(rng.random((40, 300)) < 0.05, rng.normal(size=(40, 300)), 0.0)
    y = rng.choice([-1.0, 1.0], 40)
    csr = scipy.sparse.csr_array(X)

    class Own:
        indptr, indices, values = csr.indptr, csr.indices, csr.data

    dense = svm(X, y, tol=1e-9)
    others = [svm(rows, y, tol=1e-9) for rows in (csr, scipy.sparse.csc_array(X), scipy.sparse.coo_array(X).tocsr())]
    others.append(svm(Own(), y, tol=1e-9, columns=300))

    for other in others:
        assert other.w == pytest.approx(dense.w, abs=1e-9)
        assert other.lam == pytest.approx(dense.lam, abs=1e-6)


def test_columns_that_no_row_has_cost_nothing_and_have_weight_0() -> None:
    X = scipy.sparse.csr_array(([1.0, 1.0, 2.0], [7, 1_000_000, 7], [0, 2, 3]), shape=(2, 1 << 20))

    found = svm(X, [1, -1])

    assert found.w.shape == (1 << 20,)
    assert np.flatnonzero(found.w).tolist() == [7, 1_000_000]


def test_a_warm_start_ends_where_a_cold_one_does_and_at_the_optimum_at_once() -> None:
    X, y, t = drawn(12, m=200)
    for target, eps in ((y, None), (t, 0.2)):
        before = svm(X[:150], target[:150], 0.5, eps, tol=1e-9)

        again = svm(X[:150], target[:150], 0.5, eps, start=(before.w, before.lam))
        lam = np.append(before.lam[50:], np.zeros(50))
        warm = svm(X[50:], target[50:], 0.5, eps, start=(before.w, lam), tol=1e-9)
        cold = svm(X[50:], target[50:], 0.5, eps, tol=1e-9)

        assert (again.iterations, again.newton_steps) == (1, 0)
        assert again.lam == pytest.approx(before.lam, abs=1e-7)
        assert warm.objective == pytest.approx(cold.objective, rel=1e-8)
        assert warm.w == pytest.approx(cold.w, abs=1e-5)


def test_a_start_out_of_bounds_is_brought_within() -> None:
    X, y, _ = drawn(13)

    found = svm(X, y, 0.5, start=(np.full(5, 1e300), np.linspace(-9, 9, 60)), tol=1e-9)

    assert found.objective == pytest.approx(svm(X, y, 0.5, tol=1e-9).objective, rel=1e-8)


def test_the_same_rows_give_the_same_bits() -> None:
    X, y, _ = drawn(14, m=300, n=20)

    first, second = svm(X, y), svm(scipy.sparse.csr_array(X), y.copy())
    third, fourth = (svm(X, y, 2.0, start=(each.w.copy(), each.lam)) for each in (first, second))

    for one, other in ((first, second), (third, fourth)):
        assert one.w.tobytes() == other.w.tobytes()
        assert one.lam.tobytes() == other.lam.tobytes()


@pytest.mark.parametrize(("args", "said"), [
    (dict(y=[1.0, 2.0]), "without eps y is -1 or \\+1, not 2.0"),
    (dict(y=[1.0]), r"y has shape \(1,\) and needs \(2,\)"),
    (dict(y=[1.0, np.nan], eps=0.1), "y has a number that is not finite"),
    (dict(X=[[1.0], [np.inf]]), "X has a number that is not finite"),
    (dict(X=[1.0, 2.0]), "X has 1 dimensions and needs 2"),
    (dict(C=0.0), "C must be a finite number > 0, not 0.0"),
    (dict(C=np.nan), "C must be"),
    (dict(C="1"), "C must be a finite number > 0, not '1'"),
    (dict(tol=None), "tol must be a finite number > 0, not None"),
    (dict(C=10**400), "C must be a finite number"),
    (dict(iterations_max=0), "iterations_max must be a whole number >= 1, not 0"),
    (dict(iterations_max=2.5), "iterations_max must be a whole number >= 1, not 2.5"),
    (dict(X=[[1.0], [10**400]]), "X must be an array of numbers that a double can hold"),
    (dict(X=[[1.0], [1j]]), "X must be an array of numbers"),
    (dict(X=[[1.0], [1.0, 2.0]]), "X must be an array of numbers that a double can hold, with rows of equal length"),
    (dict(X=[["a"], ["b"]]), "X must be an array of numbers"),
    (dict(X=scipy.sparse.csr_array(np.array([[1j], [1.0]]))), "X must be an array of numbers"),
    (dict(y=["a", "b"]), "y must be an array of numbers"),
    (dict(y=[1.0, None]), "y has a number that is not finite"),
    (dict(tol=0.0), "tol must be"),
    (dict(eps=-0.1), "eps must be a finite number >= 0"),
    (dict(weight=[1.0, -1.0]), "a weight is at least 0"),
    (dict(weight=[1e300, 1.0], C=1e300), "too large for a double"),
    (dict(start=([0.0, 0.0], [0.0, 0.0])), "the w of start has shape"),
    (dict(start=([0.0], [0.0])), "the lam of start has shape"),
    (dict(start=([np.nan], [0.0, 0.0])), "the w of start has a number that is not finite"),
])  # fmt: skip
def test_what_cannot_be_solved_is_refused_by_name(args: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        svm(**{"X": [[1.0], [2.0]], "y": [1.0, -1.0], **args})


def test_one_iteration_too_few_gives_bounds_and_says_so() -> None:
    X, y, _ = drawn(15)

    found = svm(X, y, 0.5, iterations_max=1)

    assert not found.converged
    assert certified(X, y, found, 0.5) == pytest.approx(2 * found.gap, rel=1.0)


def test_it_is_the_library_s() -> None:
    assert olstream.svm is svm
