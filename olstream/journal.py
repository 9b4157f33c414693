"""The journal: which offsets were learnt, in which order, one line a transaction.

A line is {"slot", "run", "lineage", "seq", "ranges": [[topic, partition, from, to], ...]} with
half-open ranges in the order in which they were learnt. Each start of a worker writes an opening
line first, without seq and ranges; the first of a lineage names its parent: null, or the
[lineage, seq] from which an older history was continued. Where learners begin with something that
start_from names, the opening line has the digest of it: "starts": {learner: digest}. Where partitions moved
between slots, "left": [[topic, partition], ...] and "adopted": [[topic, partition, from, to, rows, labels], ...]
say what that did to rows that wait for labels: see `handover`.

The model of a slot is its checkpoint + its committed lines after it. This file decides which lines
count; reading and writing them is the business of `io`.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson

from olstream.checkpoint import Partition
from olstream.errors import StateError
from olstream.messages import Chunk

RECORDS_MAX: Final = 100_000  # commit early at that many: their answers are kept in memory until then
RANGES_MAX: Final = 1000  # commit early at that many: a line stays far below the smallest message limit


@dataclass(frozen=True, slots=True)
class Range:
    """Records [start, end) of one partition."""

    topic: str
    partition: int
    start: int
    end: int


class Adopted(NamedTuple):
    """Records [start, end) of a partition that came to this slot, read again for what waits there.

    Features from `rows` on that meet no label there wait for it, and labels from `labels` on that meet no features.
    Where nothing waits it only says that the partition stands at `end`.
    """

    topic: str
    partition: int
    start: int
    end: int
    rows: int
    labels: int

    def from_there(self, begin: int) -> Adopted:
        """What of it still is there: the partition begins at that offset now."""
        return self._replace(start=min(max(self.start, begin), self.end))


@dataclass(frozen=True, slots=True)
class Line:
    """One line of one slot. An opening line has no seq."""

    slot: int
    run: str
    lineage: str
    seq: int | None = None
    ranges: tuple[Range, ...] = ()
    parent: tuple[str, int] | None = None
    first_of_lineage: bool = False
    starts: Mapping[str, str] = field(default_factory=dict)  # of learners that begin here, and not empty
    left: tuple[Partition, ...] = ()  # after the ranges: what waited of these is another slot's now
    adopted: tuple[Adopted, ...] = ()  # and what waited of these elsewhere was gathered
    offset: int = -1  # where it stands in the journal

    @property
    def is_opening(self) -> bool:
        return self.seq is None

    def to_bytes(self) -> bytes:
        fields: dict[str, Any] = {"slot": self.slot, "run": self.run, "lineage": self.lineage}
        if self.seq is not None:
            fields["seq"] = self.seq
            fields["ranges"] = [[r.topic, r.partition, r.start, r.end] for r in self.ranges]
        if self.first_of_lineage:
            fields["parent"] = self.parent
        if self.left:
            fields["left"] = self.left
        if self.adopted:
            fields["adopted"] = [list(one) for one in self.adopted]
        if self.starts:
            fields["starts"] = self.starts
        return orjson.dumps(fields)

    @classmethod
    def from_bytes(cls, data: bytes, offset: int) -> Line:
        try:
            fields = orjson.loads(data)
            return cls(
                slot=fields["slot"],
                run=fields["run"],
                lineage=fields["lineage"],
                seq=fields.get("seq"),
                ranges=tuple(Range(*r) for r in fields.get("ranges", ())),
                parent=tuple(fields["parent"]) if fields.get("parent") else None,
                first_of_lineage="parent" in fields,
                starts=fields.get("starts", {}),
                left=tuple((topic, partition) for topic, partition in fields.get("left", ())),
                adopted=tuple(Adopted(*one) for one in fields.get("adopted", ())),
                offset=offset,
            )
        except (ValueError, KeyError, TypeError) as error:
            raise StateError(
                f"the journal holds at offset {offset} a record that is no journal line ({error}): "
                "a journal serves one group only; name another topic in output.journal"
            ) from error


@dataclass(slots=True)
class Learnt:
    """The ranges learnt since the last commit, in order; neighbours are joined."""

    ranges: list[Range] = field(default_factory=list)
    records: int = 0

    def add(self, chunk: Chunk) -> None:
        self.records += len(chunk)
        start, end = chunk.offsets[0], chunk.offsets[-1] + 1
        last = self.ranges[-1] if self.ranges else None
        if last and (last.topic, last.partition) == (chunk.topic, chunk.partition):
            self.ranges[-1] = Range(last.topic, last.partition, last.start, end)
        else:
            self.ranges.append(Range(chunk.topic, chunk.partition, start, end))

    def is_full(self) -> bool:
        """Whether one transaction should hold no more."""
        return self.records >= RECORDS_MAX or len(self.ranges) >= RANGES_MAX

    def __bool__(self) -> bool:
        return bool(self.ranges)


def reached(lines: Iterable[Line]) -> dict[Partition, int]:
    """The next offset of each partition that these lines touch."""
    return _ends(r for line in lines for r in line.ranges)


def stands(lines: Iterable[Line]) -> dict[Partition, int]:
    """Where each partition stands that these lines have learnt from or taken over."""
    found: dict[Partition, int] = {}
    for line in lines:
        found |= _ends(line.ranges)
        found |= {(one.topic, one.partition): one.end for one in line.adopted}
    return found


def _ends(ranges: Iterable[Range]) -> dict[Partition, int]:
    return {(r.topic, r.partition): r.end for r in ranges}


def last_seq(lines: Sequence[Line], otherwise: int = 0) -> int:
    """The seq of the last of these lines, none of them an opening line; `otherwise` where there is none."""
    return (lines[-1].seq if lines else None) or otherwise


def lineage_lines(
    lines: Sequence[Line],
    lineage: str,
    after_seq: int,
    committed: Mapping[Partition, int] | None = None,
    known_seq: int = 0,
    holder: str | None = None,
) -> list[Line]:
    """The lines of a lineage that count after `after_seq`, without holes; StateError where one is missing.

    `committed` (at_least_once only): lines are not tied to the commit of their offsets there, so a line
    counts only where the group has committed all its ranges, not after a later run's opening line (it
    was a zombie's), and not where a later line of the lineage took its seq or one before it. Up to
    `known_seq` a checkpoint was built on them: they count wherever the group was moved to since.
    `holder`: the run that held the slot where these lines begin.
    """
    own = [line for line in lines if line.lineage == lineage]
    if committed is not None:
        own = _settled(own, committed, known_seq, holder)
    counting = [line for line in own if line.seq is not None and line.seq > after_seq]
    _refuse_hole(counting, after_seq)
    return counting


def in_doubt(lines: Sequence[Line], lineage: str, after_seq: int, holder: str | None) -> list[Line]:
    """at_least_once: lines after the last that counts, which will too if their writer commits their offsets yet."""
    own = [line for line in lines if line.lineage == lineage]
    everything = dict.fromkeys(reached(own), sys.maxsize)
    return [line for line in _settled(own, everything, 0, holder) if (line.seq or 0) > after_seq]


def _refuse_hole(counting: Sequence[Line], after_seq: int) -> None:
    for expected, line in enumerate(counting, after_seq + 1):
        if line.seq != expected:
            raise StateError(
                f"the journal misses line {expected} of slot {line.slot} (found {line.seq} at offset {line.offset}): "
                "set checkpoint.on_missing: fresh to begin with an empty model, "
                "or go back with `olstream state rollback`"
            )


def _settled(
    own: Iterable[Line], committed: Mapping[Partition, int], known_seq: int, holder: str | None = None
) -> list[Line]:
    settled: list[Line] = []
    for line in own:
        if line.is_opening:
            holder = line.run
        elif holder in (None, line.run):
            while settled and settled[-1].seq is not None and line.seq is not None and settled[-1].seq >= line.seq:
                settled.pop()
            settled.append(line)
    while settled and (settled[-1].seq or 0) > known_seq and not is_below(settled[-1], committed):
        settled.pop()
    return settled


def is_below(line: Line, committed: Mapping[Partition, int]) -> bool:
    """Whether all that the line names is committed."""
    return all(committed.get((r.topic, r.partition), -1) >= r.end for r in line.ranges)


def ancestry(lines: Sequence[Line], lineage: str) -> list[tuple[str, int | None]]:
    """The way from the empty model to this lineage: [(lineage, up to which seq; None = all), ...].

    StateError where an ancestor's opening line is gone: then nobody can say how it all began.
    """
    way: list[tuple[str, int | None]] = []
    name: str | None = lineage
    until: int | None = None
    while name is not None:
        way.append((name, until))
        first = next((line for line in lines if line.first_of_lineage and line.lineage == name), None)
        if first is None:
            raise StateError(
                f"the journal no longer holds the beginning of lineage {name}, so the model cannot be learnt again "
                "from it: bring its state directory back, or set checkpoint.on_missing: fresh to begin anew"
            )
        name, until = first.parent if first.parent else (None, None)
    return way[::-1]


def newest_lineage(lines: Sequence[Line]) -> str:
    """The one that began last: from its opening line on it is what the slot is. `lines` are not none."""
    begun = [line for line in lines if line.first_of_lineage]
    return (begun or lines)[-1].lineage


def lines_to(lines: Sequence[Line], lineage: str, seq: int) -> list[Line]:
    """The lines that led to this place, from the empty model or from as far back as the journal tells."""
    found: list[Line] = []
    name: str | None = lineage
    while name is not None:
        own = [line for line in lines if line.lineage == name]
        found[:0] = _settled(own, {}, seq)  # committed is what led on, and nothing past it
        parent = next((line.parent for line in own if line.first_of_lineage), None)
        name, seq = parent or (None, 0)
    return found


def lines_before(lines: Sequence[Line], lineage: str) -> list[Line]:
    """The lines that led from the empty model through all its parents to a lineage; StateError where one is missing."""
    found: list[Line] = []
    for parent, until in ancestry(lines, lineage)[-2:-1]:
        found = lines_to(lines, parent, until or 0)
    _refuse_hole(found, 0)
    return found


def ends(lines: Iterable[Line], partitions: Collection[Partition]) -> dict[Partition, int]:
    """Up to where the group has learnt those of these partitions that any line names.

    The last line of each slot counts: after a rollback to moved offsets it may lie below earlier ones.
    """
    by_slot: dict[int, dict[Partition, int]] = {}
    for line in lines:
        by_slot.setdefault(line.slot, {}).update(reached([line]))
    found: dict[Partition, int] = {}
    for of_slot in by_slot.values():
        for at in of_slot.keys() & partitions:
            found[at] = max(of_slot[at], found.get(at, 0))
    return found
