"""Is the loop alive, and is it doing its work: two answers, told by the loop, read by probes.

Live: the loop polled lately, whatever the broker does, so that an orchestrator restarts a worker
that is stuck and leaves alone one that waits. Ready: restored, a member of the group, and the
broker answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class _Word:
    """What the loop said last; replaced as a whole, so a reader never sees half of it."""

    polled_at: float
    polled_epoch_s: float | None = None
    restoring: str | None = "starting"
    partitions: int | None = None
    broker: str | None = None
    topics: str | None = None


class Health:
    """What the loop says about itself. It is the only writer; any thread may read."""

    def __init__(
        self,
        live_within_s: float = 30.0,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._live_within_s = live_within_s
        self._monotonic = monotonic
        self._now = now
        self._word = _Word(polled_at=monotonic())

    def polled(self) -> None:
        """The loop came round, or is waiting on purpose and knows it."""
        self._word = replace(self._word, polled_at=self._monotonic(), polled_epoch_s=self._now())

    def restoring(self, why: str) -> None:
        self._word = replace(self._word, restoring=why)

    def restored(self) -> None:
        self._word = replace(self._word, restoring=None)

    def assigned(self, partitions: int | None) -> None:
        """How many partitions we hold; None while we are no settled member of the group."""
        self._word = replace(self._word, partitions=partitions)

    def broker(self, up: bool, why: str = "the broker does not answer") -> None:
        self._word = replace(self._word, broker=None if up else why)

    def topics(self, why: str | None) -> None:
        """None while all topics are there, else a sentence."""
        self._word = replace(self._word, topics=why)

    @property
    def polled_epoch_s(self) -> float | None:
        return self._word.polled_epoch_s

    def live(self) -> tuple[bool, str]:
        """Whether the loop came round lately, and a sentence that says so."""
        idle_s = self._monotonic() - self._word.polled_at
        if idle_s <= self._live_within_s:
            return True, f"The loop came round {idle_s:.1f} s ago."
        return False, f"The loop has not come round for {idle_s:.1f} s (limit {self._live_within_s:g} s): it is stuck."

    def ready(self) -> tuple[bool, str]:
        """Whether records that arrive now are learnt, and a sentence that says why or why not."""
        word = self._word
        if word.broker is not None:
            return False, f"No Kafka: {word.broker}."
        if word.restoring is not None:
            return False, f"Not restored yet: {word.restoring}."
        if word.topics is not None:
            return False, f"Not all of Kafka: {word.topics}."
        if word.partitions is None:
            return False, "No assignment yet: the group has not given this worker its partitions."
        live, sentence = self.live()
        if not live:
            return False, sentence
        return True, f"Restored, {word.partitions} partition{'' if word.partitions == 1 else 's'} assigned."
