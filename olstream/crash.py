"""Crash points: the steps at which a process can be made to die as `kill -9` would, to prove that it may.

    OLSTREAM_CRASH=commit.after:3 olstream run config.yaml      dies right after its third commit

Every step that leaves something behind outside this process has a point before and one after it.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Mapping
from typing import Final

from olstream.errors import ConfigError

log = logging.getLogger(__name__)

VARIABLE: Final = "OLSTREAM_CRASH"

STEPS: Final = {
    "init": "init_transactions: what an earlier run left open is ended",
    "produce": "predictions of a chunk, or a dead letter, are handed to the client",
    "line": "the journal line is handed to the client",
    "flush": "at_least_once: everything is with the broker",
    "offsets": "the input offsets go into the transaction; at_least_once: they are committed",
    "commit": "commit_transaction",
    "journal": "the slot's journal lines are read",
    "relearn": "one range of a journal line is learnt again",
    "join": "the worker subscribes",
    "take": "newly assigned partitions begin",
    "revoke": "partitions are given up",
    "copy": "the loop copies the models for a checkpoint",
    "write": "one file of a checkpoint is written, not yet synced",
    "fsync": "one file of a checkpoint, or its directory, is synced",
    "rename": "the checkpoint gets its name",
    "prune": "one old checkpoint is removed",
    "aside": "a checkpoint of another lineage is set aside",
    "leave": "the consumer is closed",
}
POINTS: Final = tuple(f"{step}.{side}" for step in STEPS for side in ("before", "after"))


def _armed(environ: Mapping[str, str]) -> tuple[str, int]:
    """Which point, and at which passage. ConfigError where there is none of that name."""
    text = environ.get(VARIABLE, "")
    name, _, passage = text.partition(":")
    if text and (name not in POINTS or not (passage or "1").isdecimal() or passage == "0"):
        raise ConfigError(f"{VARIABLE}={text}: write POINT or POINT:N, with one of {', '.join(POINTS)}")
    return name, int(passage or 1)


_left = 0
_name = ""


def arm(environ: Mapping[str, str] = os.environ) -> None:
    """Read the environment. Without the variable no point does anything."""
    global _name, _left
    _name, _left = _armed(environ)
    if _name:
        log.warning("%s is set: this process will kill itself at %s, passage %d", VARIABLE, _name, _left)


def point(name: str) -> None:
    """Die here if this is the point and the passage that was asked for."""
    global _left
    if name == _name:
        _left -= 1
        if _left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
