"""A broker, a disk and a clock in memory, which can die at any outside call.

They obey the ports' contracts exactly, and nothing more: what a real broker does in between is
tested on a real one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from olstream.checkpoint import Checkpoint, Partition, Position
from olstream.config import Config
from olstream.facts import Facts
from olstream.handover import Moved
from olstream.journal import Line, Range
from olstream.messages import Chunk, Outgoing, Records
from olstream.model import Model
from olstream.pipeline import Pipeline, Processed
from olstream.ports import Lost
from olstream.recover import checkpoint_of
from olstream.reload import facts_under


class Crash(BaseException):
    """The process died here. No code of ours may catch it."""


@dataclass
class World:
    """What survives a crash, and the count of outside calls that says when to have one."""

    inputs: dict[Partition, list[bytes | None]]
    journal: list[bytes] = field(default_factory=list)
    visible: list[tuple[str, bytes | None, bytes]] = field(default_factory=list)
    committed: dict[Partition, int] = field(default_factory=dict)
    notes: dict[Partition, str] = field(default_factory=dict)  # beside what is committed
    slot: int = 0  # whose checkpoints these are, and whose calls
    checkpoints: list[Checkpoint] = field(default_factory=list)
    aside: list[Checkpoint] = field(default_factory=list)
    calls: int = 0
    crash_at: int = -1
    lose_at: int = -1  # this call ends in Lost instead

    def of_slot(self, slot: int) -> World:
        """The same broker, and the disk of another worker."""
        return World(self.inputs, self.journal, self.visible, self.committed, self.notes, slot)

    def commit(self, offsets: Mapping[Partition, int], note: Callable[[Partition], str]) -> None:
        self.committed.update(offsets)
        self.notes.update({at: note(at) for at in offsets})

    def tick(self) -> None:
        self.calls += 1
        if self.calls == self.crash_at:
            raise Crash
        if self.calls == self.lose_at:
            raise Lost("told to")


class FakeSource:
    """All partitions are ours; batches are of any size up to the limit."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.random = random.Random(seed)
        self.next = {at: world.committed.get(at, 0) for at in world.inputs}
        self._unmarked = {at: start for at, start in self.next.items() if at not in world.committed}

    def on_revoke(self, before_revoke: Callable[[], None]) -> None: ...

    def unmarked(self) -> Mapping[Partition, int]:
        starts, self._unmarked = self._unmarked, {}
        return starts

    def passed(self) -> Mapping[Partition, int]:
        return {}

    def moved(self) -> Moved | None:
        return None

    def is_settled(self) -> bool:
        return True

    def poll(self, records_max: int, timeout_s: float) -> list[Chunk]:
        self.world.tick()
        chunks = []
        for (topic, partition), start in sorted(self.next.items()):
            end = min(len(self.world.inputs[topic, partition]), start + self.random.randint(0, records_max))
            if end > start:
                chunks.append(chunk_of(self.world, Range(topic, partition, start, end)))
                self.next[topic, partition] = end
        return chunks

    def close(self) -> None: ...


class FakeSink:
    """exactly_once: nothing is visible before a commit, and then all of it is."""

    def __init__(self, world: World, slot: int) -> None:
        self.world = world
        self.note: Callable[[Partition], str] = lambda _at: ""
        self.pending: list[tuple[str, bytes | None, bytes]] = []

    def open_run(self, line: Line, offsets: Mapping[Partition, int] | None = None) -> int:
        return self.commit(line, offsets or {}) - 1

    def publish(self, records: Records) -> None:
        self.world.tick()
        rows = zip(records.keys, records.values, strict=True)
        self.pending += [(records.topic, key, value) for key, value in rows if value is not None]

    def publish_one(self, record: Outgoing) -> None:
        self.world.tick()
        assert record.value is not None
        self.pending.append((record.topic, record.key, record.value))

    def commit(self, line: Line | None, offsets: Mapping[Partition, int]) -> int:
        self.world.tick()
        self.world.visible += self.pending
        self.pending = []
        if line is not None:
            self.world.journal.append(line.to_bytes())
        self.world.commit(offsets, self.note)
        self.world.tick()
        return len(self.world.journal)

    def look(self) -> int | None:
        return len(self.world.journal)

    def close(self) -> None: ...


class FakePlainSink(FakeSink):
    """at_least_once: records are visible when sent, the line when flushed, the offsets when committed."""

    def publish(self, records: Records) -> None:
        super().publish(records)
        self.world.visible += self.pending
        self.pending = []

    def commit(self, line: Line | None, offsets: Mapping[Partition, int]) -> int:
        self.world.tick()
        if line is not None:
            self.world.journal.append(line.to_bytes())
        after = len(self.world.journal)
        self.world.tick()
        self.world.commit(offsets, self.note)
        self.world.tick()
        return after


class FakeJournal:
    def __init__(self, world: World) -> None:
        self.world = world

    def read(self, start: int) -> list[Line]:
        self.world.tick()
        lines = [Line.from_bytes(data, start + i) for i, data in enumerate(self.world.journal[start:])]
        return [line for line in lines if line.slot == self.world.slot]

    def end(self) -> int:
        return len(self.world.journal)

    def is_cut(self) -> bool:
        return False

    def read_all_slots(self) -> list[Line]:
        self.world.tick()
        return [Line.from_bytes(data, i) for i, data in enumerate(self.world.journal)]


class FakeInputs:
    lost = 0

    def __init__(self, world: World) -> None:
        self.world = world

    def read(self, wanted: Range, records_max: int) -> Iterator[Chunk]:
        for start in range(wanted.start, wanted.end, records_max):
            self.world.tick()
            end = min(start + records_max, wanted.end)
            yield chunk_of(self.world, Range(wanted.topic, wanted.partition, start, end))

    def committed(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        return {at: self.world.committed[at] for at in partitions if at in self.world.committed}

    def notes(self, partitions: Sequence[Partition]) -> dict[Partition, str]:
        return {at: self.world.notes[at] for at in partitions if at in self.world.notes}

    def end(self, topic: str, partition: int) -> int:
        return len(self.world.inputs[topic, partition])

    def begin(self, topic: str, partition: int) -> int:
        return 0

    def close(self) -> None: ...


class FakeStore:
    skipped = 0

    def __init__(self, world: World) -> None:
        self.world = world

    def load(self) -> Checkpoint | None:
        latest_first = reversed(self.world.checkpoints)
        return max(latest_first, key=lambda c: (c.position.journal_offset, c.position.seq), default=None)

    def save(self, checkpoint: Checkpoint) -> int:
        self.world.tick()
        self.world.checkpoints.append(checkpoint)
        self.world.tick()
        return 0

    def has_damaged(self) -> bool:
        return False

    def begin(self, checkpoint: Checkpoint) -> None:
        self.save(checkpoint)
        self.set_others_aside(checkpoint.position.lineage)

    def set_others_aside(self, lineage: str) -> None:
        for checkpoint in list(self.world.checkpoints):
            if checkpoint.position.lineage != lineage:
                self.world.tick()
                self.world.checkpoints.remove(checkpoint)
                self.world.aside.append(checkpoint)

    def keep_removed(self, checkpoint: Checkpoint) -> None:
        self.world.tick()


class FakeCheckpoints:
    """Written at once, in the loop."""

    def __init__(self, config: Config, store: FakeStore, facts: Facts) -> None:
        self.config = config
        self.store = store
        self.facts = facts

    def busy(self) -> bool:
        return False

    def write(self, pipeline: Pipeline, position: Position) -> None:
        self.store.save(checkpoint_of(self.config, pipeline.models, position, self.facts))

    def write_under(self, config: Config, pipeline: Pipeline, position: Position) -> None:
        facts = facts_under(self.facts, self.config, config, position)
        self.store.save(checkpoint_of(config, pipeline.models, position, facts))
        self.config, self.facts = config, facts

    def wait(self) -> None: ...


class FakeClock:
    """Every look at it is a hundred milliseconds later."""

    def __init__(self) -> None:
        self.at_s = 0.0

    def now_s(self) -> float:
        self.at_s += 0.1
        return self.at_s

    def epoch_s(self) -> float:
        return 1_764_460_800.0 + self.at_s


class SilentWatch:
    """Nobody is looking."""

    def processed(self, chunk: Chunk, done: Processed) -> None: ...
    def turned(self, models: object, n: int, seconds: float) -> None: ...
    def committed(self) -> None: ...
    def checkpoint_taken(self) -> None: ...


def chunk_of(world: World, wanted: Range) -> Chunk:
    offsets = list(range(wanted.start, wanted.end))
    return Chunk(
        wanted.topic,
        wanted.partition,
        offsets,
        [1_764_460_800_000 + offset for offset in offsets],
        [None] * len(offsets),
        world.inputs[wanted.topic, wanted.partition][wanted.start : wanted.end],
        [None] * len(offsets),
    )


def ranges_learnt(world: World) -> list[Range]:
    """What the journal says, neighbours joined: one range a partition where nothing is missing or twice."""
    lines = [Line.from_bytes(data, i) for i, data in enumerate(world.journal)]
    ranges = sorted((r.topic, r.partition, r.start, r.end) for line in lines for r in line.ranges)
    joined: list[Range] = []
    for (topic, partition), group in groupby(ranges, key=lambda r: r[:2]):
        for _, _, start, end in group:
            if joined and joined[-1].topic == topic and joined[-1].partition == partition and joined[-1].end == start:
                joined[-1] = Range(topic, partition, joined[-1].start, end)
            else:
                joined.append(Range(topic, partition, start, end))
    return joined


def digests(models: Mapping[str, Model]) -> dict[str, str]:
    return {name: model.digest() for name, model in models.items()}
