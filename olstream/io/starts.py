"""Reading what `start_from` names: FILE.json, or STATE_DIR#learner. Relative paths as those of `checkpoint.path`."""

from __future__ import annotations

import logging
from pathlib import Path

from olstream import start
from olstream.checkpoint import MANIFEST, Checkpoint, Damaged, from_folder
from olstream.config import Config
from olstream.errors import ConfigError
from olstream.io.disk import newest_first, slot_directories
from olstream.start import Beginning

log = logging.getLogger(__name__)


def begin(config: Config, name: str) -> Beginning:
    """The learner of that name before its first row. ConfigError where what it starts from cannot be taken."""
    named = config.learners[name].start_from
    if named is None:
        return start.empty(config, name)
    path, hash_, other = named.rpartition("#")
    try:
        if hash_:
            began = start.from_state(config, name, _newest(Path(path)), other)
        else:
            began = start.from_weights(config, name, _weights(Path(named)))
    except ConfigError as error:
        raise ConfigError(f"learners.{name}.start_from: {named}: {error}") from None
    log.info("learner %s begins from %s (%s)", name, named, began.digest)
    return began


def _weights(path: Path) -> bytes:
    if path.is_dir():
        raise ConfigError(f"is a directory: name a learner of it too, as in {path}#NAME")
    try:
        with path.open("rb") as file:
            return file.read(start.WEIGHTS_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}") from error


def _newest(directory: Path) -> Checkpoint:
    """The newest checkpoint at or below a directory, which is of one slot."""
    try:
        if (directory / MANIFEST).is_file():
            return from_folder(directory)
        slots = slot_directories(directory)
        if len(slots) > 1:
            raise ConfigError(f"there are several slots: name one of {', '.join(f'{slot}#NAME' for slot in slots)}")
        if not slots:
            raise ConfigError(f"there is no checkpoint in {directory}")
        return from_folder(next(newest_first(slots[0])))
    except Damaged as error:
        raise ConfigError(f"the newest checkpoint is damaged ({error}): name one that is whole") from error
