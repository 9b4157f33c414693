"""Keys that are accepted and do nothing: the commands say so, once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from olstream.config import Config, LearnerConfig, MonitorConfig
from olstream.watched import watched

if TYPE_CHECKING:
    from olstream.learners.base import Learning


def inert(config: Config) -> list[str]:
    """One sentence for each key that the file sets in vain."""
    return [
        *_of_the_service(config),
        *(s for name, learner in config.learners.items() for s in _of(name, learner, config.monitor)),
    ]


def _of_the_service(config: Config) -> Iterator[str]:
    for i, route in enumerate(config.routes):
        for topic in route.when.get("topic", []):
            if config.input.topics and topic not in config.input.topics:
                yield f"routes.{i}: no record comes from the topic {topic}, which is not among input.topics"


def _of(name: str, learner: LearnerConfig, monitor: MonitorConfig) -> Iterator[str]:
    if learner.task == "regression":
        yield from _of_errors(name, monitor)
    action = learner.on_drift or monitor.on_drift
    if action.action != "none" and not watched(monitor, learner.task):
        yield f"learners.{name}: nothing watches it for drift, so nothing follows from drift"
    elif action.action != "none" and not learner.learn:
        yield f"learners.{name}: it is frozen (learn: false), so nothing follows from drift"
    if action.action == "widen" and _learning(learner).anatomy.prior is None:
        yield f"learners.{name}: {learner.algorithm} has no variances that could be widened after drift"
    if learner.multiclass != "direct" and learner.task != "multiclass":
        yield f"learners.{name}.multiclass: the task is {learner.task}, so {learner.multiclass} has no effect"


def _of_errors(name: str, monitor: MonitorConfig) -> Iterator[str]:
    """A regression has no errors of 0 and 1."""
    for detector, given in monitor.drift.items():
        if detector in monitor.ERRORS_ONLY:
            yield f"learners.{name}: {detector} watches errors of 0 and 1, and a regression has none: it does nothing"
        elif given.get("signal") == "error":
            yield f"learners.{name}: a regression has no errors of 0 and 1, so {detector} watches its loss"


def _learning(learner: LearnerConfig) -> Learning:
    from olstream.learners import base  # here, because it loads the compiler

    algorithm = base.algorithm(learner.algorithm)
    params = algorithm.check(learner.task, learner.params, learner.classes)
    return algorithm.learning(learner.task, params, learner.multiclass)
