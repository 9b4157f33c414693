"""Several classes as binary learners side by side: each against the rest, from the row on in which it appears."""

from __future__ import annotations

from typing import Any

import pytest

from olstream import Learner
from tests.learners.beliefs import labels_for, sparse_rows
from tests.learners.kinds import EVERY, SEVERAL, Kind

REST = [kind for kind in EVERY if kind.multiclass == "one_vs_rest"]
several_kind = pytest.mark.parametrize("kind", SEVERAL, ids=map(str, SEVERAL))
rest_kind = pytest.mark.parametrize("kind", REST, ids=map(str, REST))
LATE = ["a", "a", "b", "a", "b", *"abcabcbca", *"abcd" * 6]  # c and d come late


def binary(kind: Kind) -> Learner:
    return Kind(kind.name, "binary", kind.params).learner(bias=False, classes=["rest", "it"])


@rest_kind
def test_one_vs_rest_is_a_binary_learner_for_each_class_without_a_replay_for_late_ones(kind: Kind) -> None:
    m, alone = kind.learner(bias=False), dict[str, Learner]()

    for x, label in zip(sparse_rows(len(LATE), 4, 0), LATE, strict=True):
        m.learn(x, label)
        if label not in alone:
            alone[label] = binary(kind)
        for k, one in alone.items():
            if len(alone) > 1:  # one class has nobody to be told from
                one.learn(x, "it" if k == label else "rest")

        for k, one in alone.items():
            assert list(m.weights()[k].values()) == list(one.weights().values() or [0.0] * 4)
            if m.variances() is not None and one.variances():
                assert m.variances()[k] == one.variances()
    found = dict(m.predict(x).scores or {})
    assert found == {k: one.predict(x).score for k, one in alone.items()}
    assert m.predict(x).label == max(found, key=lambda k: found[k])


@several_kind
def test_a_single_class_is_registered_and_nothing_is_learnt(kind: Kind) -> None:
    m = kind.learner()

    for _ in range(3):
        report = m.learn({"x": 1.0}, "a")

        assert (report.loss, report.margin, report.updated, report.step) == (0.0, None, False, 0.0)
    assert m.classes == ["a"]
    assert m.weights()["a"] == {"x": 0.0}
    assert m.bias() == {"a": 0.0}
    assert m.variances() is None or m.variances()["a"] == {"x": 1.0}


@several_kind
def test_a_class_that_comes_late_starts_from_nothing(kind: Kind) -> None:
    m = kind.learner(bias=False)
    m.learn_many(sparse_rows(30, 4, 1), ["a", "b"] * 15)
    known = dict(m.weights())

    late = m.learn([0.0, 0.0, 0.0, 0.0], "late")

    assert set(m.weights()) == {*known, "late"}
    assert list(m.weights()["late"].values()) == [0.0] * 4
    if not kind.shrinks and not kind.params.get("averaged"):
        assert {k: m.weights()[k] for k in known} == known
    assert (late.margin, late.skip_reason) == (0.0, "zero_norm")
    if m.variances() is not None and kind.params.get("covariance") != "shared":
        assert set(m.variances()["late"].values()) == {1.0}


@several_kind
def test_equal_scores_go_to_the_class_that_was_seen_first(kind: Kind) -> None:
    m = kind.learner(bias=False)
    for label in ("b", "a", "c"):
        m.learn({}, label)

    assert m.predict({"x": 1.0}).label == "b"


@several_kind
def test_the_margin_is_to_the_best_wrong_class_that_is_known(kind: Kind) -> None:
    m = kind.learner(bias=False)
    labels: Any = [f"class {k}" for k in labels_for("multiclass", 60, 2)]

    for x, label in zip(sparse_rows(60, 4, 2), labels, strict=True):
        scores = dict(m.predict(x).scores or {})
        report = m.learn(x, label)

        wrong = [score for k, score in scores.items() if k != label]
        if report.margin is not None:
            assert report.margin == pytest.approx(scores.get(label, 0.0) - max(wrong), abs=1e-12)
            assert report.score == max(scores.values())
        else:
            assert wrong == []


@rest_kind
def test_one_vs_rest_is_not_what_is_learnt_direct(kind: Kind) -> None:
    if kind.name in ("ogd", "pegasos"):
        pytest.skip("it has no direct form")
    rest, direct = kind.learner(bias=False), kind._replace(multiclass="direct").learner(bias=False)

    for m in (rest, direct):
        m.learn_many(sparse_rows(12, 4, 3), list("abcabcabcabc"))

    assert rest.weights() != direct.weights()


def test_a_row_that_some_of_the_binary_learners_skip_is_learnt_by_the_others() -> None:
    m = Learner("arow", "multiclass", multiclass="one_vs_rest", bias=False)
    for label in ("a", "b"):
        m.learn({"x": 1e150}, label)  # both are certain of x now
    before = dict(m.weights())

    report = m.learn({"x": 1e-10}, "c")

    assert (report.updated, report.skip_reason) == (True, None)
    assert m.weights()["c"] == {"x": pytest.approx(1e-10)}
    assert {k: m.weights()[k] for k in "ab"} == before
    assert m.learn({"x": 1e-160}, "c").skip_reason == "zero_norm"
