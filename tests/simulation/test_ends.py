"""What a life leaves behind where its input ends in a gap, or in nothing."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from olstream.checkpoint import Partition
from olstream.config import Config
from olstream.errors import StateError
from olstream.messages import Chunk
from tests.fakes import FakeSource, World
from tests.simulation.lives import live
from tests.simulation.test_crashes import records

EVENTS: Partition = ("events", 0)


class OvertakenSource(FakeSource):
    """After twenty records there is a gap, and its forerunners are committed, as they are by then."""

    def poll(self, records_max: int, timeout_s: float) -> list[Chunk]:
        if self.next[EVENTS] < 20:
            return super().poll(min(records_max, 20 - self.next[EVENTS]), timeout_s)
        if self.world.committed[EVENTS] < 20:
            return []
        raise StateError("retention took the others")


class HoledSource(FakeSource):
    """Behind the last record are holes up to offset 50."""

    def passed(self) -> Mapping[Partition, int]:
        return {EVENTS: 50} if self.next[EVENTS] == 30 else {}


def config_of(interval: str) -> Config:
    return Config.model_validate(
        {
            "input": {"topics": ["events"], "batch_max": 7},
            "learners": {"first": {"algorithm": "arow"}},
            "checkpoint": {"interval": interval},
        }
    )


def test_before_a_gap_ends_it_the_worker_saves_what_it_learnt() -> None:
    """What the next start would have to learn again may be gone by then."""
    world = World({EVENTS: records(1, 30)})

    with pytest.raises(StateError, match="retention"):
        live(world, config_of("1h"), source=OvertakenSource)

    assert world.checkpoints[-1].position.offsets == {EVENTS: 20}


def test_holes_at_the_end_are_passed_with_the_checkpoint() -> None:
    """Else retention would seem to take unread records there."""
    world = World({EVENTS: records(1, 30)})

    live(world, config_of("1h"), source=HoledSource)

    assert world.committed == {EVENTS: 50}
    assert world.checkpoints[-1].position.offsets == {EVENTS: 30}
