"""For every learner: two ways to say the same thing teach the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from olstream import Learner
from tests.learners.beliefs import labels_for, sparse_rows
from tests.learners.kinds import EVERY, Kind, every_kind

N, D = 40, 4
TWO_SIDED = [kind for kind in EVERY if kind.task == "binary"]
# Where an importance weight h goes: C h, r / h, or on the gradient. PA and CW fit an example whatever it is worth
MULTIPLIED = {"pa1": "C", "pa2": "C", "scw1": "C", "scw2": "C", "nherd": "C", "arow": "r"}
PRICED = [kind for kind in EVERY if kind.name in MULTIPLIED]
HARD = [kind for kind in EVERY if kind.name in ("pa", "cw")]
GRADIENT = [kind for kind in EVERY if (kind.is_descent or kind.name == "perceptron") and not kind.params.get("project")]


def stream(kind: Kind) -> tuple[Any, Any]:
    return sparse_rows(N, D, 0), labels_for(kind.task, N, 0)


def named(X: Any, names: str = "abcd") -> list[dict[str, float]]:
    return [{name: float(x) for name, x in zip(names, row, strict=True) if x} for row in X]


def flat(exported: Any) -> dict[str, float]:
    """Exported numbers by class and feature, whatever the task."""
    if exported is None:
        return {}
    nested = {k: v if isinstance(v, dict) else {"": v} for k, v in exported.items()}
    return {f"{k} {feature}": number for k, vector in nested.items() for feature, number in vector.items()}


def same(one: Learner, other: Learner) -> bool:
    assert flat(one.weights()) == pytest.approx(flat(other.weights()), rel=1e-9, abs=1e-12)
    assert flat(one.variances()) == pytest.approx(flat(other.variances()), rel=1e-9)
    return True


@every_kind
def test_the_bias_is_a_feature_like_any_other_that_is_always_1(kind: Kind) -> None:
    X, y = stream(kind)
    bias, constant = kind.learner(bias=True), kind.learner(bias=False)

    bias.learn_many(named(X), y)
    constant.learn_many([{**row, "one": 1.0} for row in named(X)], y)

    weights, variances = flat(constant.weights()), flat(constant.variances())
    several = kind.task == "multiclass"
    for k in bias.classes if several else [""]:
        name = f"{k} one" if several else "one "
        assert (bias.bias()[k] if several else bias.bias()) == pytest.approx(weights[name], rel=1e-9, abs=1e-12)
        if variances:
            variance = bias.bias_variance()[k] if several else bias.bias_variance()
            assert variance == pytest.approx(variances[name], rel=1e-9)
    assert flat(bias.weights()) == pytest.approx(
        {k: w for k, w in weights.items() if not k.strip().endswith("one")}, rel=1e-9, abs=1e-12
    )


@every_kind
def test_what_features_are_called_does_not_matter(kind: Kind) -> None:
    X, y = stream(kind)
    straight, renamed = kind.learner(), kind.learner()

    straight.learn_many(named(X), y)
    renamed.learn_many(named(X, "dcba"), y)

    other = {k[:-1] + "abcd"["dcba".index(k[-1])]: w for k, w in flat_by_end(renamed.weights()).items()}
    assert other == pytest.approx(flat_by_end(straight.weights()), rel=1e-9, abs=1e-12)


def flat_by_end(exported: Any) -> dict[str, float]:
    return {k.strip(): w for k, w in flat(exported).items()}


@pytest.mark.parametrize("kind", TWO_SIDED, ids=map(str, TWO_SIDED))
def test_the_other_class_of_the_opposite_row_is_the_same_lesson(kind: Kind) -> None:
    X, y = stream(kind)
    straight, flipped = (kind.learner(bias=False, classes=[-1, 1]) for _ in range(2))

    reports = straight.learn_many(X, y)
    opposite = flipped.learn_many(-X, -y)

    assert flipped.weights() == straight.weights()
    assert flipped.variances() == straight.variances()
    assert [report.margin for report in opposite] == [report.margin for report in reports]


@pytest.mark.parametrize("kind", PRICED, ids=map(str, PRICED))
@pytest.mark.parametrize("h", [0.25, 3.0])
def test_importance_multiplies_what_an_example_may_cost(kind: Kind, h: float) -> None:
    X, y = stream(kind)
    name = MULTIPLIED[kind.name]
    weighted = kind.learner({name: 0.5})
    priced = kind.learner({name: 0.5 / h if name == "r" else 0.5 * h})

    weighted.learn_many(X, y, [h] * N)
    priced.learn_many(X, y)

    assert same(weighted, priced)


@pytest.mark.parametrize("kind", HARD, ids=map(str, HARD))
def test_where_an_example_has_to_be_right_its_importance_does_not_matter(kind: Kind) -> None:
    X, y = stream(kind)
    plain, weighted = kind.learner(), kind.learner()

    plain.learn_many(X, y)
    weighted.learn_many(X, y, np.random.default_rng(1).uniform(0.01, 9.0, N))

    assert weighted.weights() == plain.weights()
    assert weighted.variances() == plain.variances()


@pytest.mark.parametrize("kind", GRADIENT, ids=map(str, GRADIENT))
def test_importance_multiplies_the_gradient(kind: Kind) -> None:
    """Of the loss: the first step from weights of 0, of which nothing can shrink."""
    first, second = (2.0, 2.0) if kind.task == "regression" else ("b", "a")
    plain, weighted = kind.learner(bias=False), kind.learner(bias=False)
    for m, h in ((plain, 1.0), (weighted, 0.5)):
        if kind.task == "multiclass":
            m.learn({}, first)
        m.learn({"x": 0.01, "y": -0.02}, second, weight=h)

    assert flat(weighted.weights()) == pytest.approx({k: 0.5 * w for k, w in flat(plain.weights()).items()})
    assert any(flat(plain.weights()).values())


@every_kind
def test_weights_and_bias_give_the_same_scores_again(kind: Kind) -> None:
    X, y = stream(kind)
    m = kind.learner()
    m.learn_many(X, y)

    again = kind.learner(weights={"weights": m.weights(), "bias": m.bias()})

    for x in X[:5]:
        assert again.predict(x).score == pytest.approx(m.predict(x).score, rel=1e-12, abs=1e-15)
    assert again.weights() == m.weights()
    assert again.bias() == m.bias()


@every_kind
def test_variances_are_told_by_feature_and_are_the_diagonal_of_a_full_covariance(kind: Kind) -> None:
    X, y = stream(kind)
    m = kind.learner()
    m.learn_many(named(X), y)

    covariance, variances = m.covariance(), m.variances()

    assert (variances is None) == (m.bias_variance() is None) == (not kind.is_second_order)
    full = kind.params.get("covariance", "diagonal") != "diagonal"
    assert (covariance is None) == (not full)
    if full:
        several = kind.task == "multiclass"
        of_each = covariance if several and kind.params["covariance"] == "full" else {"0": covariance}
        for k, (features, matrix) in of_each.items():
            assert sorted(features) == list("abcd")
            told = variances[k] if several else variances
            assert dict(zip(features, np.diag(matrix), strict=True)) == pytest.approx(told)
            assert np.array_equal(matrix, matrix.T)
