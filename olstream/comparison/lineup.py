"""Which learners take part, by the options of the command line: algorithms, and the parameters to try."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from pydantic import ValidationError

from olstream import mistakes
from olstream.comparison.entrants import Task
from olstream.config import LearnerConfig
from olstream.configfile import File, scalar
from olstream.errors import ConfigError
from olstream.learners import base

Values = Mapping[str, Sequence[Any]]  # those to try, by parameter


def learners(
    task: Task, algorithms: Sequence[str], params: Sequence[str], shared: Mapping[str, Any]
) -> dict[str, LearnerConfig]:
    """By the name in the table: `arow`, or `arow[r=0.1]` where several values of `r` are tried.

    `params`: texts such as `arow.r=0.1`. `shared`: settings that all of them have.
    """
    chosen = list(dict.fromkeys(algorithms)) or [name for name, one in base.algorithms().items() if one.takes(task)]
    for name in chosen:
        base.algorithm(name)
    given = _by_algorithm(params)
    for name in given:
        if name not in chosen:
            raise ConfigError(f"--param {name}: {name} is not compared here{mistakes.nearest(name, chosen)}")
    return {
        shown: _learner(shown, {"algorithm": name, "task": task, "params": values, **shared})
        for name in chosen
        for shown, values in _variants(name, given.get(name, {}))
    }


def _by_algorithm(params: Sequence[str]) -> dict[str, dict[str, list[Any]]]:
    given: dict[str, dict[str, list[Any]]] = {}
    for text in params:
        path, equals, value = text.partition("=")
        name, dot, param = path.strip().partition(".")
        if not (equals and dot and name and param and value.strip()):
            raise ConfigError(f"--param {text}: write ALGORITHM.PARAMETER=VALUE, such as arow.r=0.1")
        values = given.setdefault(name, {}).setdefault(param, [])
        if (read := scalar(value.strip())) not in values:
            values.append(read)
    return given


def _variants(name: str, given: Values) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every combination of the values; the name says those of which there are several."""
    for combination in product(*given.values()):
        values = dict(zip(given, combination, strict=True))
        tried = [f"{param}={value}" for param, value in values.items() if len(given[param]) > 1]
        yield (f"{name}[{','.join(tried)}]" if tried else name), values


def _learner(name: str, keys: dict[str, Any]) -> LearnerConfig:
    try:
        return LearnerConfig.model_validate(keys)
    except ValidationError as error:
        raise mistakes.config_error(error, LearnerConfig, File(name)) from None
