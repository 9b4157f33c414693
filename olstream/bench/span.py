"""A stretch of work, on a clock that all processes of a machine share."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self


class Instant(NamedTuple):
    """When, and how much this process had computed until then."""

    at_s: float
    cpu_s: float

    @classmethod
    def now(cls) -> Self:
        return cls(time.monotonic(), time.process_time())


@dataclass(frozen=True, slots=True)
class Span:
    """So many records from one instant to another."""

    records: int
    start: Instant
    end: Instant

    @property
    def us(self) -> float:
        """Microseconds per record."""
        return (self.end.at_s - self.start.at_s) / self.records * 1e6

    @property
    def cpu_us(self) -> float:
        """Microseconds of CPU per record, the client's own threads included: what a busy machine changes little."""
        return (self.end.cpu_s - self.start.cpu_s) / self.records * 1e6


def together(spans: Sequence[Span]) -> float:
    """Microseconds per record of processes side by side, from the first start to the last end."""
    seconds = max(span.end.at_s for span in spans) - min(span.start.at_s for span in spans)
    return seconds / sum(span.records for span in spans) * 1e6
