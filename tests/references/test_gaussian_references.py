"""The Gaussian references solve the optimisation problems of their papers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from tests.references.gaussian import (
    Arow,
    ArowRegression,
    CwStdev,
    CwVariance,
    Gaussian,
    GaussianByClass,
    GaussianShared,
    Nherd,
    Rule,
    Scw1,
    Scw2,
    Shape,
    phi_of,
)
from tests.references.lesson import Matrix, Vector

SEEDS = range(8)
every_seed = pytest.mark.parametrize("seed", SEEDS)
PHI = phi_of(0.9)
RULES = (CwVariance(PHI), CwStdev(PHI), Scw1(PHI, 0.3), Scw2(PHI, 0.3), Arow(0.7), Nherd(0.8))
every_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
SHAPES: tuple[Shape, ...] = ("full", "drop", "project")


Of = Callable[[Matrix, Matrix], float]  # of the means and the covariance


def covariance(rng: np.random.Generator, d: int) -> Matrix:
    A = rng.normal(size=(d, d))
    return np.asarray(A @ A.T / d + 0.3 * np.eye(d))


def unpack(z: Vector, means: int, d: int) -> tuple[Matrix, Matrix]:
    """The means (means, d) and S = L L^T of a vector of unknowns."""
    L = np.zeros((d, d))
    L[np.tril_indices(d)] = z[means * d : means * d + d * (d + 1) // 2]
    return z[: means * d].reshape(means, d), L @ L.T


def closest(
    means: Matrix,
    S: Matrix,
    cost: Callable[[Matrix, Matrix], float],
    lack: Callable[[Matrix, Matrix], float],
    power: int,
) -> tuple[Matrix, Matrix]:
    """By a general solver: the least sum of KL(N(mu, S_new) || N(mu_old, S)) over the means, and `cost`.

    `lack` is what the constraint is short of. power 0: it must be none; 1, 2: the slack's power in 0.3 xi^power.
    """
    k, d = means.shape
    inverse = np.linalg.inv(S)

    def objective(z: Vector) -> float:
        mu, new = unpack(z, k, d)
        change = mu - means
        kl = 0.5 * k * (np.trace(inverse @ new) - np.linalg.slogdet(new)[1]) + 0.5 * np.sum(change @ inverse * change)
        return float(kl + cost(mu, new) + (0.3 * z[-1] ** power if power > 0 else 0.0))

    constraints = []
    if power >= 0:
        constraints += [{"type": "ineq", "fun": lambda z: (z[-1] if power else 0.0) - lack(*unpack(z, k, d))}]
    if power == 1:
        constraints += [{"type": "ineq", "fun": lambda z: z[-1]}]
    start = np.concatenate([means.ravel(), np.linalg.cholesky(S)[np.tril_indices(d)], [1.0]])
    options = {"maxiter": 1000, "ftol": 1e-14}
    return unpack(minimize(objective, start, method="SLSQP", constraints=constraints, options=options).x, k, d)


def as_important(rule: Any, h: float) -> Rule:
    """The rule that does with importance h what `rule` does with importance 1."""
    if isinstance(rule, Scw1 | Scw2):
        return replace(rule, C=rule.C / h)
    return replace(rule, r=rule.r * h) if isinstance(rule, Arow) else rule


def nothing(mu: Matrix, S: Matrix) -> float:
    return 0.0


def problem(rule: Rule, x: Vector, sign: Vector) -> tuple[Of, Of, int]:
    """`cost`, `lack` and `power` of a rule for the margin sign·(means @ x), whose variance is sum(sign^2) x·S x."""

    def m(mu: Matrix) -> float:
        return float(sign @ mu @ x)

    def v(S: Matrix) -> float:
        return float(sign @ sign) * float(x @ S @ x)

    if isinstance(rule, Arow):
        return (lambda mu, S: (max(0.0, 1.0 - m(mu)) ** 2 + v(S)) / (2 * rule.r)), nothing, -1
    if isinstance(rule, CwVariance):
        return nothing, (lambda mu, S: rule.phi * v(S) - m(mu)), 0
    assert isinstance(rule, CwStdev)
    power = {CwStdev: 0, Scw1: 1, Scw2: 2}[type(rule)]
    return nothing, (lambda mu, S: rule.phi * math.sqrt(v(S)) - m(mu)), power


@pytest.mark.parametrize("rule", RULES[:5], ids=lambda rule: type(rule).__name__)
@every_seed
def test_a_step_is_the_closest_gaussian_that_does_justice_to_the_example(rule: Rule, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y, h = rng.normal(size=3), float(rng.choice([-1, 1])), rng.uniform(0.5, 2)
    slow = Gaussian(3, as_important(rule, h))
    slow.mu, slow.S = 0.5 * rng.normal(size=3), covariance(rng, 3)
    before = slow.mu, slow.S

    told = slow.learn(x, y, h)

    if not told["updated"]:
        assert told["loss"] == 0.0
        return
    means, S = closest(before[0][np.newaxis], before[1], *problem(rule, x, np.array([y])))
    assert slow.mu == pytest.approx(means[0], abs=1e-4)
    assert np.max(np.abs(slow.S - S)) < 1e-4


@pytest.mark.parametrize("rule", RULES[1:5], ids=lambda rule: type(rule).__name__)
@every_seed
def test_two_classes_with_one_covariance_are_the_closest_pair_of_gaussians(rule: Rule, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, h = rng.normal(size=2), rng.uniform(0.5, 2)
    slow = GaussianShared(2, as_important(rule, h))
    slow.W, slow.S = 0.5 * rng.normal(size=(2, 2)), covariance(rng, 2)
    means, S = slow.W.copy(), slow.S

    told = slow.learn(x, 0, h)

    if not told["updated"]:
        assert told["loss"] == 0.0
        return
    means, S = closest(means, S, *problem(rule, x, np.array([1.0, -1.0])))
    assert means == pytest.approx(slow.W, abs=1e-4)
    assert np.max(np.abs(slow.S - S)) < 1e-4


@every_rule
@every_seed
def test_a_covariance_for_each_class_is_the_step_on_the_difference_of_blocks_but_for_the_cross_block(
    rule: Rule, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x, k = rng.normal(size=3), int(rng.integers(3))
    slow = GaussianByClass(3, rule)
    for _ in range(3):
        slow.grow()
    slow.W, slow.S = 0.3 * rng.normal(size=(3, 3)), [covariance(rng, 3) for _ in range(3)]
    whole = Gaussian(9, rule)
    whole.mu, whole.S = slow.W.flatten(), np.zeros((9, 9))
    for q in range(3):
        whole.S[3 * q : 3 * q + 3, 3 * q : 3 * q + 3] = slow.S[q]
    sign = np.eye(3)[k] - np.eye(3)[slow.rival(x, k)]

    told, expected = slow.learn(x, k), whole.learn(np.kron(sign, x), 1.0)

    for key in ("margin", "loss", "variance", "step", "updated"):
        assert told[key] == pytest.approx(expected[key], abs=1e-12)
    assert slow.W.ravel() == pytest.approx(whole.mu, abs=1e-12)
    for q in range(3):
        assert slow.S[q] == pytest.approx(whole.S[3 * q : 3 * q + 3, 3 * q : 3 * q + 3], abs=1e-12)


@pytest.mark.parametrize(("learner", "rule"), [(Gaussian, RULES[0]), (Gaussian, RULES[1]), (GaussianShared, RULES[1])])
def test_after_a_confidence_weighted_step_the_constraint_is_met_exactly(learner: Any, rule: Any) -> None:
    rng = np.random.default_rng(3)
    slow, exact = learner(4, rule), 0
    for _ in range(40):
        x = rng.normal(size=4)
        y = float(rng.choice([-1, 1])) if learner is Gaussian else min(int(rng.integers(2)), len(slow.W))
        told = slow.learn(x, y)
        if told["updated"]:
            again = slow.judge(x, y)
            needed = rule.phi * (again["variance"] if isinstance(rule, CwVariance) else math.sqrt(again["variance"]))
            assert again["margin"] == pytest.approx(needed, abs=1e-9)
            assert told["loss_after"] == pytest.approx(0.0, abs=1e-9)
            exact += 1

    assert exact > 10


@every_seed
def test_an_nherd_step_herds_the_gaussian(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y, C, d = rng.normal(size=2), float(rng.choice([-1, 1])), 0.8, 2
    slow = Gaussian(d, Nherd(C))
    slow.mu, slow.S = 0.3 * rng.normal(size=d), covariance(rng, d)
    mu, S, inverse = slow.mu, slow.S, np.linalg.inv(slow.S)

    def mean_cost(u: Vector) -> float:
        return float(0.5 * (u - mu) @ inverse @ (u - mu) + 0.5 * C * max(0.0, 1.0 - y * float(u @ x)) ** 2)

    def herd_cost(z: Vector) -> float:
        A = z.reshape(d, d)
        apart = A - np.eye(d)
        return float(0.5 * np.trace(apart.T @ inverse @ apart @ S) + 0.5 * C * x @ A @ S @ A.T @ x)

    slow.learn(x, y)

    assert slow.mu == pytest.approx(minimize(mean_cost, mu, tol=1e-12).x, abs=1e-5)
    A = minimize(herd_cost, np.eye(d).ravel(), tol=1e-12).x.reshape(d, d)
    updated = y * mu @ x < 1.0
    expected = A @ S @ A.T if updated else S
    assert expected == pytest.approx(slow.S, abs=1e-5)


def test_arow_is_ridge_regression_on_the_rows_that_it_learnt() -> None:
    rng = np.random.default_rng(0)
    r, a, precision, moment = 0.7, 1.5, np.eye(4) / 1.5, np.zeros(4)
    slow = Gaussian(4, Arow(r), a=a)
    for _ in range(60):
        x, y, h = rng.normal(size=4), float(rng.choice([-1, 1])), rng.uniform(0.2, 2)
        if slow.learn(x, y, h)["updated"]:
            precision += h / r * np.outer(x, x)
            moment += h / r * y * x

    assert np.linalg.inv(slow.S) == pytest.approx(precision, abs=1e-8)
    assert slow.mu == pytest.approx(np.linalg.solve(precision, moment), abs=1e-8)


def test_arow_regression_is_ridge_regression_on_all_rows() -> None:
    rng = np.random.default_rng(1)
    X, y, h = rng.normal(size=(50, 3)), rng.normal(size=50), rng.uniform(0.2, 2, 50)
    slow = ArowRegression(3, r=0.5, a=2.0)

    for i in range(50):
        slow.learn(X[i], y[i], h[i])

    precision = np.eye(3) / 2.0 + (X.T * h) @ X / 0.5
    assert np.linalg.inv(slow.S) == pytest.approx(precision, abs=1e-8)
    assert slow.mu == pytest.approx(np.linalg.solve(precision, (X.T * h) @ y / 0.5), abs=1e-8)


def test_arow_regression_with_a_tube_learns_from_what_is_outside_alone() -> None:
    slow = ArowRegression(1, r=1.0, a=1.0, eps=0.5)

    inside, outside = slow.learn(np.ones(1), 0.4), slow.learn(np.ones(1), -2.5)

    assert (inside["updated"], outside["updated"]) == (False, True)
    assert outside["loss_after"] == pytest.approx(outside["loss"] * 1.0 / (1.0 + 1.0))
    assert (slow.mu.tolist(), slow.S.tolist()) == ([-1.0], [[0.5]])


def test_what_is_left_of_the_loss_is_what_the_papers_say() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        x, mu, S = rng.normal(size=3), 0.3 * rng.normal(size=3), covariance(rng, 3)
        for rule in RULES[2:]:
            slow = Gaussian(3, rule)
            slow.mu, slow.S = mu, S
            told = slow.learn(x, 1.0)
            if not told["updated"]:
                continue
            v, step, left = told["variance"], told["step"], told["loss_after"]
            if isinstance(rule, Scw2):
                assert left == pytest.approx(step / (2 * rule.C), abs=1e-9)
            elif isinstance(rule, Scw1):
                assert step <= rule.C and (step == rule.C or left == pytest.approx(0.0, abs=1e-9))
            elif isinstance(rule, Arow):
                assert left == pytest.approx(told["loss"] * rule.r / (v + rule.r))
            elif isinstance(rule, Nherd):
                assert slow.judge(x, 1.0)["variance"] == pytest.approx(v / (1 + rule.C * v) ** 2)


@every_rule
@pytest.mark.parametrize("shape", SHAPES)
def test_variances_only_shrink_and_what_is_0_keeps_its_own(rule: Rule, shape: Shape) -> None:
    rng = np.random.default_rng(4)
    slow, probes = Gaussian(4, rule, shape), rng.normal(size=(20, 4))
    for _ in range(40):
        before, x = slow.S, rng.normal(size=4)
        x[3] = 0.0
        told = slow.learn(x, 1.0 if x[0] > x[1] + 0.5 * rng.normal() else -1.0, rng.uniform(0.2, 2))

        assert told["updated"] == (told["step"] > 0)
        assert np.max(np.abs(slow.S - slow.S.T)) < 1e-14
        assert np.linalg.eigvalsh(slow.S).min() > 0
        for probe in probes:
            assert probe @ slow.S @ probe <= probe @ before @ probe + 1e-12
    assert (slow.mu[3], slow.S[3, 3]) == (0.0, 1.0)


@every_rule
def test_projecting_keeps_the_diagonal_of_the_precision_and_dropping_that_of_the_covariance(rule: Rule) -> None:
    rng = np.random.default_rng(6)
    for _ in range(10):
        x, S = rng.normal(size=3), np.diag(rng.uniform(0.3, 2, 3))
        after = {}
        for shape in SHAPES:
            slow = Gaussian(3, rule, shape)
            slow.S = S
            slow.learn(x, 1.0)
            after[shape] = slow.S
        inverse = np.linalg.inv(after["full"])

        assert np.diag(after["project"]) == pytest.approx(1.0 / np.diag(inverse), rel=1e-9)
        assert np.diag(after["drop"]) == pytest.approx(np.diag(after["full"]), rel=1e-12)
        assert np.all(np.diag(after["project"]) <= np.diag(after["drop"]) + 1e-12)


def test_with_one_feature_all_shapes_are_one() -> None:
    for rule in RULES:
        shapes: tuple[Shape, ...] = (*SHAPES, "exact") if isinstance(rule, Nherd) else SHAPES
        slow = [Gaussian(1, rule, shape) for shape in shapes]
        for y in (1.0, -1.0, -1.0, 1.0):
            told = [each.learn(np.array([1.3]), y, 0.6) for each in slow]
            assert all(other == pytest.approx(told[0]) for other in told[1:])


@every_rule
@pytest.mark.parametrize("learner", [Gaussian, GaussianByClass, GaussianShared])
def test_a_zero_vector_and_importance_0_teach_nothing(rule: Rule, learner: Any) -> None:
    slow = learner(2, rule)
    told = [slow.learn(np.zeros(2), 0), slow.learn(np.zeros(2), 1), slow.learn(np.array([1.0, 2.0]), 1, 0.0)]

    assert [(report["step"], report["updated"]) for report in told] == [(0.0, False)] * 3
