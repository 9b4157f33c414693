"""Every kind of learner there is: each algorithm for each task as it comes, and its other forms."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from olstream import Learner
from olstream.learners.base import Task, algorithms


class Kind(NamedTuple):
    name: str
    task: Task
    params: dict[str, Any]
    multiclass: str = "direct"

    def learner(self, params: dict[str, Any] | None = None, **settings: Any) -> Learner:
        """A fresh one."""
        given = {**self.params, **(params or {})}
        return Learner(self.name, task=self.task, params=given, multiclass=self.multiclass, **settings)

    def __str__(self) -> str:
        told = [
            f"{value}".lower() if isinstance(value, str) else f"{key}={value}" for key, value in self.params.items()
        ]
        return "-".join([self.name, self.task, *told, *(["rest"] if self.multiclass != "direct" else [])])

    @property
    def is_descent(self) -> bool:
        return self.name in ("ogd", "pegasos", "logistic")

    @property
    def does_each_justice(self) -> bool:
        """No example is worse off after its own step."""
        in_turn = self.name != "alm_svm" or self.task != "multiclass"
        return in_turn and not self.is_descent and not self.params.get("averaged")

    def some(self, n: int) -> int:
        """So many rows, or few where each costs a solution of its own."""
        return min(n, 12) if self.name == "alm_svm" else n

    @property
    def slack(self) -> float:
        """How far a loss is off: a solver ends at its tolerance."""
        return 1e-5 if self.name == "alm_svm" else 0.0

    @property
    def is_second_order(self) -> bool:
        return self.name in ("cw", "arow", "scw1", "scw2", "nherd")

    @property
    def shrinks(self) -> bool:
        """Every row changes all weights, whatever is in it."""
        return self.name == "pegasos" or bool(self.params.get("l2"))


# After each row, as the others learn; of few rows, for without the compiler a solution takes long
OFTEN: dict[str, dict[str, Any]] = {"alm_svm": {"every": 1, "window": 8}}
PLAIN = [Kind(name, task, OFTEN.get(name, {})) for name, found in algorithms().items() for task in found.tasks]
FORMS = [
    Kind("perceptron", "binary", {"averaged": True}),
    Kind("perceptron", "multiclass", {"averaged": True}),
    Kind("perceptron", "multiclass", {"averaged": True}, "one_vs_rest"),
    Kind("perceptron", "multiclass", {"constraint": "uniform"}),
    Kind("perceptron", "multiclass", {"constraint": "proportional"}),
    *(Kind(name, "multiclass", {"constraint": "all"}) for name in ("pa", "pa1", "pa2")),
    Kind("pa1", "multiclass", {"constraint": "prediction"}),
    Kind("pa1", "multiclass", {}, "one_vs_rest"),
    Kind("arow", "binary", {"covariance": "full"}),
    Kind("arow", "binary", {"diagonal": "project"}),
    Kind("arow", "binary", {"variance_floor": 0.01, "forget": 1.1}),
    Kind("arow", "regression", {"covariance": "full"}),
    Kind("arow", "regression", {"eps": 0.1}),
    *(Kind(name, "multiclass", {"covariance": "shared"}) for name in ("arow", "cw", "scw1", "scw2")),
    *(Kind(name, "multiclass", {"covariance": "full"}) for name in ("arow", "cw", "nherd")),
    Kind("arow", "multiclass", {}, "one_vs_rest"),
    Kind("cw", "multiclass", {"covariance": "full"}, "one_vs_rest"),
    Kind("cw", "binary", {"form": "variance"}),
    Kind("cw", "binary", {"form": "variance", "covariance": "full"}),
    Kind("cw", "binary", {"covariance": "full"}),
    Kind("scw1", "binary", {"covariance": "full"}),
    Kind("scw2", "binary", {"covariance": "full"}),
    Kind("nherd", "binary", {"diagonal": "exact"}),
    Kind("nherd", "binary", {"covariance": "full"}),
    Kind("pegasos", "binary", {"project": True}),
    Kind("pegasos", "multiclass", {}, "one_vs_rest"),
    Kind("ogd", "binary", {"loss": "logistic", "l2": 0.01}),
    Kind("ogd", "multiclass", {}, "one_vs_rest"),
    Kind("logistic", "multiclass", {"l2": 0.01}),
    Kind("logistic", "multiclass", {}, "one_vs_rest"),
]
EVERY = [*PLAIN, *FORMS]
every_kind = pytest.mark.parametrize("kind", EVERY, ids=map(str, EVERY))
CLASSIFIERS = [kind for kind in EVERY if kind.task != "regression"]
REGRESSORS = [kind for kind in EVERY if kind.task == "regression"]
SEVERAL = [kind for kind in EVERY if kind.task == "multiclass"]
