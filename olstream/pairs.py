"""Partition i of every input topic belongs to one slot: a label has to come to where its features are.

That holds where equal keys have equal partitions, and so where the topics have equally many, and where the group gives
like-numbered partitions to one member, as the range assignor does. On the way from one such assignment to the next a
member may hold a part of a pair: it is not read until the rest comes, and refused where that stays away.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Final

from olstream.checkpoint import Partition
from olstream.config import Config
from olstream.errors import ConfigError
from olstream.properties import session_timeout_s

log = logging.getLogger(__name__)

UNEQUAL: Final = "features and labels of one key may come to different slots"
MAKE_EQUAL: Final = "give the topics equal counts, or set join.allow_partition_mismatch: true"

# What the group needs after a session has ended: some heartbeats, which are 5 s apart by default.
_SHARE_OUT_S: Final = 15.0


def unequal(counts: Mapping[str, int]) -> str | None:
    """The counts of partitions by topic, told, where they differ; None where they are equal."""
    if len(set(counts.values())) < 2:
        return None
    return ", ".join(f"{topic} has {n} partition{'' if n == 1 else 's'}" for topic, n in counts.items())


def refuse_unequal(config: Config, counts: Mapping[str, int]) -> None:
    """ConfigError where the input topics have different counts of partitions; a warning where that is allowed."""
    told = unequal(counts)
    if told is None:
        return
    if not config.join.allow_partition_mismatch:
        raise ConfigError(f"input.topics: {told}: {UNEQUAL}; {MAKE_EQUAL}")
    log.warning("%s: %s (join.allow_partition_mismatch)", told, UNEQUAL, extra={"every_s": 10.0})


def missing(ours: Set[Partition], counts: Mapping[str, int]) -> dict[Partition, list[Partition]]:
    """{partition of ours: its like on other topics that are there and not ours}; complete ones are left out."""
    found: dict[Partition, list[Partition]] = {}
    for topic, number in sorted(ours):
        likes = [(other, number) for other, count in counts.items() if number < count and other != topic]
        if lacks := [like for like in likes if like not in ours]:
            found[topic, number] = lacks
    return found


def named(partitions: Iterable[Partition]) -> str:
    return ", ".join(f"{topic}[{number}]" for topic, number in sorted(partitions))


class Pairs:
    """Which of the partitions that the group gave us wait for their like, and for how long."""

    def __init__(self, config: Config, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.config = config
        self._monotonic = monotonic
        self._patience_s = session_timeout_s({**config.kafka, **config.consumer}) + _SHARE_OUT_S
        self._counts: Mapping[str, int] = {}
        self._since_s: dict[Partition, float] = {}
        self._lacks: dict[Partition, list[Partition]] = {}

    @property
    def waiting(self) -> Set[Partition]:
        """What is not to be read yet, as of the last look."""
        return self._lacks.keys()

    def count(self, counts: Mapping[str, int]) -> None:
        """How many partitions each input topic has now. They can grow, one after the other."""
        told = unequal(counts)
        if told and counts != self._counts and not self.config.join.allow_partition_mismatch:
            log.warning("%s: %s; %s, or the next start is refused", told, UNEQUAL, MAKE_EQUAL)
        self._counts = counts

    def look(self, given: Set[Partition]) -> None:
        """`given`: all that the group has given us by now."""
        cannot_be_kept = self.config.join.allow_partition_mismatch and unequal(self._counts)
        lacks = {} if cannot_be_kept else missing(given, self._counts)
        if lacks and lacks.keys() != self._lacks.keys():
            log.info("%s: not read before %s is ours too", named(lacks), named(_all(lacks.values())))
        now_s = self._monotonic()
        self._since_s = {at: self._since_s.get(at, now_s) for at in lacks}
        self._lacks = lacks

    def refuse_split(self) -> None:
        """ConfigError where a pair stays split for longer than a dead member can hold the rest of it."""
        late = [at for at, since_s in self._since_s.items() if self._monotonic() > since_s + self._patience_s]
        if not late:
            return
        topics = ", ".join(self.config.input.topics)
        told = unequal(self._counts)
        raise ConfigError(
            f"the group has given this slot {named(late)} without {named(_all(self._lacks[at] for at in late))} for "
            f"{self._patience_s:g} s{f' ({told})' if told else ''}, so {UNEQUAL}: every member of group "
            f"{self.config.group} must read the same input.topics ({topics}) by the range assignor"
        )


def _all(lists: Iterable[Iterable[Partition]]) -> set[Partition]:
    return {at for each in lists for at in each}
