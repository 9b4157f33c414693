"""Weights to start from, as people write them: a vector of numbers by name, or one for each class.

    {feature: weight}                              as `Learner.weights()` gives them; the bias is 0 then
    {class: {feature: weight}}                     the same for a multiclass task
    {"weights": either, "bias": its weight(s)}     as `inspect --weights --json` prints a learner

In the last form other keys are passed over.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np

from olstream.errors import ConfigError

_ALL = "weights to start from"
Vector: TypeAlias = tuple[Any, dict[Any, float], float]  # class (None where there are none), weights by name, bias


def vectors(given: object, by_class: bool) -> Iterator[Vector]:
    """ConfigError where something has another shape, or is no finite number."""
    weights, bias = _apart(given, by_class)
    if not by_class:
        yield None, _numbers(weights), _number(bias, "bias")
        return
    rows, biases = _mapping(weights, "{class: {feature: weight}}"), _mapping(bias, "{class: weight of the bias}")
    for label in dict.fromkeys([*rows, *biases]):
        yield (
            label,
            _numbers(rows.get(label, {}), f"weights of class {label!r}"),
            _number(biases.get(label, 0.0), f"bias of class {label!r}"),
        )


def _apart(given: object, by_class: bool) -> tuple[object, object]:
    """Weights and bias. A feature or a class may be called `weights` as well: what lies below it tells."""
    none: object = {} if by_class else 0.0
    if isinstance(given, Mapping) and _holds_vectors(given.get("weights"), by_class):
        return given["weights"], given.get("bias", none)
    return given, none


def _holds_vectors(given: object, by_class: bool) -> bool:
    return isinstance(given, Mapping) and (not by_class or all(isinstance(v, Mapping) for v in given.values()))


def _numbers(given: object, of: str = _ALL) -> dict[Any, float]:
    return {name: _number(weight, repr(name)) for name, weight in _mapping(given, "{feature: weight}", of).items()}


def _mapping(given: object, what: str, of: str = _ALL) -> Mapping[Any, Any]:
    if not isinstance(given, Mapping):
        raise ConfigError(f"{of} are {what}, not {type(given).__name__}")
    return given


def _number(given: object, of: str) -> float:
    if isinstance(given, int | float | np.integer | np.floating) and not isinstance(given, bool):
        with suppress(OverflowError):
            if math.isfinite(number := float(given)):
                return number
    raise ConfigError(f"the weight of {of} cannot be taken: it is no finite number")
