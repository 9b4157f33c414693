"""How far behind the input we are: in records, and in seconds.

Records: from our next offset to the stable end, so an open transaction of somebody else's is no
lag. Seconds: how long the oldest record we have not read may have waited; it came after the
last one we read, and after the moment when we last had read everything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

Partition: TypeAlias = tuple[str, int]


class Lag:
    """The loop writes, whole maps at a time; any thread reads."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.partitions: frozenset[Partition] = frozenset()
        self._waiting: dict[Partition, int] = {}
        self._since: dict[Partition, float] = {}  # nothing unread is older than this

    def consumed(self, partition: Partition, record_s: float) -> None:
        self._since[partition] = max(record_s, self._since.get(partition, 0.0))

    def measured(self, positions: Mapping[Partition, tuple[int, int]]) -> None:
        """{partition: (next offset, stable end)} of everything assigned; a negative one is "not known"."""
        waiting = {p: max(0, end - at) for p, (at, end) in positions.items() if at >= 0 and end >= 0}
        now = self._now()
        for partition, records in waiting.items():
            if records == 0:
                self._since[partition] = now
        self._waiting = waiting
        self.assigned(positions)

    def assigned(self, partitions: Collection[Partition]) -> None:
        """Forget the others: they are somebody else's now."""
        self.partitions = frozenset(partitions)
        self._waiting = {p: records for p, records in self._waiting.items() if p in partitions}
        self._since = {p: since for p, since in self._since.items() if p in partitions}

    def by_partition(self) -> dict[tuple[str, ...], float | None]:
        return {(topic, str(number)): records for (topic, number), records in self._waiting.items()}

    def by_topic(self) -> dict[tuple[str, ...], float | None]:
        """Seconds: a topic's slowest partition; a topic of which nothing is known is left out."""
        waiting, since, now = self._waiting, self._since, self._now()
        slowest: dict[tuple[str, ...], float | None] = {}
        for partition, records in waiting.items():
            if records and partition not in since:
                continue
            age = max(0.0, now - since[partition]) if records else 0.0
            topic = (partition[0],)
            slowest[topic] = max(age, slowest.get(topic) or 0.0)
        return slowest
