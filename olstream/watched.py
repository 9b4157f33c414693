"""Which detectors watch what of a learner: `monitor.drift`, told for one task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from olstream.config import MonitorConfig


@dataclass(frozen=True, slots=True)
class Watched:
    """A detector, what it is given, and its own parameters as the file says them."""

    detector: str
    signal: Literal["error", "loss"]
    params: Mapping[str, Any]


# Of these detectors a fall is as much a change as a rise; errors that fall are no cause for alarm.
RISES: Final = {"adwin": {"mode": "up"}, "kswin": {"mode": "up"}}


def watched(monitor: MonitorConfig, task: str) -> list[Watched]:
    """By name; only rises count unless the file says otherwise.

    A regression has no errors to count: it is watched by its loss, and by none of the detectors of errors alone.
    """
    found = []
    for detector, given in sorted(monitor.drift.items()):
        params = RISES.get(detector, {}) | {key: value for key, value in given.items() if key != "signal"}
        if task != "regression":
            found.append(Watched(detector, given.get("signal", "error"), params))
        elif detector not in monitor.ERRORS_ONLY:
            found.append(Watched(detector, "loss", params))
    return found
