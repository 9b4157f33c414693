"""The windowed SVM: between solutions nothing changes, and each is the optimum over the last labelled rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from olstream import Learner, svm
from tests.references import coordinate_descent


def learner(task: str = "binary", **params: float) -> Learner:
    given = {"window": 40, "every": 10, "tol": 1e-9} | params
    return Learner("alm_svm", task=task, params=given, bias=False)  # type: ignore[arg-type]


def noise(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (X @ [1.0, -2.0, 0.5, 0.0] + rng.normal(size=n) > 0).astype(int)


def test_it_is_the_optimum_over_the_last_rows() -> None:
    X, y = noise(100)
    m = learner(C=0.7)

    m.learn_many(X, y)

    w = np.array(list(m.weights().values()))
    kept, signs = X[60:], 2.0 * y[60:] - 1.0
    found = 0.5 * w @ w + 0.7 * np.maximum(0.0, 1.0 - signs * (kept @ w)).sum()
    least, _ = coordinate_descent.svc(kept, signs, np.full(40, 0.7), 2000)
    assert found == pytest.approx(least, rel=1e-6)


def test_a_regression_is_the_optimum_over_the_last_rows() -> None:
    X, _ = noise(100)
    y = X @ [1.0, -2.0, 0.5, 0.0] + np.random.default_rng(1).normal(size=100)
    m = learner("regression", C=0.7, eps=0.2)

    m.learn_many(X, y)

    w = np.array(list(m.weights().values()))
    found = 0.5 * w @ w + 0.7 * np.maximum(0.0, np.abs(X[60:] @ w - y[60:]) - 0.2).sum()
    least, _ = coordinate_descent.svr(X[60:], y[60:], np.full(40, 0.7), 0.2, 2000)
    assert found == pytest.approx(least, rel=1e-6)


def test_each_of_several_classes_is_learnt_against_the_rest() -> None:
    X, _ = noise(40)
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]
    m = learner("multiclass")

    m.learn_many(X, y)

    for label in "abc":
        alone = svm(X, np.where(y == label, 1.0, -1.0), tol=1e-9)
        assert list(m.weights()[label].values()) == pytest.approx(alone.w.tolist(), abs=1e-5)


def test_it_is_solved_after_1_2_4_8_rows_and_then_each_time_that_so_many_came() -> None:
    X, y = noise(45)

    reports = learner().learn_many(X, y)

    assert [i + 1 for i, report in enumerate(reports) if report.updated] == [1, 2, 4, 8, 10, 20, 30, 40]
    assert all(report.step == 0.0 for report in reports if not report.updated)


def test_rows_that_count_for_more_weigh_more() -> None:
    X, y = noise(40)
    twice = np.array([2.0, 1.0] * 20)
    m = learner()

    m.learn_many(X, y, twice)

    alone = svm(X, 2.0 * y - 1.0, weight=twice, tol=1e-9)
    assert list(m.weights().values()) == pytest.approx(alone.w.tolist(), abs=1e-5)


def test_rows_without_a_label_or_a_weight_take_no_place_in_the_window() -> None:
    X, y = noise(40)
    m, other = learner(), learner()

    for x, label in zip(X, y, strict=True):
        m.learn(x, label)
        other.learn(x, label)
        other.learn(7.0 * x, None)
        other.learn(7.0 * x, label, weight=0.0)

    assert other.weights() == m.weights()


def test_a_row_that_no_double_can_weigh_against_the_others_is_let_go() -> None:
    X, y = noise(40)
    m, other = learner(every=1), learner(every=1)
    m.learn_many(X, y)
    other.learn_many(X, y)

    report = other.learn(1e150 * X[0], 1 - int(y[0]))

    assert (report.skip_reason, report.updated) == ("overflow", False)
    assert other.weights() == m.weights()
    assert other.learn(X[1], y[1]) == m.learn(X[1], y[1])


def test_what_is_saved_between_two_solutions_goes_on_to_the_same_bit(tmp_path: Path) -> None:
    X, y = noise(95)
    straight, first = learner(), learner()
    straight.learn_many(X, y)
    first.learn_many(X[:57], y[:57])

    first.save(tmp_path / "saved")
    second = Learner.load(tmp_path / "saved")
    second.learn_many(X[57:], y[57:])

    assert second.digest() == straight.digest()


def test_the_order_in_which_names_came_leaves_no_trace_in_the_digest() -> None:
    rows = [{"a": 1.0, "b": 2.0}, {"b": -1.0, "c": 1.0}]
    one, other = learner(), learner()
    one._model.vocabulary.column_of("c")
    for name in "cba":
        other._model.vocabulary.column_of(name)
    for name in "ab":
        one._model.vocabulary.column_of(name)

    for m in (one, other):
        m.learn(rows[0], 1)

    assert one.digest() == other.digest()
