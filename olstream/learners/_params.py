"""Hyperparameters: each has the paper's letter, a default, a range, and says by name what it refuses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeAlias

import numpy as np

from olstream.errors import ConfigError
from olstream.messages import label_text

Task: TypeAlias = Literal["binary", "multiclass", "regression"]
TASKS: Final[tuple[Task, ...]] = ("binary", "multiclass", "regression")
CLASSIFICATION: Final[tuple[Task, ...]] = ("binary", "multiclass")

# What a checked parameter may be: plain values, equal after JSON
Value: TypeAlias = float | str | bool | list[list[float]] | None


class Param(Protocol):
    """One hyperparameter. None as default: it may be left out."""

    @property
    def name(self) -> str: ...
    @property
    def default(self) -> Value: ...
    @property
    def meaning(self) -> str: ...
    @property
    def tasks(self) -> tuple[Task, ...]: ...
    @property
    def range(self) -> str: ...
    def check(self, value: Any, classes: Sequence[Any] | None) -> Value:
        """The value as it is kept; ConfigError where it cannot be. `classes` are the declared ones."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number within a range; `whole` ones have no fraction."""

    name: str
    default: float | None
    meaning: str
    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None
    whole: bool = False
    tasks: tuple[Task, ...] = TASKS

    @property
    def range(self) -> str:
        bounds = ((">", self.above), (">=", self.at_least), ("<", self.below), ("<=", self.at_most))
        return " and ".join(f"{sign} {bound:g}" for sign, bound in bounds if bound is not None)

    def check(self, value: Any, classes: Sequence[Any] | None) -> float | None:
        kind = "whole number" if self.whole else "number"
        if value is None and self.default is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            raise ConfigError(f"params.{self.name} must be a {kind} {self.range}, not {value!r}")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not self._within(number):
            raise ConfigError(f"params.{self.name} must be a finite {kind} {self.range}, not {value!r}")
        return int(number) if self.whole else number

    def _within(self, number: float) -> bool:
        return (
            math.isfinite(number)
            and (self.above is None or number > self.above)
            and (self.at_least is None or number >= self.at_least)
            and (self.below is None or number < self.below)
            and (self.at_most is None or number <= self.at_most)
            and (not self.whole or number.is_integer())
        )


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words; some of them may be for some tasks only."""

    name: str
    default: str | None
    meaning: str
    options: tuple[str, ...]
    tasks: tuple[Task, ...] = TASKS

    @property
    def range(self) -> str:
        return " | ".join(self.options)

    def check(self, value: Any, classes: Sequence[Any] | None) -> str | None:
        if value is None and self.default is None:
            return None
        if not isinstance(value, str) or value not in self.options:
            raise ConfigError(f"params.{self.name} takes {self.range}, not {value!r}")
        return value


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""

    name: str
    default: bool
    meaning: str
    tasks: tuple[Task, ...] = TASKS

    @property
    def range(self) -> str:
        return "true | false"

    def check(self, value: Any, classes: Sequence[Any] | None) -> bool:
        if not isinstance(value, bool):
            raise ConfigError(f"params.{self.name} must be true or false, not {value!r}")
        return value


@dataclass(frozen=True, slots=True)
class Costs:
    """What it costs to take one class for another: a matrix, rows = true class, or {class: {class: cost}}.

    Kept as a matrix in the order of the declared classes. What a mapping leaves out costs 1, and what is right 0.
    """

    name: str
    meaning: str
    default: None = None
    tasks: tuple[Task, ...] = ("multiclass",)

    @property
    def range(self) -> str:
        return "a matrix or {class: {class: cost}}, >= 0"

    def check(self, value: Any, classes: Sequence[Any] | None) -> list[list[float]] | None:
        if value is None:
            return None
        if not classes:
            raise ConfigError(f"params.{self.name} needs `classes`: their order is that of its rows")
        texts = [label_text(label) for label in classes]
        matrix = self._of_mapping(value, texts) if isinstance(value, Mapping) else value
        n = len(texts)
        if not _is_list(matrix) or len(matrix) != n or not all(_is_list(row) and len(row) == n for row in matrix):
            raise ConfigError(f"params.{self.name} must have {n} rows of {n} costs, one for each class")
        for i, row in enumerate(matrix):
            for j, cost in enumerate(row):
                if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0.0 <= cost < math.inf:
                    raise ConfigError(f"params.{self.name}: a cost is a finite number >= 0, not {cost!r}")
                if i == j and cost:
                    raise ConfigError(f"params.{self.name}: the right class costs 0, not {cost!r} ({texts[i]})")
        return [[float(cost) for cost in row] for row in matrix]

    def _of_mapping(self, value: Mapping[Any, Any], texts: Sequence[str]) -> list[list[Any]]:
        costs: list[list[Any]] = [[float(i != j) for j in range(len(texts))] for i in range(len(texts))]
        for true, row in value.items():
            if not isinstance(row, Mapping):
                raise ConfigError(f"params.{self.name}: the costs of class {true!r} must be {{class: cost}}")
            for taken, cost in row.items():
                costs[self._index(true, texts)][self._index(taken, texts)] = cost
        return costs

    def _index(self, label: Any, texts: Sequence[str]) -> int:
        text = label_text(label)
        if text not in texts:
            raise ConfigError(f"params.{self.name}: {label!r} is none of the classes {', '.join(texts)}")
        return texts.index(text)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
