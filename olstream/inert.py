"""Keys that are accepted and do nothing yet: the commands say so, once."""

from __future__ import annotations

from collections.abc import Iterator

from olstream.config import Config, LearnerConfig


def inert(config: Config) -> list[str]:
    """One sentence for each key that the file sets in vain."""
    return [*_of_the_service(config), *(s for name, learner in config.learners.items() for s in _of(name, learner))]


def _of_the_service(config: Config) -> Iterator[str]:
    if config.join.model_fields_set:
        yield "join: late labels are not joined in this version; a label-only message is counted as unmatched"
    if config.output.outcomes is not None:
        yield "output.outcomes: late labels are not joined in this version, so nothing is published there"
    if "drift" in config.monitor.model_fields_set and config.monitor.drift:
        yield "monitor.drift: no detector runs in this version"
    if config.monitor.on_drift.action != "none":
        yield "monitor.on_drift: no detector runs in this version, so nothing follows from drift"
    if config.monitor.hindsight is not None:
        yield "monitor.hindsight: regret is not measured in this version"
    for i, route in enumerate(config.routes):
        for topic in route.when.get("topic", []):
            if config.input.topics and topic not in config.input.topics:
                yield f"routes.{i}: no record comes from the topic {topic}, which is not among input.topics"


def _of(name: str, learner: LearnerConfig) -> Iterator[str]:
    if learner.multiclass != "direct" and learner.task != "multiclass":
        yield f"learners.{name}.multiclass: the task is {learner.task}, so {learner.multiclass} has no effect"
