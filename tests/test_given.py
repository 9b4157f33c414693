"""What a Python caller gives: sparse rows are the arrays that they stand for."""

from __future__ import annotations

import math
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from olstream import Learner

ROWS = np.array([[1.0, 0.0, -2.0], [0.5, 1.0, 0.0], [0.0, 3.0, 1.0], [1.0, 1.0, 1.0]])
LABELS = [1, 0, 1, 0]
MAKERS = [sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix, sparse.coo_array, sparse.dok_array]
LEARNERS = [("arow", "binary"), ("pa1", "binary"), ("pa2", "multiclass"), ("pa", "regression")]


def some_rows(n: int, k: int, seed: int = 3) -> np.ndarray[Any, Any]:
    """Rows of numbers, most of them 0."""
    rng = np.random.default_rng(seed)
    return np.asarray(rng.normal(size=(n, k)) * 10.0 ** rng.integers(-9, 9, (n, k)) * (rng.random((n, k)) < 0.2))


def some_labels(task: str, n: int) -> list[Any]:
    rng = np.random.default_rng(4)
    given = {"regression": rng.normal(size=n), "binary": rng.integers(0, 2, n), "multiclass": rng.integers(0, 4, n)}
    labels: list[Any] = given[task].tolist()
    return labels


@pytest.mark.parametrize("make", MAKERS)
def test_a_sparse_matrix_is_the_array_that_it_stands_for(make: Any) -> None:
    m, expected = Learner("arow"), Learner("arow")

    m.learn_many(make(ROWS), LABELS)
    expected.learn_many(ROWS, LABELS)

    assert m.digest() == expected.digest()
    assert m.predict(ROWS[0]) == expected.predict(make(ROWS[:1]))


@pytest.mark.parametrize(("name", "task"), LEARNERS)
@pytest.mark.parametrize("settings", [
    {}, {"bias": False}, {"scale": "standard"}, {"features": {"category": ["3", "17"]}},
    {"features": {"names_max": 12, "overflow_buckets": 2, "category": ["3"]}},
])  # fmt: skip
def test_sparse_rows_and_dense_ones_teach_the_same_to_the_last_bit(
    name: str, task: str, settings: dict[str, Any]
) -> None:
    rows, labels = some_rows(60, 30), some_labels(task, 60)
    m, expected = (Learner(name, task=task, **settings) for _ in range(2))  # type: ignore[arg-type]

    m.learn_many(sparse.csr_array(rows[:20]), [None] * 5 + labels[5:20], [0.0, 1.0] * 10)
    m.learn_many(rows[20:25], labels[20:25])
    for row, label in zip(sparse.csr_matrix(rows[25:35]), labels[25:35], strict=True):
        m.learn(row, label)
    m.learn_many(list(sparse.csr_matrix(rows[35:])), labels[35:])
    expected.learn_many(rows, [None] * 5 + labels[5:], [0.0, 1.0] * 10 + [1.0] * 40)

    assert m.weights() == expected.weights()
    assert m.variances() == expected.variances()
    assert m.digest() == expected.digest()
    assert m.predict(sparse.csr_array(rows[:1])) == expected.predict(rows[0])


def test_one_row_of_a_matrix_can_be_learnt_and_predicted() -> None:
    matrix, array = sparse.csr_matrix(ROWS), sparse.csr_array(ROWS)
    m, expected = Learner("arow"), Learner("arow")

    assert m.learn(matrix[0], 1) == expected.learn(ROWS[0], 1)
    assert m.learn(array[1], 0) == expected.learn(ROWS[1], 0)  # of one dimension
    assert m.predict(array[[2]]) == m.predict(array[2]) == m.predict(matrix.getrow(2)) == expected.predict(ROWS[2])
    for rows in (matrix, array[:2], matrix[:0]):
        with pytest.raises(ValueError, match=r"^bad_features: .* rows"):
            m.predict(rows)


def test_the_number_of_columns_is_the_dimension() -> None:
    m = Learner("pa1")
    m.learn_many(sparse.csr_array(ROWS), LABELS)

    for other in (ROWS[0][:2], sparse.csr_array(ROWS[:1, :2]), [1.0] * 4, {"0": 1.0}):
        with pytest.raises(ValueError, match=r"^dimension: "):
            m.predict(other)
    with pytest.raises(ValueError, match=r"^dimension: "):
        Learner("pa1", weights={"x": 1.0}).learn_many([{"x": 1.0}, sparse.csr_array(ROWS[:1])], [1, 0])


def test_what_no_row_can_be_made_of_is_refused() -> None:
    m = Learner("pa1")
    for rows in (
        sparse.csr_array(ROWS.astype(complex)),
        sparse.csr_array((2, 0)),
        sparse.coo_array(np.array([1.0, 0.0])),
    ):
        with pytest.raises(ValueError, match=r"^bad_features: "):
            m.learn_many(rows, [1] * rows.shape[0])


def test_entries_that_stand_twice_are_summed_and_the_matrix_is_left_as_it_was() -> None:
    twice = sparse.csr_matrix(([1.0, 2.0, 5.0], [2, 2, 0], [0, 3]), shape=(1, 3))
    m, expected = Learner("arow"), Learner("arow")

    m.learn(twice, 1)
    expected.learn([5.0, 0.0, 3.0], 1)

    assert m.digest() == expected.digest()
    assert (twice.indices.tolist(), twice.data.tolist()) == ([2, 2, 0], [1.0, 2.0, 5.0])


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.bool_, np.float32, np.longdouble])
def test_numbers_of_every_type_are_doubles(dtype: Any) -> None:
    m, expected = Learner("arow"), Learner("arow")

    m.learn(sparse.csr_array(np.array([[0, 1, 1]]).astype(dtype)), 1)
    expected.learn([0.0, 1.0, 1.0], 1)

    assert m.digest() == expected.digest()


def test_a_sparse_row_with_a_number_that_is_not_finite_is_skipped_as_the_array_is() -> None:
    rows = [[1.0, 2.0, 0.0], [1.0, math.nan, 0.0]]
    m, expected = Learner("arow"), Learner("arow")

    reports = m.learn_many(sparse.csr_array(rows), [1, 0])

    assert reports == expected.learn_many(rows, [1, 0])
    assert reports[1].skip_reason == "non_finite"
    assert m.digest() == expected.digest()


def test_a_wide_matrix_is_never_made_dense() -> None:
    rng = np.random.default_rng(0)
    wide = sparse.random_array((300, 100_000), density=1e-4, format="csr", rng=rng)
    widest = sparse.random_array((300, 1_000_000), density=1e-5, format="csr", rng=rng)  # more names than names_max
    m, other = Learner("pa1"), Learner("pa1")
    tracemalloc.start()

    m.learn_many(wide, [1, 0] * 150)
    other.learn_many(widest, [1, 0] * 150)

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(m.weights()) == 100_000
    assert len(other.weights()) == np.unique(widest.indices).size
    assert peak < 100e6  # dense: 300 x 100,000 x 8 bytes = 240 MB
    assert m.predict(wide[[7]]).label is not None


def test_a_scaled_matrix_is_made_dense_a_few_rows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, labels = some_rows(40, 30), some_labels("binary", 40)
    m, expected = Learner("arow", scale="standard"), Learner("arow", scale="standard")
    sizes: list[int] = []
    learn = m._model.predict_then_update

    def counted(examples: Any, **options: Any) -> Any:
        sizes.append(len(examples))
        return learn(examples, **options)

    monkeypatch.setattr("olstream.api._NUMBERS_MAX", 100)
    monkeypatch.setattr(m._model, "predict_then_update", counted)

    reports = m.learn_many(sparse.csr_array(rows), labels)

    assert reports == expected.learn_many(rows, labels)
    assert m.digest() == expected.digest()
    assert max(sizes) == 3


@pytest.mark.parametrize(("rows", "labels", "weights", "said"), [
    (None, [1], None, "bad_features: many rows are a list of mappings or arrays, .* not NoneType"),
    ({"x": 1}, [1], None, "bad_features: many rows are a list of mappings or arrays, .* not dict"),
    ([{}], None, None, "bad_label: many rows take a list with a label each, not NoneType"),
    ([{}], 1, None, "bad_label: many rows take a list with a label each, not int"),
    ([{}, {}], "ab", None, "bad_label: many rows take a list with a label each, not str"),
    ([{}], [1], 2.0, "bad_weight: many rows take a list with a weight each, not float"),
    ([{}, {"x": []}], [1, 0], None, r"bad_features: feature 'x' is list, .* \(row 1\)"),
    ([{}, {}], [1, b"a"], None, r"bad_label: .* not bytes \(row 1\)"),
])  # fmt: skip
def test_many_rows_that_are_none_say_so(rows: Any, labels: Any, weights: Any, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{said}$"):
        Learner("pa1").learn_many(rows, labels, weights)


@pytest.mark.parametrize(("algorithm", "given", "plain"), [
    ("arow", {"params": {"r": np.float32(2)}}, {"params": {"r": 2.0}}),
    ("arow", {"params": {"r": np.array(2.0), "covariance": np.str_("full")}},
     {"params": {"r": 2.0, "covariance": "full"}}),
    ("perceptron", {"params": {"averaged": np.True_}, "bias": np.False_},
     {"params": {"averaged": True}, "bias": False}),
    ("arow", {"class_weights": {np.int64(1): np.float32(2)}}, {"class_weights": {1: 2.0}}),
    ("arow", {"features": {"category": ("x",)}}, {"features": {"category": ["x"]}}),
    ("pa", {"task": "multiclass", "classes": np.arange(2),
            "params": {"constraint": "prediction", "cost": np.array([[0.0, 2.0], [3.0, 0.0]])}},
     {"task": "multiclass", "classes": [0, 1], "params": {"constraint": "prediction", "cost": [[0, 2], [3, 0]]}}),
])  # fmt: skip
def test_settings_that_numpy_made_are_plain_ones_and_are_saved(
    algorithm: str, given: dict[str, Any], plain: dict[str, Any], tmp_path: Path
) -> None:
    m, expected = Learner(algorithm, **given), Learner(algorithm, **plain)

    for each in (m, expected):
        each.learn_many([{"x": 1}, {"x": 2}, {"x": -1}], [1, 0, 0])
    m.save(tmp_path / "m")

    assert m.digest() == expected.digest() == Learner.load(tmp_path / "m").digest()
