"""What the loop and recovery need from outside. `io` gives the real thing, tests give fakes.

None of these catches an error of the world to go on with a guess: they retry where that is
safe, and raise where somebody must decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from olstream.checkpoint import Checkpoint, Partition, Position
from olstream.config import Config
from olstream.handover import Moved
from olstream.journal import Line, Range
from olstream.messages import Chunk, Outgoing, Records
from olstream.pipeline import Pipeline


class Lost(Exception):
    """What was learnt since the last commit is not ours any more: drop the models and recover."""


class Source(Protocol):
    """Our part of the input topics, as a member of the group."""

    def poll(self, records_max: int, timeout_s: float) -> list[Chunk]:
        """Records in order, one chunk a partition, sorted by topic and partition.

        The group moves partitions only in here; before they go, `before_revoke` is called.
        Raises Lost where they went without asking.
        """

    def on_revoke(self, before_revoke: Callable[[], None]) -> None: ...

    def unmarked(self) -> Mapping[Partition, int]:
        """Where partitions begin whose position was never committed by us; asked once, to be committed at once."""

    def passed(self) -> Mapping[Partition, int]:
        """Where partitions stand after holes at their end; asked once, when all that was learnt is committed."""

    def moved(self) -> Moved | None:
        """What the group has changed since it was last asked; None where that is nothing."""

    def is_settled(self) -> bool:
        """Whether no line of an earlier life can come to count any more: before, nobody knows where we stand."""

    def close(self) -> None: ...


class Sink(Protocol):
    """Where predictions, dead letters, journal lines and offsets go, all or nothing."""

    note: Callable[[Partition], str]
    """What is written beside an offset of that partition, when it is committed."""

    def open_run(self, line: Line, offsets: Mapping[Partition, int] | None = None) -> int:
        """Write an opening line, and with it input offsets; where it stands in the journal."""

    def publish(self, records: Records) -> None:
        """Send records."""

    def publish_one(self, record: Outgoing) -> None:
        """Send one dead letter: cut it where the broker finds it too large."""

    def commit(self, line: Line | None, offsets: Mapping[Partition, int]) -> int:
        """Make all that was sent visible, with this line and these input offsets.

        Returns only when that is certain: the journal offset after the line. Raises Lost where it
        is certain that it did not happen and cannot be repeated.
        """

    def look(self) -> int | None:
        """When there was nothing to commit: the journal's end, where nobody else has written for this slot up to there.

        None where nobody tells soon; FencedError where another worker holds the slot.
        """

    def close(self) -> None: ...


class Journal(Protocol):
    """The committed lines of this slot."""

    def read(self, start: int) -> list[Line]:
        """From a journal offset to the end as it is now; StateError where `start` is gone."""

    def end(self) -> int:
        """The end as it is now; to be asked only while no own transaction is open."""

    def is_cut(self) -> bool:
        """Whether its beginning has been taken away."""

    def read_all_slots(self) -> Iterable[Line]:
        """Every line of every slot that is still there."""


class Inputs(Protocol):
    """Input records by range, outside the group, for learning again."""

    lost: int
    """Records that were gone, and passed over because of `input.on_gap: skip`."""

    def read(self, wanted: Range, records_max: int) -> Iterator[Chunk]: ...

    def committed(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        """The group's committed offsets; partitions without one are left out."""

    def notes(self, partitions: Sequence[Partition]) -> dict[Partition, str]:
        """What stands beside those of them that we have committed."""

    def end(self, topic: str, partition: int) -> int:
        """The end of a partition as it is now."""

    def begin(self, topic: str, partition: int) -> int:
        """Where a partition begins now."""

    def close(self) -> None: ...


class Store(Protocol):
    """This slot's checkpoints."""

    skipped: int
    """Damaged ones that `load` passed over."""

    def load(self) -> Checkpoint | None: ...

    def save(self, checkpoint: Checkpoint) -> int: ...

    def has_damaged(self) -> bool: ...

    def begin(self, checkpoint: Checkpoint) -> None:
        """Write the first one of a new lineage; those of others are kept, out of the way."""

    def set_others_aside(self, lineage: str) -> None:
        """Keep the checkpoints of other lineages under other names: no start will load them."""

    def keep_removed(self, checkpoint: Checkpoint) -> None:
        """Write one of learners that are no longer configured; no start will load it."""


class Checkpoints(Protocol):
    """Writes checkpoints beside the loop: only the copy is taken in it."""

    def busy(self) -> bool: ...

    def write(self, pipeline: Pipeline, position: Position) -> None: ...

    def write_under(self, config: Config, pipeline: Pipeline, position: Position) -> None:
        """The first one under another configuration, and whole when this returns, with nothing else being written.

        Raises OSError, and then nobody knows whether a start would find it.
        """

    def wait(self) -> None: ...


class Clock(Protocol):
    """Time for budgets (`now_s`, monotonic) and time for people (`epoch_s`)."""

    def now_s(self) -> float: ...

    def epoch_s(self) -> float: ...
