"""What a learner is: a name, its paper, its parameters, and one pass over rows for each task.

A learner is one file of this folder that lists its algorithms in `ALGORITHMS`; nothing else
has to know of it. Another package adds its own under the entry-point group `olstream.learners`
(each entry point is an `Algorithm`).

    pa.py                        a learner: paper, formulas, parameters, loss and step
     └─ _linear.py               lessons that a step is put into: one class, a pair, the rest (_descent: gradients)
         ├─ _covariance.py       what a step is measured with: nothing, the diagonal, or the whole matrix
         └─ _rows.py             the passes over a batch that a lesson is put into
             └─ base.py  _params.py  _state.py  _jit.py
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import numpy as np

from olstream.errors import ConfigError
from olstream.learners._jit import F64, I64
from olstream.learners._params import CLASSIFICATION, TASKS, Choice, Costs, Flag, Number, Param, Task, Value
from olstream.learners._state import Anatomy, Arrays, LinearState

__all__ = ["CLASSIFICATION", "TASKS", "Choice", "Costs", "Flag", "Number", "Param", "Task", "Value"]

# Why a row that should have been learnt was not; the codes stand in `Columns.skip`.
SKIP_REASONS: Final = (None, "non_finite", "zero_norm", "overflow")
NON_FINITE, ZERO_NORM, OVERFLOW = 1, 2, 3


class Entries(NamedTuple):
    """The sparse rows of a batch: row i is indices and values [indptr[i]:indptr[i + 1]]."""

    indptr: I64
    indices: I64
    values: F64


# Rows of `Columns.numbers` and `Columns.codes`, as kernels know them
TARGET, WEIGHT, SCORE, MARGIN, LOSS, VARIANCE, STEP, SCORE_AFTER, MARGIN_AFTER, LOSS_AFTER = range(10)
BARRED, SKIP, UPDATED, KNOWN, WINNER = range(5)


class Columns:
    """What a pass reads and writes for each of n rows; nan where a number does not apply.

    Three arrays and not fifteen, because a compiled call counts references to each of them.
    Read: target (+1 or -1, a class index or a value; nan without a label), weight (importance;
    0 = score only), barred (a skip code decided before), known (classes known before the row).
    Written: the rest. For K classes `scores` and their variances `spreads` are (n, K), else (0, 0).
    """

    __slots__ = ("codes", "numbers", "scores", "spreads")

    def __init__(self, n: int, classes: int | None = None, has_spreads: bool = False) -> None:
        self.numbers = np.empty((10, n), np.float64)
        self.codes = np.zeros((5, n), np.int64)
        self.scores = np.zeros((0, 0) if classes is None else (n, classes), np.float64)
        self.spreads = np.zeros((n, classes) if has_spreads and classes is not None else (0, 0), np.float64)


class Run(Protocol):
    """One pass over a batch: each row is scored with the state that the rows before it left, which has room for it."""

    def __call__(self, state: LinearState, entries: Entries, columns: Columns) -> None: ...


def _as_they_are(a: Arrays) -> F64:
    return a.weights


@dataclass(frozen=True, slots=True)
class Learning:
    """An algorithm made ready for one task: the pass over rows, and the arrays that it works on."""

    run: Run
    anatomy: Anatomy = Anatomy()  # noqa: RUF009  frozen
    weights_of: Callable[[Arrays], F64] = _as_they_are  # (K, D), what scores: a learner may keep them otherwise
    features_max: int | None = None  # named features that the arrays can hold


Build: TypeAlias = Callable[[Task, Mapping[str, Any]], Learning]


@dataclass(frozen=True)
class Algorithm:
    """One entry of `algorithm:` in the configuration.

    `build` makes it ready for a task with checked parameters, `build_rest` for several classes as binary learners
    beside one another; `tasks` are those that `build` knows.
    """

    name: str
    title: str
    paper: str
    formulas: str
    tasks: tuple[Task, ...]
    build: Build
    params: tuple[Param, ...] = ()
    build_rest: Callable[[Mapping[str, Any]], Learning] | None = None

    def params_of(self, task: Task) -> tuple[Param, ...]:
        return tuple(param for param in self.params if task in param.tasks)

    @property
    def told_tasks(self) -> list[str]:
        """For people: the tasks, and what binary learners beside one another add to them."""
        by_rest = [] if "multiclass" in self.tasks or self.build_rest is None else ["multiclass (one_vs_rest)"]
        return [*self.tasks, *by_rest]

    def takes(self, task: Task) -> bool:
        return task in self.tasks or (task == "multiclass" and self.build_rest is not None)

    def check(
        self, task: Task, given: Mapping[str, object], classes: Sequence[object] | None = None
    ) -> dict[str, Value]:
        """The parameters in full, defaults put in; ConfigError names the one that is wrong."""
        if not self.takes(task):
            raise ConfigError(f"algorithm {self.name} has no task {task}: it is for {', '.join(self.told_tasks)}")
        known = {param.name: param for param in self.params_of(task)}
        for name in given:
            if name not in known:
                takes = f"its parameters: {', '.join(known)}" if known else "it has no parameters"
                hint = nearest(name, known)
                raise ConfigError(f"params.{name}: {self.name} ({task}) has no such parameter{hint}; {takes}")
        return {name: param.check(given.get(name, param.default), classes) for name, param in known.items()}

    def learning(self, task: Task, params: Mapping[str, Value], multiclass: str = "direct") -> Learning:
        """Ready to learn, with parameters that `check` gave; ConfigError where they do not go together.

        Several classes are learnt `direct` where the algorithm has such a form, else one_vs_rest.
        """
        if task != "multiclass" or (multiclass == "direct" and task in self.tasks):
            return self.build(task, params)
        if multiclass == "one_vs_one":
            raise ConfigError("multiclass: one_vs_one is not in this version: take direct or one_vs_rest")
        if self.build_rest is None:
            raise ConfigError(f"multiclass: {multiclass} is not for {self.name}")
        return self.build_rest(params)

    def reduction(self, task: Task, multiclass: str) -> str | None:
        """How several classes are learnt; None for other tasks."""
        if task != "multiclass":
            return None
        return "direct" if multiclass == "direct" and task in self.tasks else "one_vs_rest"


def nearest(name: object, known: Mapping[str, object]) -> str:
    """` (nearest: NAME)`, or nothing where no known name is near."""
    close = difflib.get_close_matches(str(name), list(known), 1, 0.5)
    return f" (nearest: {close[0]})" if close else ""


@cache
def _built_in() -> dict[str, Algorithm]:
    """Every algorithm of the files beside this one."""
    found: dict[str, Algorithm] = {}
    package = importlib.import_module("olstream.learners")
    for module in pkgutil.iter_modules(package.__path__):
        if module.name != "base" and not module.name.startswith("_"):
            listed = importlib.import_module(f"olstream.learners.{module.name}").ALGORITHMS
            found |= {algorithm.name: algorithm for algorithm in listed}
    return found


def algorithms() -> dict[str, Algorithm]:
    """All algorithms by name, those of other packages too; a built-in name cannot be taken."""
    found = dict(_built_in())
    for point in entry_points(group="olstream.learners"):
        if point.name not in found:
            found[point.name] = point.load()
    return dict(sorted(found.items()))


def algorithm(name: str) -> Algorithm:
    """The algorithm of that name; a plug-in is only loaded when no built-in has the name."""
    found = _built_in().get(name) or (known := algorithms()).get(name)
    if found is None:
        raise ConfigError(f"algorithm {name!r} is not known{nearest(name, known)}: this version has {', '.join(known)}")
    return found
