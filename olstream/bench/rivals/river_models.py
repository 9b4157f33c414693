"""River's linear models, row by row: its nearest to ours.

    python river_models.py ROWS.npz

Slow ones over the first rows only. ALMA looks at all of its weights in every row, and the Bayesian regression keeps
all their covariances: these are for few features.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from river.linear_model import (
    ALMAClassifier,
    BayesianLinearRegression,
    LogisticRegression,
    PAClassifier,
    Perceptron,
    SoftmaxRegression,
)
from river.multiclass import OneVsRestClassifier
from river.optim import SGD
from river.optim.losses import Hinge

SLOW_ROWS_MAX = 2_000
FEW_FEATURES = 100

BINARY: dict[str, Callable[[], Any]] = {
    "PA-I": lambda: PAClassifier(C=1.0, mode=1),
    "PA-II": lambda: PAClassifier(C=1.0, mode=2),
    "Perceptron": Perceptron,
    "LogisticRegression": LogisticRegression,
    "SGD, hinge": lambda: LogisticRegression(optimizer=SGD(0.1), loss=Hinge()),
}
OF_FEW: dict[str, Callable[[], Any]] = {
    "ALMA": ALMAClassifier,
    "BayesianLinearRegression": lambda: Signed(BayesianLinearRegression()),
}
MULTICLASS: dict[str, Callable[[], Any]] = {
    "SoftmaxRegression, 10 classes": SoftmaxRegression,
    "PA-I, 10 classes one_vs_rest": lambda: OneVsRestClassifier(PAClassifier(C=1.0, mode=1)),
}


def measure(what: str, model: Any, rows: list[dict[str, float]], truths: list[Any]) -> dict[str, Any]:
    mistakes = 0
    start_s = time.process_time()
    for row, truth in zip(rows, truths, strict=True):
        mistakes += model.predict_one(row) != truth
        model.learn_one(row, truth)
    us = (time.process_time() - start_s) / len(rows) * 1e6
    return {"what": f"River {what}", "records": len(rows), "us": us, "wrong": mistakes / len(rows)}


class Signed:
    """A regression that is asked for a class."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict_one(self, row: dict[str, float]) -> bool:
        return bool(self.model.predict_one(row) > 0.0)

    def learn_one(self, row: dict[str, float], truth: bool) -> None:
        self.model.learn_one(row, 1.0 if truth else -1.0)


def main(path: str) -> None:
    saved = np.load(path)
    names = [f"feature_{j}" for j in range(int(saved["names"]))]
    rows = [
        {names[j]: value for j, value in zip(columns, values, strict=True)}
        for columns, values in zip(saved["columns"].tolist(), saved["values"].tolist(), strict=True)
    ]
    truths, classes = (saved["binary"] > 0).tolist(), saved["multiclass"].tolist()
    told = [measure(what, model(), rows, truths) for what, model in BINARY.items()]
    few, of_few = rows[:SLOW_ROWS_MAX], OF_FEW if len(names) <= FEW_FEATURES else {}
    told += [measure(what, model(), few, truths[:SLOW_ROWS_MAX]) for what, model in of_few.items()]
    told += [measure(what, model(), few, classes[:SLOW_ROWS_MAX]) for what, model in MULTICLASS.items()]
    print(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1])
