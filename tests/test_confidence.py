"""How sure a learner is of the class that it predicts."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from olstream import Learner
from olstream.confidence import decide_multiclass, probabilities, side_probability

SCORES = (-1e308, -1e9, -40.0, -3.0, -1.0, -1e-9, 0.0, 1e-9, 0.5, 2.0, 40.0, 1e9, 1e308)
VARIANCES = (0.0, 1e-300, 0.1, 1.0, 50.0, 1e150, 1.7e308, math.nan)  # nan: a learner without


@pytest.mark.parametrize("v", VARIANCES)
def test_both_sides_of_a_score_are_probabilities_that_sum_to_one(v: float) -> None:
    for f in SCORES:
        p, q = side_probability(f, v), side_probability(-f, v)

        assert 0.0 <= p <= 1.0
        assert p + q == pytest.approx(1.0, abs=1e-15)
        assert (p - 0.5) * f >= 0.0
    assert side_probability(0.0, v) == 0.5


def test_it_is_the_normal_distribution_moderated_by_the_variance() -> None:
    for f in (-3.0, -0.2, 0.0, 1.0, 2.5):
        for v in (0.0, 0.3, 4.0):
            assert side_probability(f, v) == pytest.approx(NormalDist().cdf(f / math.sqrt(1.0 + v)), abs=1e-15)


def test_the_tails_are_0_and_1_and_never_nan() -> None:
    assert 0.0 <= side_probability(-40.0, 0.0) < 1e-300
    assert side_probability(40.0, 0.0) == 1.0
    assert 0.0 < side_probability(-37.0, 0.0) < 1e-290  # not lost in 1 - 1
    assert side_probability(-1000.0, math.nan) == 0.0
    assert side_probability(1000.0, math.nan) == 1.0


def test_the_more_variance_the_nearer_to_a_half() -> None:
    for f in (-2.0, 0.5, 3.0):
        doubts = [abs(side_probability(f, v) - 0.5) for v in (0.0, 0.1, 1.0, 10.0, 1e3, 1e12)]

        assert doubts == sorted(doubts, reverse=True)
        assert len(set(doubts)) == len(doubts)
    assert side_probability(1.0, 1e300) == pytest.approx(0.5)


@pytest.mark.parametrize("name", ["arow", "pa1"])
def test_a_learner_tells_the_probability_of_the_class_that_it_predicts(name: str) -> None:
    m = Learner(name, classes=["no", "yes"], bias=False, weights={"x": 0.7})

    positive, negative = m.predict({"x": 2.0}), m.predict({"x": -2.0})

    expected = NormalDist().cdf(1.4 / math.sqrt(1.0 + 4.0)) if name == "arow" else 1.0 / (1.0 + math.exp(-1.4))
    assert (positive.label, negative.label) == ("yes", "no")
    assert positive.probability == negative.probability == pytest.approx(expected)
    assert m.predict({}).probability == 0.5


def of_rows(scores: list[float], spreads: list[float] | None) -> tuple[Any, float]:
    """The probabilities of all classes, and that of the winner as a batch gets it."""
    one = np.array([scores])
    doubt = np.zeros((0, 0)) if spreads is None else np.array([spreads])
    told = np.zeros(1)
    decide_multiclass(one, doubt, np.array([len(scores)]), np.array([int(np.argmax(one))]), told)
    return probabilities(one, doubt, 0, len(scores)), float(told[0])


@pytest.mark.parametrize("spreads", [None, [0.0, 0.0, 0.0], [1.0, 0.2, 7.0], [1.7e308, 1e-300, 1.0]])
@pytest.mark.parametrize("scores", [[0.0, 0.0, 0.0], [1.0, -1.0, 0.3], [1000.0, -1000.0, 999.0],
                                    [1.7e308, -1.7e308, 0.0], [-1.7e308, -1.7e308, -1.7e308]])  # fmt: skip
def test_of_several_classes_they_sum_to_one_whatever_the_scores(
    scores: list[float], spreads: list[float] | None
) -> None:
    p, of_winner = of_rows(scores, spreads)

    assert np.all((p >= 0.0) & (p <= 1.0))
    assert p.sum() == pytest.approx(1.0, abs=1e-12)
    assert of_winner == pytest.approx(p[np.argmax(scores)])


def test_equal_scores_share_alike_and_a_variance_draws_a_score_to_zero() -> None:
    same, _ = of_rows([2.0, 2.0], [0.5, 0.5])
    plain, _ = of_rows([2.0, 0.0], None)
    moderated, _ = of_rows([2.0, 0.0], [3.0, 9.0])
    unsure, _ = of_rows([2.0, 0.0], [1e12, 1.0])

    drawn = 2.0 / math.sqrt(1.0 + math.pi * 3.0 / 8.0)
    assert same.tolist() == [0.5, 0.5]
    assert plain[0] == pytest.approx(1.0 / (1.0 + math.exp(-2.0)))
    assert moderated[0] == pytest.approx(1.0 / (1.0 + math.exp(-drawn)))
    assert unsure[0] == pytest.approx(0.5, abs=1e-5)


def test_a_class_is_told_with_the_variance_of_its_own_score() -> None:
    start = {"a": {"x": 1.0}, "b": {"x": 0.0}}
    m = Learner("arow", "multiclass", bias=False, weights=start)

    told = [m.predict({"x": size}).probability for size in (1.0, 4.0)]

    drawn = [size / math.sqrt(1.0 + math.pi * size * size / 8.0) for size in (1.0, 4.0)]
    assert told == pytest.approx([1.0 / (1.0 + math.exp(-z)) for z in drawn])


def test_the_only_class_that_is_known_is_certain_and_no_class_is_nothing() -> None:
    for task in ("binary", "multiclass"):
        m = Learner("arow", task)

        assert m.predict({"x": 1.0}).probability is None
        m.learn({"x": 1.0}, 1)

        assert m.predict({"x": -5.0}).probability == 1.0
