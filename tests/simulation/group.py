"""Several workers on one broker in memory, whose group moves partitions between them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from olstream.checkpoint import Partition
from olstream.config import Config
from olstream.handover import Moved, Taken, read_note
from olstream.loop import Loop
from olstream.messages import Chunk
from olstream.ports import Lost
from tests.fakes import (
    Crash,
    FakeSource,
    World,
)
from tests.simulation.lives import begun


@dataclass
class Group:
    """Partitions of one number go together. `wanted`: whose they shall be; `held`: who has not given them up yet.

    `steps`: members are told what changes (KIP-848); else all of them give up all and get all anew (classic).
    """

    wanted: dict[int, int]
    steps: bool
    held: dict[int, int] = field(default_factory=dict)
    generation: int = 0

    def share_out(self, rng: random.Random, slots: int) -> None:
        self.wanted = {number: rng.randrange(slots) for number in self.wanted}
        self.generation += 1

    def let_go(self, slot: int) -> None:
        """Its session has ended."""
        self.held = {number: other for number, other in self.held.items() if other != slot}

    def may_have(self, slot: int) -> set[int]:
        return {n for n, whose in self.wanted.items() if whose == slot and self.held.get(n, slot) == slot}


class GroupSource(FakeSource):
    """The part of one member. Between two polls it keeps what it has."""

    def __init__(self, world: World, seed: int, group: Group) -> None:
        super().__init__(world, seed)
        self.group = group
        self.next, self._unmarked = {}, {}
        self.before_revoke: Callable[[], None] = lambda: None
        self.generation = -1
        self.change: Moved | None = None

    def on_revoke(self, before_revoke: Callable[[], None]) -> None:
        self.before_revoke = before_revoke

    def moved(self) -> Moved | None:
        change, self.change = self.change, None
        return change

    def poll(self, records_max: int, timeout_s: float) -> list[Chunk]:
        self._rebalance()
        return super().poll(records_max, timeout_s)

    def _rebalance(self) -> None:
        mine, old = self.group.may_have(self.world.slot), {number for _, number in self.next}
        if mine == old and self.generation == self.group.generation:
            return
        goes = old - mine if self.group.steps else old
        if goes:
            self.before_revoke()
        gone = {at for at in self.next if at[1] in goes}
        for at in gone:
            del self.next[at]
        self.group.let_go(self.world.slot)
        self.group.held |= dict.fromkeys(mine, self.world.slot)
        come = [at for at in self.world.inputs if at[1] in mine and at not in self.next]
        taken = {at: self._taken(at) for at in come}
        self.next |= {at: one.offset for at, one in taken.items()}
        self.generation = self.group.generation
        self.change = Moved(taken, frozenset(self.next), frozenset(gone), not self.group.steps)

    def _taken(self, at: Partition) -> Taken:
        if at not in self.world.committed:
            self._unmarked[at] = 0
            return Taken(0, None)
        return Taken(self.world.committed[at], read_note(self.world.notes[at]))


class Member:
    """One slot, life after life."""

    def __init__(self, world: World, config: Config, group: Group, seed: int) -> None:
        self.world, self.group = world, group
        self.config = config.model_copy(update={"slot": world.slot})
        self.random = random.Random(seed)
        self.loop: Loop | None = None

    def start(self) -> Loop:
        return begun(self.world, self.config, lambda: GroupSource(self.world, self.random.randrange(1000), self.group))

    def step(self) -> None:
        """One turn, or the end of a life: the group keeps its place, or gives it to others."""
        try:
            self.loop = self.loop or self.start()
            self.loop.step()
        except (Crash, Lost):
            self.world.crash_at = self.world.lose_at = -1
            self.loop = None
            if self.random.random() < 0.5:
                self.group.let_go(self.world.slot)

    def stop(self) -> None:
        """In good order; the group gives its place to others."""
        assert self.loop is not None
        self.loop.commit()
        self.loop.checkpoint()
        self.loop = None
        self.group.let_go(self.world.slot)

    def digests(self) -> Mapping[str, str]:
        assert self.loop is not None
        return {name: model.digest() for name, model in self.loop.pipeline.models.items()}
