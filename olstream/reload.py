"""A configuration that is taken while the worker runs: what may change then, and what is refused, and why.

Whatever else changes would need other clients, another directory, or another model: the old one stays in force
as a whole then, so that a file is never taken in part.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from olstream.checkpoint import Position
from olstream.config import Config
from olstream.errors import ConfigError
from olstream.recover import SINCE, refuse_changed_learners
from olstream.settings import changed, differences, redacted, same, settings

# Sections and keys that may be others than before. `input.fields` and `exclude` make a learner what it is: they may
# be written in another way, and no more.
FREE: Final = (
    *("learners", "routes", "monitor", "log", "commit_interval"),
    *("join.ttl", "join.pending_max", "join.pending_bytes_max"),
    *("checkpoint.interval", "checkpoint.keep", "checkpoint.on_missing", "output.scores", "output.copy_headers"),
    *("input.batch_max", "input.max_message_bytes", "input.fields", "input.exclude"),
)


def changes(then: Config, now: Config) -> list[str]:
    """What is to be taken, a change each. ConfigError or StateError where that cannot be done while the worker runs."""
    refuse_changed_learners(then, now)
    before, after = redacted(then), redacted(now)
    fixed = [key for key in _changed(then, now) if not _is_free(key)]
    if fixed:
        raise ConfigError(
            f"{', '.join(fixed)} cannot change while the worker runs: put {'it' if len(fixed) == 1 else 'them'} back, "
            "or stop the worker and start it again"
        )
    found = differences(before, after)
    is_reordered = list(then.learners) != list(now.learners)  # the first one is the default
    return found or (["learners: another order"] if is_reordered else [])


def facts_under(facts: Mapping[str, Any], then: Config, now: Config, position: Position) -> dict[str, Any]:
    """Facts of the checkpoint at which `now` takes the place of `then`: what follows is learnt under its settings."""
    if same(settings(then), settings(now)):
        return dict(facts)
    return {**facts, SINCE: (position.lineage, position.seq)}


def _changed(then: Config, now: Config) -> list[str]:
    """By their names alone: they may be secrets. Not the section that was empty, beside what stands in it now."""
    keys = changed(*(config.model_dump(mode="json", by_alias=True) for config in (then, now)))
    return [key for key in keys if not any(other.startswith(f"{key}.") for other in keys)]


def _is_free(key: str) -> bool:
    return any(key == free or key.startswith(f"{free}.") for free in FREE)
