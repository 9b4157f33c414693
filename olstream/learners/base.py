"""What a learner is: a name, its paper, its parameters, and one pass over rows for each task.

A learner is one file of this folder that lists its algorithms in `ALGORITHMS`; nothing else
has to know of it. Another package adds its own under the entry-point group `olstream.learners`
(each entry point is an `Algorithm`).

    pa.py                        a learner: paper, formulas, parameters, loss and step
     └─ _linear.py               the passes over a batch that a step is put into
         └─ base.py  _jit.py     this, and the one decorator of every kernel
"""

from __future__ import annotations

import difflib
import importlib
import math
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from olstream.errors import ConfigError
from olstream.learners._jit import F64, I64

Task: TypeAlias = Literal["binary", "multiclass", "regression"]
TASKS: Final[tuple[Task, ...]] = ("binary", "multiclass", "regression")

# Why a row that should have been learnt was not; the codes stand in `Columns.skip`.
SKIP_REASONS: Final = (None, "non_finite", "zero_norm", "overflow")
NON_FINITE, ZERO_NORM, OVERFLOW = 1, 2, 3


@dataclass(frozen=True, slots=True)
class Number:
    """A hyperparameter that is a number within a range, under the paper's letter."""

    name: str
    default: float
    meaning: str
    above: float | None = None
    at_least: float | None = None
    tasks: tuple[Task, ...] = TASKS

    @property
    def range(self) -> str:
        return f"> {self.above:g}" if self.above is not None else f">= {self.at_least:g}"

    def check(self, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            raise ConfigError(f"params.{self.name} must be a number {self.range}, not {value!r}")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not self._within(number):
            raise ConfigError(f"params.{self.name} must be a finite number {self.range}, not {value!r}")
        return number

    def _within(self, number: float) -> bool:
        if not math.isfinite(number):
            return False
        return number > self.above if self.above is not None else number >= (self.at_least or 0.0)


@dataclass(frozen=True, slots=True)
class Choice:
    """A hyperparameter that is one of a few words."""

    name: str
    default: str
    meaning: str
    options: tuple[str, ...]
    tasks: tuple[Task, ...] = TASKS

    @property
    def range(self) -> str:
        return " | ".join(self.options)

    def check(self, value: object) -> str:
        if not isinstance(value, str) or value not in self.options:
            raise ConfigError(f"params.{self.name} takes {self.range} in this version, not {value!r}")
        return value


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
    Written: the rest; `scores` (n, K) for K classes, without any (0, 0).
    """

    __slots__ = ("codes", "numbers", "scores")

    def __init__(self, n: int, classes: int | None = None) -> None:
        self.numbers = np.empty((10, n), np.float64)
        self.codes = np.zeros((5, n), np.int64)
        self.scores = np.zeros((0, 0) if classes is None else (n, classes), np.float64)


class State(Protocol):
    """The arrays that a learner learns: a row of weights for each class, or one row in all."""

    weights: F64
    variances: F64


class RowPass(Protocol):
    """One pass over a batch: each row is scored with the state that the rows before it left."""

    def __call__(self, state: State, entries: Entries, columns: Columns, params: F64) -> None: ...


@dataclass(frozen=True)
class Algorithm:
    """One entry of `algorithm:` in the configuration."""

    name: str
    title: str
    paper: str
    formulas: str
    passes: Mapping[Task, RowPass]
    params: tuple[Number | Choice, ...] = ()
    prior: str | None = None  # second order: the parameter that variances start from
    probability: Literal["probit"] | None = None
    tasks: tuple[Task, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tasks", tuple(task for task in TASKS if task in self.passes))

    def params_of(self, task: Task) -> tuple[Number | Choice, ...]:
        return tuple(param for param in self.params if task in param.tasks)

    def check(self, task: Task, given: Mapping[str, object]) -> dict[str, float | str]:
        """The parameters in full, defaults put in; ConfigError names the one that is wrong."""
        if task not in self.passes:
            raise ConfigError(f"algorithm {self.name} has no task {task} in this version: {', '.join(self.tasks)}")
        known = {param.name: param for param in self.params_of(task)}
        for name in given:
            if name not in known:
                takes = f"its parameters: {', '.join(known)}" if known else "it has no parameters"
                hint = nearest(name, known)
                raise ConfigError(f"params.{name}: {self.name} ({task}) has no such parameter{hint}; {takes}")
        return {name: param.check(given.get(name, param.default)) for name, param in known.items()}

    def vector(self, task: Task, params: Mapping[str, float | str]) -> F64:
        """The numbers among the parameters, in the order of `params_of`: what kernels read."""
        numbers = [params[param.name] for param in self.params_of(task) if isinstance(param, Number)]
        return np.array(numbers, np.float64)


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
