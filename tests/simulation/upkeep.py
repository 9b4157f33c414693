"""What an operator does to a slot in memory whose worker is stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from olstream import rollback
from olstream.checkpoint import Checkpoint
from olstream.config import Config
from olstream.io.starts import begin
from olstream.rollback import Plan
from olstream.verify import Compared, Verification
from tests.fakes import FakeInputs, FakeJournal, FakeStore, World
from tests.simulation.lives import sink_of


def planned(world: World, config: Config, seq: int | None) -> Plan:
    """Back to the checkpoint with that seq that reaches farthest into the journal; None: to the empty model."""
    there = [c for c in as_written([*world.aside, *world.checkpoints]) if c.position.seq == seq]
    target = None if seq is None else max(there, key=lambda c: c.position.journal_offset)
    return rollback.plan(config, target, {}, facts_of(world), FakeJournal(world), FakeInputs(world))


def roll_back(world: World, config: Config, seq: int | None) -> None:
    sink = sink_of(world, config)
    plan, run = planned(world, config, seq), f"run-{world.calls}"
    rollback.carry_out(plan, config, run, facts_of(world), begin, sink, FakeStore(world))


def verify(world: World, config: Config, from_empty: bool = False) -> list[Compared]:
    oldest_first = sorted(as_written(world.checkpoints), key=lambda c: c.position.journal_offset)
    kept = {f"{i}: at {c.position.seq}": c for i, c in enumerate(oldest_first)}
    return list(Verification(config, kept, FakeJournal(world), FakeInputs(world), begin).compare(from_empty))


def as_written(checkpoints: list[Checkpoint]) -> list[Checkpoint]:
    """Digests are worked out when a checkpoint is written; those in memory have not been."""

    def worked_out(digest: str | Callable[[], str]) -> str:
        return digest if isinstance(digest, str) else digest()

    return [replace(c, digests={name: worked_out(d) for name, d in c.digests.items()}) for c in checkpoints]


def facts_of(world: World) -> dict[str, dict[str, object]]:
    topics = sorted({topic for topic, _ in world.inputs})
    return {"partitions": {t: sum(topic == t for topic, _ in world.inputs) for t in topics}, "topic_ids": {}}
