"""What a learner begins with: nothing, weights by name, or the whole state of another learner.

`learners.NAME.start_from` says which. It counts where a learner begins and nowhere else: one that has a
checkpoint goes on from there. Reading what it names is the business of `io.starts`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from olstream.checkpoint import Checkpoint
from olstream.config import Config
from olstream.errors import ConfigError
from olstream.messages import Reject
from olstream.mistakes import nearest
from olstream.model import Model
from olstream.parse import Parser
from olstream.settings import differences, identity, settings, with_settings

WEIGHTS_BYTES_MAX: Final = 256 * 1024**2


@dataclass(frozen=True, slots=True)
class Beginning:
    """A learner before its first row. `digest`: of what it began with, None where that is nothing."""

    model: Model
    digest: str | None = None


def empty(config: Config, name: str) -> Beginning:
    return Beginning(Model(name, config.learners[name], config.monitor))


def from_weights(config: Config, name: str, data: bytes) -> Beginning:
    """From the bytes of a file: JSON that `Model.start_from` takes. Its digest is that of the bytes."""
    given = Parser(WEIGHTS_BYTES_MAX).parse(data)
    if isinstance(given, Reject):
        raise ConfigError(f"is no JSON that can be taken: {given.detail}")
    model = empty(config, name).model
    model.start_from(given)
    return Beginning(model, hashlib.sha256(data).hexdigest())


def from_state(config: Config, name: str, checkpoint: Checkpoint, other: str) -> Beginning:
    """From all that `other` was, counters included, as if its rows had been learnt here."""
    if other not in checkpoint.states:
        there = ", ".join(checkpoint.states)
        raise ConfigError(f"there is no learner {other!r}{nearest(other, checkpoint.states)}; there are {there}")
    changed = differences(identity(_config_then(config, checkpoint, other), other), identity(config, name))
    if changed:
        raise ConfigError(f"learner {other} has learnt under other settings ({', '.join(changed)}): make them the same")
    meta, arrays = checkpoint.states[other]
    model = Model.restore(name, config.learners[name], config.monitor, dict(meta), dict(arrays))
    digest = checkpoint.digests[other]
    return Beginning(model, digest if isinstance(digest, str) else digest())


def digests(beginnings: Mapping[str, Beginning]) -> dict[str, str]:
    """What stands in the journal of how learners began: nothing of those that began empty."""
    return {name: began.digest for name, began in beginnings.items() if began.digest is not None}


def _config_then(config: Config, checkpoint: Checkpoint, other: str) -> Config:
    """The configuration that `other` learnt under. A lone learner, saved outside any service, had no input."""
    said: dict[str, Any] = dict(checkpoint.settings)
    if "learner" in said:
        said = settings(config) | {"learners": {other: said["learner"]}, "routes": []}
    return with_settings(config, said)
