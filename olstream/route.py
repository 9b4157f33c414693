"""An example -> the learner that predicts it, and the shadows that learn along.

The first route that matches wins; without one it is the message's own `learner`, else the first
of the configuration. Nothing is ever created from a message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from olstream.config import Config, RouteConfig
from olstream.interpret import CarryingExample
from olstream.messages import Chunk, Example, Reason, Reject, label_text
from olstream.values import Label

Condition: TypeAlias = Callable[[Example, Chunk, int], bool]


class Route(NamedTuple):
    """Where a record goes."""

    learner: str
    shadows: tuple[str, ...] = ()


class _Rule(NamedTuple):
    """A route of the configuration, with its target for each learner that a message may name."""

    conditions: tuple[Condition, ...]
    targets: dict[str | None, Route]
    topics: frozenset[str] | None  # whose records alone it is for


class Router:
    """The routes of one configuration.

    `carry`: paths in the message that they look at, for the decoder. `common`: see `_common`.
    """

    def __init__(self, routes: Sequence[RouteConfig], learners: Sequence[str]) -> None:
        named: dict[str | None, str] = {None: learners[0]}
        named.update((name, name) for name in learners)
        self._direct = {asked: Route(name) for asked, name in named.items()}
        self._rules = [_Rule(_conditions(route), _targets(route, named), _topics(route)) for route in routes]
        self.common = self._common()
        keys = (key for route in routes for key in route.when)
        self.carry = sorted({key.removeprefix("field.") for key in keys if key.startswith("field.")})

    def _common(self) -> Route | None:
        """The one target of every message that names no learner; None where rules look at more."""
        if not self._rules:
            return self._direct[None]
        first = self._rules[0]
        return None if first.conditions else first.targets[None]

    def route(self, example: Example, chunk: Chunk, i: int) -> Route | Reject:
        """The target of record i of the chunk, which `example` was read from."""
        direct = self._direct.get(example.learner)
        if direct is None:
            return Reject(Reason.UNKNOWN_LEARNER, "learner is not the name of a configured learner")
        for rule in self._rules:
            if all(condition(example, chunk, i) for condition in rule.conditions):
                return rule.targets[example.learner]
        return direct

    def reaches(self, topic: str) -> set[str]:
        """The learners that records of that topic can lead to."""
        found: set[str] = set()
        for rule in self._rules:
            if rule.topics is None or topic in rule.topics:
                found.update(name for target in rule.targets.values() for name in (target.learner, *target.shadows))
                if len(rule.conditions) == (rule.topics is not None):
                    return found  # nothing of the topic comes past it
        return found.union(route.learner for route in self._direct.values())


def _topics(route: RouteConfig) -> frozenset[str] | None:
    return frozenset(map(label_text, route.when["topic"])) if "topic" in route.when else None


def _targets(route: RouteConfig, named: dict[str | None, str]) -> dict[str | None, Route]:
    targets: dict[str | None, Route] = {}
    for asked, name in named.items():
        learner = route.learner or name
        shadows = dict.fromkeys(shadow for shadow in route.shadows if shadow != learner)
        targets[asked] = Route(learner, tuple(shadows))
    return targets


def _conditions(route: RouteConfig) -> tuple[Condition, ...]:
    return tuple(_condition(key, frozenset(map(label_text, values))) for key, values in route.when.items())


def _condition(key: str, wanted: frozenset[str]) -> Condition:
    """One line of `when`. Values are compared by their text, as classes are: 1, 1.0 and "1" are the same."""
    if key == "topic":
        return lambda _example, chunk, _i: chunk.topic in wanted
    if key == "learner":
        return lambda example, _chunk, _i: example.learner in wanted
    place, _, path = key.partition(".")
    if place == "header":
        return lambda _example, chunk, i: not wanted.isdisjoint(_header_texts(chunk, i, path))
    return lambda example, _chunk, _i: _carried_text(example, path) in wanted


def _header_texts(chunk: Chunk, i: int, name: str) -> Iterable[str]:
    """Every value of that header, which may come more than once."""
    headers = chunk.headers[i] or []
    return [value.decode(errors="replace") for key, value in headers if key == name and value is not None]


def _carried_text(example: Example, path: str) -> str | None:
    value: Label | None = example.carried.get(path) if isinstance(example, CarryingExample) else None
    return label_text(value) if isinstance(value, (str, int, float)) else None


def rivals(config: Config) -> set[tuple[str, str]]:
    """(shadow, champion) of all routes; of one that leaves the champion to the message, any learner may be it."""
    return {
        (shadow, champion)
        for route in config.routes
        for shadow in route.shadows
        for champion in ([route.learner] if route.learner else config.learners)
        if champion != shadow
    }
