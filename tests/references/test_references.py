"""The references of the first order solve the optimisation problems of their papers, or take their gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from tests.references.descent import GradientDescent, Logistic, LossName, Pegasos, Schedule, Softmax, loss_of
from tests.references.first_order import (
    Kind,
    MulticlassPerceptron,
    PassiveAggressive,
    PassiveAggressiveAll,
    PassiveAggressivePrediction,
    PassiveAggressiveRegression,
    PassiveAggressiveSingle,
    Perceptron,
)
from tests.references.lesson import Matrix, Vector

KINDS: tuple[Kind, ...] = ("pa", "pa1", "pa2")
SEEDS = range(6)
every_kind = pytest.mark.parametrize("kind", KINDS)
every_seed = pytest.mark.parametrize("seed", SEEDS)

# g(w, xi) >= 0 for each of them
Constraint = Callable[[Vector, float], Any]


def nearest(w: Vector, kind: Kind, C: float, *constraints: Constraint) -> Vector:
    """What the PA problem asks for, by a general solver: 1/2 ||u - w||^2 and, but for PA, the slack's cost."""
    power = {"pa": 0, "pa1": 1, "pa2": 2}[kind]

    def objective(z: Vector) -> float:
        change = z[:-1] - w.ravel()
        return float(0.5 * change @ change + (C * z[-1] ** power if power else 0.0))

    def slack(z: Vector) -> float:
        return float(z[-1]) if power else 0.0

    bounds = [{"type": "ineq", "fun": lambda z, g=g: g(z[:-1].reshape(w.shape), slack(z))} for g in constraints]
    bounds += [{"type": "ineq", "fun": lambda z: z[-1]}] if power == 1 else []
    found = minimize(objective, np.append(w.ravel(), 1.0), constraints=bounds, tol=1e-12, options={"maxiter": 500})
    return np.asarray(found.x[:-1].reshape(w.shape), np.float64)


@every_kind
@every_seed
def test_pa_is_the_nearest_vector_that_does_justice_to_the_example(kind: Kind, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y, C, h = rng.normal(size=4), float(rng.choice([-1, 1])), rng.uniform(0.02, 0.5), rng.uniform(0.5, 2)
    slow = PassiveAggressive(4, kind, C)
    slow.w = rng.normal(size=4) * 0.3

    expected = nearest(slow.w, kind, C * h, lambda u, xi: y * u @ x - 1.0 + xi)
    slow.learn(x, y, h)

    assert slow.w == pytest.approx(expected, abs=1e-5)


@every_kind
@every_seed
def test_pa_regression_is_the_nearest_vector_within_the_tube(kind: Kind, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y, C, eps = rng.normal(size=3), 3.0 * rng.normal(), rng.uniform(0.02, 0.5), 0.2
    slow = PassiveAggressiveRegression(3, kind, C, eps)
    slow.w = rng.normal(size=3) * 0.3

    expected = nearest(slow.w, kind, C, lambda u, xi: eps + xi - (u @ x - y), lambda u, xi: eps + xi + (u @ x - y))
    slow.learn(x, y)

    assert slow.w == pytest.approx(expected, abs=1e-5)


@every_kind
@every_seed
def test_pa_single_is_the_nearest_matrix_that_puts_the_best_wrong_class_in_its_place(kind: Kind, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, k, C = rng.normal(size=3), int(rng.integers(4)), rng.uniform(0.02, 0.5)
    slow = PassiveAggressiveSingle(3, kind, C)
    slow.W = rng.normal(size=(4, 3)) * 0.3
    r = slow.rival(x, k)

    expected = nearest(slow.W, kind, C, lambda U, xi: (U[k] - U[r]) @ x - 1.0 + xi)
    slow.learn(x, k)

    assert expected == pytest.approx(slow.W, abs=1e-5)


@every_kind
@every_seed
def test_pa_all_is_the_nearest_matrix_that_puts_every_wrong_class_in_its_place(kind: Kind, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, k, C, h = rng.normal(size=3), int(rng.integers(4)), rng.uniform(0.02, 0.5), rng.uniform(0.5, 2)
    slow = PassiveAggressiveAll(3, kind, C)
    slow.W = rng.normal(size=(4, 3)) * 0.3
    against: list[Constraint] = [
        lambda U, xi, r=r: (U[k] - U[r]) @ x - 1.0 + xi  # type: ignore[misc]
        for r in range(4)
        if r != k
    ]

    expected = nearest(slow.W, kind, C * h, *against)
    told = slow.learn(x, k, h)

    assert expected == pytest.approx(slow.W, abs=1e-5)
    if kind == "pa":
        assert told["loss_after"] == pytest.approx(0.0, abs=1e-12)


@every_kind
def test_with_two_classes_all_is_single(kind: Kind) -> None:
    rng = np.random.default_rng(0)
    every, single = PassiveAggressiveAll(3, kind, 0.3), PassiveAggressiveSingle(3, kind, 0.3)

    for _ in range(30):
        x, k = rng.normal(size=3), min(int(rng.integers(2)), len(single.W))
        assert every.learn(x, k) == pytest.approx(single.learn(x, k), abs=1e-12)


@every_kind
@every_seed
def test_pa_prediction_asks_of_the_predicted_class_what_its_cost_is(kind: Kind, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, C = rng.normal(size=3), rng.uniform(0.02, 0.5)
    costs = rng.uniform(0.5, 3.0, (4, 4))
    slow = PassiveAggressivePrediction(3, kind, C, lambda k, q: float(costs[k, q]))
    slow.W = rng.normal(size=(4, 3)) * 0.3
    p = int(np.argmax(slow.W @ x))
    k = (p + 1) % 4

    expected = nearest(slow.W, kind, C, lambda U, xi: (U[k] - U[p]) @ x - math.sqrt(costs[k, p]) + xi)
    slow.learn(x, k)

    assert expected == pytest.approx(slow.W, abs=1e-5)


def test_pa_prediction_learns_nothing_from_what_was_predicted_right_however_narrowly() -> None:
    slow = PassiveAggressivePrediction(1, "pa")
    slow.W = np.array([[0.1], [0.0]])

    told = slow.learn(np.ones(1), 0)

    assert (told["margin"], told["loss"], told["updated"]) == (0.1, 0.0, False)


def test_max_loss_goes_against_the_class_that_would_cost_most() -> None:
    costs = np.array([[0.0, 1.0, 9.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    slow = PassiveAggressivePrediction(1, "pa", 1.0, lambda k, q: float(costs[k, q]), max_loss=True)
    slow.W = np.array([[1.0], [0.5], [-0.5]])

    told = slow.learn(np.ones(1), 0)

    assert told["loss"] == pytest.approx(1.5)
    assert slow.W.ravel() == pytest.approx([1.75, 0.5, -1.25])


def test_a_perceptron_adds_up_its_mistakes_and_averages_over_all_rounds() -> None:
    slow = Perceptron(2)

    told = [slow.learn(np.array(x), y) for x, y in (([1.0, 0.0], 1.0), ([2.0, 0.0], 1.0), ([1.0, 1.0], -1.0))]

    assert [(report["updated"], report["margin"]) for report in told] == [(True, 0.0), (False, 2.0), (True, -1.0)]
    assert slow.w.tolist() == [0.0, -1.0]
    assert slow.average() == pytest.approx([2 / 3, -1 / 3])


@pytest.mark.parametrize(("constraint", "shares"), [("max", [0, 1, 0]), ("uniform", [1 / 3, 1 / 3, 1 / 3]),
                                                    ("proportional", [1 / 4, 3 / 4, 0])])  # fmt: skip
def test_the_classes_in_error_share_one_step(constraint: Any, shares: list[float]) -> None:
    slow = MulticlassPerceptron(1, constraint)
    slow.W = np.array([[2.0], [4.0], [1.0], [1.0], [0.0]])

    slow.learn(np.ones(1), 3)

    assert slow.W.ravel() == pytest.approx([2 - shares[0], 4 - shares[1], 1 - shares[2], 2.0, 0.0])


def test_a_fresh_multiclass_perceptron_learns_from_a_tie() -> None:
    slow = MulticlassPerceptron(1, "proportional")

    told = [slow.learn(np.ones(1), k) for k in (0, 1)]

    assert [report["updated"] for report in told] == [False, True]
    assert slow.W.ravel().tolist() == [-1.0, 1.0]
    assert slow.average().ravel().tolist() == [-0.5, 0.5]


REGRESSIONS: tuple[LossName, ...] = ("squared", "eps_insensitive", "squared_eps_insensitive")
LOSSES: tuple[LossName, ...] = ("hinge", "perceptron", "logistic", *REGRESSIONS)


def gradient(objective: Callable[[Matrix], float], at: Matrix) -> Matrix:
    """By central differences."""
    found = np.zeros_like(at)
    for i in np.ndindex(at.shape):
        shift = np.zeros_like(at)
        shift[i] = 1e-5
        found[i] = (objective(at + shift) - objective(at - shift)) / 2e-5
    return found


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("schedule", "rate"), [("constant", 0.3), ("sqrt", 0.15), ("power", 0.3 / 4**0.7),
                                                ("l2", 0.3 / (1 + 0.3 * 0.2 * 4))])  # fmt: skip
def test_a_step_goes_down_the_gradient_of_the_loss_and_of_the_regulariser(
    loss: LossName, schedule: Schedule, rate: float
) -> None:
    rng = np.random.default_rng(5)
    for _ in range(10):
        x, y, h = rng.normal(size=3), float(rng.choice([-2.0, 2.0])), rng.uniform(0.2, 2)
        y = y if loss in REGRESSIONS else np.sign(y)
        slow = GradientDescent(3, loss, 0.3, schedule, l2=0.2, p=0.7)
        slow.w, slow.t = rng.normal(size=3), 3
        before = slow.w

        slow.learn(x, y, h)

        down = gradient(lambda w, x=x, y=y, h=h: h * loss_of(loss, w @ x, y) + 0.1 * w @ w, before)  # type: ignore[misc]
        assert slow.w == pytest.approx(before - rate * down, abs=1e-8)


def test_pegasos_is_the_sum_of_its_hits() -> None:
    rng = np.random.default_rng(1)
    X, y, h = rng.normal(size=(50, 3)), rng.choice([-1.0, 1.0], 50), rng.uniform(0.2, 2, 50)
    slow, hits = Pegasos(3, 0.1), np.zeros(3)

    for t in range(50):
        told = slow.learn(X[t], y[t], h[t])
        hits += (told["loss"] > 0) * h[t] * y[t] * X[t]

        assert slow.w == pytest.approx(hits / (0.1 * (t + 1)), abs=1e-12)


def test_pegasos_goes_down_the_gradient_and_projects_onto_the_ball() -> None:
    rng = np.random.default_rng(2)
    free, bound = Pegasos(3, 0.1), Pegasos(3, 0.1, project=True)
    free.w = bound.w = rng.normal(size=3)
    free.t = bound.t = 3
    x, before = 3.0 * rng.normal(size=3), free.w
    y = -float(np.sign(before @ x))

    free.learn(x, y)
    bound.learn(x, y)

    down = gradient(lambda w: float(0.05 * w @ w + (1.0 - y * w @ x)), before)
    assert free.w == pytest.approx(before - down / (0.1 * 4), abs=1e-6)
    assert np.linalg.norm(free.w) > 1 / math.sqrt(0.1)
    nearest = minimize(lambda w: ((w - free.w) ** 2).sum(), before / 10, tol=1e-12,
                       constraints={"type": "ineq", "fun": lambda w: 1 / 0.1 - w @ w})  # fmt: skip
    assert bound.w == pytest.approx(nearest.x, abs=1e-5)


def test_logistic_regression_goes_down_the_log_loss_of_its_probability() -> None:
    slow, x = Logistic(2, 0.1, l2=0.5), np.array([1.0, -2.0])
    slow.w = np.array([0.3, 0.1])
    before, p = slow.w, slow.probability(x)

    slow.learn(x, -1.0)

    assert p == pytest.approx(1 / (1 + math.exp(-0.1)))
    assert slow.w == pytest.approx(before - 0.1 * (p * x + 0.5 * before))


@every_seed
def test_softmax_goes_down_the_gradient_of_the_cross_entropy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    slow, x, k = Softmax(3, 0.1, l2=0.5), rng.normal(size=3), int(rng.integers(4))
    slow.W = rng.normal(size=(4, 3))
    before = slow.W

    slow.learn(x, k, 2.0)

    def objective(W: Matrix) -> float:
        return float(2.0 * -math.log(np.exp(W[k] @ x) / np.exp(W @ x).sum()) + 0.25 * (W**2).sum())

    expected = before - 0.1 * gradient(objective, before)
    assert expected == pytest.approx(slow.W, abs=1e-8)


def test_extreme_scores_overflow_nowhere() -> None:
    logistic, softmax = Logistic(1), Softmax(1)
    logistic.w, softmax.W = np.array([1000.0]), np.array([[1000.0], [-1000.0]])

    losses = [logistic.learn(np.ones(1), -1.0)["loss"], softmax.learn(np.ones(1), 1)["loss"]]

    assert losses == [1000.0, 2000.0]
    assert softmax.probabilities(np.ones(1)).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("make", [lambda: Perceptron(2), lambda: PassiveAggressive(2, "pa2"), lambda: Logistic(2)])
def test_a_zero_vector_and_importance_0_teach_nothing(make: Callable[[], Any]) -> None:
    slow = make()
    slow.learn(np.array([1.0, 2.0]), 1.0)
    before = slow.w

    told = [slow.learn(np.zeros(2), 1.0), slow.learn(np.array([3.0, -2.0]), -1.0, 0.0)]

    assert [(report["step"], report["updated"]) for report in told] == [(0.0, False)] * 2
    assert slow.w.tolist() == before.tolist()
