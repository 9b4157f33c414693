"""Every kind of learner against a slow, obvious one of the same paper: row by row, on easy and on hostile streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, cast

import numpy as np
import pytest

from tests.learners.kinds import EVERY, Kind
from tests.references import descent, first_order, gaussian
from tests.references.lesson import Matrix, OneVector, Report, Vector

D = 5
Stream = tuple[Matrix, Any, Vector]


class Averaged:
    """A perceptron that is measured by the mean of its weights after every round."""

    def __init__(self, learner: Any) -> None:
        self.learner = learner

    def scores(self, x: Vector, rows: int) -> Vector:
        mean = np.atleast_2d(self.learner.average()) if self.learner.history else np.zeros((0, D))
        return np.vstack([mean, np.zeros((rows - len(mean), D))]) @ x


class Mean(Averaged):
    def judge(self, x: Vector, y: float) -> Report:
        score = float(self.scores(x, 1)[0])
        return {"score": score, "margin": y * score, "loss": max(0.0, -y * score)}

    def learn(self, x: Vector, y: float, h: float) -> Report:
        before = self.judge(x, y)
        told = cast(Report, self.learner.learn(x, y, h))
        after = self.judge(x, y)
        return told | before | {f"{key}_after": after[key] for key in before}


class Means(Averaged):
    def learn(self, x: Vector, k: int, h: float) -> Report:
        known = len(self.learner.W)
        before = self.scores(x, max(known, k + 1))
        told = self.learner.learn(x, k, h)
        after = self.scores(x, max(len(self.learner.W), k + 1))
        if len(before) < 2:
            return cast(Report, told)
        measured = {"score": max(before[:known])}
        for when, scores in (("", before), ("_after", after)):
            margin = float(scores[k] - max(np.delete(scores, k)))
            measured |= {f"margin{when}": margin, f"loss{when}": max(0.0, -margin)}
        return cast(Report, told | measured | {"score_after": max(after) if h > 0 else measured["score"]})


class Rest:
    """One binary learner for each class, this class against the rest; the loss is that of the classes' margin."""

    def __init__(self, make: Callable[[], OneVector], loss: Callable[[float, float], float]) -> None:
        self.make, self.loss = make, loss
        self.learners: list[Any] = []

    def judge(self, x: Vector, k: int, learners: list[Any]) -> Report:
        told = [learner.judge(x, 1.0) for learner in learners]
        scores = [one["score"] for one in told]
        if len(scores) < 2:
            return {"score": scores[0], "margin": None, "loss": 0.0}
        rival = max((q for q in range(len(scores)) if q != k), key=lambda q: (scores[q], -q))
        margin = scores[k] - scores[rival]
        v = told[k].get("variance", 0.0) + told[rival].get("variance", 0.0)
        found = {"score": max(scores), "margin": margin, "loss": self.loss(margin, v)}
        return found | ({"variance": v} if "variance" in told[0] else {})

    def learn(self, x: Vector, k: int, h: float) -> Report:
        score = max((learner.judge(x, 1.0)["score"] for learner in self.learners), default=0.0)
        learners = self.learners + [self.make()] * (k == len(self.learners))
        before, steps = self.judge(x, k, learners) | {"score": score}, [0.0]
        if h > 0.0:
            self.learners = learners
            if len(learners) > 1:
                steps = [one.learn(x, 1.0 if q == k else -1.0, h)["step"] for q, one in enumerate(learners)]
        after = self.judge(x, k, learners) if h > 0.0 else before
        return before | {"step": max(steps)} | {f"{key}_after": after[key] for key in ("score", "margin", "loss")}


def rule_of(kind: Kind) -> gaussian.Rule:
    eta = {"cw": 0.9, "scw1": 0.75, "scw2": 0.9}.get(kind.name)
    phi = 0.0 if eta is None else gaussian.phi_of(eta)
    if kind.name == "cw":
        return gaussian.CwVariance(phi) if kind.params.get("form") == "variance" else gaussian.CwStdev(phi)
    if kind.name == "arow":
        return gaussian.Arow()
    return {"scw1": gaussian.Scw1(phi), "scw2": gaussian.Scw2(phi), "nherd": gaussian.Nherd()}[kind.name]


def shape_of(kind: Kind) -> gaussian.Shape:
    if kind.params.get("covariance", "diagonal") != "diagonal":
        return "full"
    usual = "project" if kind.name == "nherd" or kind.params.get("form") == "variance" else "drop"
    return cast(gaussian.Shape, kind.params.get("diagonal", usual))


def binary(kind: Kind) -> Any:
    if kind.is_second_order:
        return gaussian.Gaussian(D, rule_of(kind), shape_of(kind))
    if kind.name == "perceptron":
        return Mean(first_order.Perceptron(D)) if kind.params.get("averaged") else first_order.Perceptron(D)
    if kind.name == "pegasos":
        return descent.Pegasos(D, project=bool(kind.params.get("project")))
    if kind.name.startswith("pa"):
        return first_order.PassiveAggressive(D, cast(first_order.Kind, kind.name))
    if kind.name == "logistic":
        return descent.Logistic(D)
    return descent.GradientDescent(D, **kind.params)


def regression(kind: Kind) -> Any:
    if kind.name == "arow":
        return gaussian.ArowRegression(D, eps=kind.params.get("eps", 0.0), shape=shape_of(kind))
    if kind.name == "ogd":
        return descent.GradientDescent(D, "squared")
    return first_order.PassiveAggressiveRegression(D, cast(first_order.Kind, kind.name))


def several(kind: Kind) -> Any:
    if kind.multiclass == "one_vs_rest":
        losses: dict[str, Callable[[float, float], float]] = {
            "perceptron": lambda m, v: max(0.0, -m),
            "logistic": lambda m, v: descent.loss_of("logistic", m, 1.0),
        }
        loss = rule_of(kind).loss if kind.is_second_order else losses.get(kind.name, lambda m, v: max(0.0, 1.0 - m))
        return Rest(lambda: binary(kind), loss)
    if kind.name == "logistic":
        return descent.Softmax(D, **kind.params)
    if kind.is_second_order:
        if kind.params.get("covariance") == "shared":
            return gaussian.GaussianShared(D, rule_of(kind))
        return gaussian.GaussianByClass(D, rule_of(kind), shape_of(kind))
    constraint = kind.params.get("constraint", "single" if kind.name.startswith("pa") else "max")
    if kind.name == "perceptron":
        learner = first_order.MulticlassPerceptron(D, cast(Literal["max", "uniform", "proportional"], constraint))
        return Means(learner) if kind.params.get("averaged") else learner
    form = {
        "single": first_order.PassiveAggressiveSingle,
        "all": first_order.PassiveAggressiveAll,
        "prediction": first_order.PassiveAggressivePrediction,
    }[constraint]
    return form(D, cast(first_order.Kind, kind.name))


def easy(kind: Kind, seed: int) -> Stream:
    """Sparse rows of noise, classes that come late, importance weights with a 0 among them."""
    rng = np.random.default_rng(seed)
    n = 60
    X = rng.normal(size=(n, D))
    X[rng.random(X.shape) < 0.4] = 0.0
    h = rng.choice([0.0, 0.5, 1.0, 2.0], n)
    if kind.task == "regression":
        return X, rng.normal(size=n) * 3, h
    late = [rng.integers(2 if kind.task == "binary" else min(2 + i // 10, 4)) for i in range(n)]
    return X, np.array(late), h


def hostile(kind: Kind, seed: int) -> Stream:
    """Repeats, contradictions, zero rows, parallel rows, rows of other sizes."""
    rng = np.random.default_rng(100 + seed)
    base, _, _ = easy(kind, seed)
    rows = [base[0]] * 6 + [base[1], -base[1], 3.0 * base[1]] * 3 + [np.zeros(D)] * 2
    rows += [size * row for row, size in zip(base[2:32], rng.choice([0.1, 1.0, 10.0], 30), strict=True)]
    X, n = np.array(rows), len(rows)
    y = np.resize([0, 0, 1], n) if kind.task != "regression" else np.resize([1.0, -5.0, 0.0], n)
    return X, y, np.ones(n)


COMPARED = [kind for kind in EVERY if "forget" not in kind.params and kind.name != "alm_svm"]


@pytest.mark.parametrize("stream", [easy, hostile])
@pytest.mark.parametrize("kind", COMPARED, ids=map(str, COMPARED))
def test_a_learner_does_what_its_paper_says_row_by_row(kind: Kind, stream: Callable[[Kind, int], Stream]) -> None:
    make = {"binary": binary, "multiclass": several, "regression": regression}[kind.task]
    for seed in range(2):
        X, y, h = stream(kind, seed)
        m = kind.learner(bias=False, classes=[0, 1] if kind.task == "binary" else None)
        order: dict[int, int] = {}
        slow = make(kind)

        for i, (x, label, weight) in enumerate(zip(X, y, h, strict=True)):
            report = m.learn(x, label, weight)
            if kind.task == "multiclass" and weight > 0:
                order.setdefault(int(label), len(order))
            target = {"binary": 2.0 * label - 1.0, "regression": float(label)}.get(kind.task)
            expected = slow.learn(x, order.get(int(label), len(order)) if target is None else target, weight)

            if kind.task == "multiclass" and len(order) < 2:
                continue
            wanted = {key: value for key, value in expected.items() if key != "updated" and value is not None}
            found = {key: getattr(report, key) for key in wanted}
            assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9), f"seed {seed}, row {i}"
