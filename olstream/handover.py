"""What waits when a partition goes from one slot to another: it is dropped here, and gathered again there.

What waits is no part of the topics by itself, but follows from them: with each offset that a slot commits it notes
where to begin to read so as to find it again. The slot that gets the partition reads from there up to what is
committed, joins without learning, and keeps what is left over. Labels of those rows are learnt when they come, and not
measured: another slot has predicted them. Which records were read for that stands in the journal, so that whoever
learns again does the same.
"""

from __future__ import annotations

import heapq
import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import msgspec

from olstream.checkpoint import Partition
from olstream.decode import kept
from olstream.journal import Adopted, Range
from olstream.messages import Chunk, Example, time_of
from olstream.model import Model
from olstream.route import Route
from olstream.waiting import NO_TIME, NOTHING, Early, Entry, Row, Waiting

log = logging.getLogger(__name__)

NOTE_BYTES_MAX: Final = 3500  # brokers take 4096
ROOM: Final = 2  # so many times what may wait is kept in hand while topics are joined


class Note(msgspec.Struct, array_like=True):
    """Beside a committed offset: who committed it, and where what waits there begins."""

    slot: int
    row: int | None = None  # offset of the oldest row that waits for its label
    early: int | None = None  # and of the oldest label that waits for its row
    since: dict[str, int] = {}  # from where to read each topic to find all of these again; not there: nobody knows

    @property
    def waits(self) -> bool:
        return self.row is not None or self.early is not None


class Taken(NamedTuple):
    """A partition that has come to us: where it begins, and what stood beside that."""

    offset: int
    note: Note | None


@dataclass(frozen=True, slots=True)
class Moved:
    """What the group has changed since it was last asked. `whole`: `given` is all that we have, no step to it."""

    taken: Mapping[Partition, Taken]
    given: frozenset[Partition]
    gone: frozenset[Partition]
    whole: bool


Read: TypeAlias = Callable[[Range], Iterator[Chunk]]
Reading: TypeAlias = Callable[[Chunk], Iterable[tuple[int, Example, Route]]]


def note_of(at: Partition, slot: int, topics: Sequence[str], models: Iterable[Model]) -> str:
    """The note beside an offset of that partition."""
    waits: dict[bool, list[Entry]] = {False: [], True: []}
    for model in models:
        for early, found in waits.items():
            entry = model.waiting.oldest(at, early)
            if entry is not None:
                found.append(entry)
    row, label = (min((entry.offset for entry in found), default=None) for found in waits.values())
    since = [entry.beside for found in waits.values() for entry in found]
    note = Note(slot, row, label)
    if since and all(len(beside) == len(topics) for beside in since):  # else the input had other topics then
        note.since = dict(zip(topics, map(min, zip(*since, strict=True)), strict=True))
    text = msgspec.json.encode(note)
    if len(text) > NOTE_BYTES_MAX:  # dozens of topics with the same keys
        note.since = {}
        text = msgspec.json.encode(note)
    return text.decode()


def read_note(text: str) -> Note | None:
    """None where there is none, as before notes were written."""
    try:
        return msgspec.json.decode(text, type=Note)
    except msgspec.DecodeError:
        return None


def adoption(
    taken: Mapping[Partition, Taken], slot: int, held: Collection[Partition], away: Collection[Partition]
) -> tuple[Adopted, ...]:
    """What has to be read again of partitions that another slot had, or that we had given up.

    Partitions of one number go together. Where several topics share keys, what is new here is told even if nothing
    waits there: whoever gathers later has to know where each of them stood.
    """
    found: list[Adopted] = []
    for number in sorted({p for _, p in taken}):
        its = {at: one for at, one in taken.items() if at[1] == number}
        notes = {at: one.note for at, one in its.items() if one.note is not None}
        has_moved = any(note.slot != slot or at in away for at, note in notes.items())
        waits = [note for note in notes.values() if note.waits] if has_moved else []
        if len(its) > 1 or waits or any(at in held or at in away for at in its):
            new = {at: one for at, one in its.items() if has_moved or (one.note is None and at not in held)}
            found += [_to_read(at, new[at], [note.since.get(at[0], 0) for note in waits]) for at in sorted(new)]
    return tuple(found)


def _to_read(at: Partition, taken: Taken, since: list[int]) -> Adopted:
    end, note = taken.offset, taken.note or Note(-1)
    row, early = (end if offset is None else offset for offset in (note.row, note.early))
    return Adopted(*at, min([*since, row, early]), end, row, early)


class _Half(NamedTuple):
    """Features or a label, in the order of their times."""

    time_ms: int
    key: str
    entry: Entry | None  # None: both in one record
    names: Sequence[str]  # of the learners where it may wait


def adopt(
    adopted: Sequence[Adopted], topics: Sequence[str], models: Mapping[str, Model], read: Read, reading: Reading
) -> None:
    """Read, join without learning, and let what is left over wait here."""
    for model in models.values():
        model.waiting.come((one.topic, one.partition) for one in adopted)
    for number in sorted({one.partition for one in adopted}):
        its = {one.topic: one for one in adopted if one.partition == number}
        beside = tuple(its[topic].start if topic in its else -1 for topic in topics)
        streams = [_halves(one, beside, models, read, reading) for one in its.values() if one.start < one.end]
        if streams:
            gathered = _Gathered(its, [model.waiting for model in models.values()])
            for half in heapq.merge(*streams, key=lambda half: half.time_ms):
                gathered.add(half)
            gathered.keep({name: model.waiting for name, model in models.items()})


def _halves(
    one: Adopted, beside: tuple[int, ...], models: Mapping[str, Model], read: Read, reading: Reading
) -> Iterator[_Half]:
    """`beside`: whoever gathers this again later has to read the topics from where we read them."""
    for chunk in read(Range(one.topic, one.partition, one.start, one.end)):
        for i, example, route in reading(chunk):
            if example.id is None or not example.weight > 0.0:
                continue
            if example.label is not None and models[route.learner].refusal_of_label(example.label) is not None:
                continue
            record_ms = chunk.timestamps[i]
            time_ms = time_of(example.ts_ms, record_ms)
            key, names = str(example.id), (route.learner, *route.shadows)
            entry = _entry(example, route, record_ms, (one.topic, one.partition, chunk.offsets[i]), beside)
            yield _Half(NO_TIME if time_ms is None else time_ms, key, entry, names)


def _entry(
    example: Example, route: Route, record_ms: int | None, place: tuple[str, int, int], beside: tuple[int, ...]
) -> Entry | None:
    assert example.id is not None
    if example.features is None:
        assert example.label is not None
        return Early(
            example.id, example.label, example.weight, example.ts_ms, record_ms, example.learner, *place, beside
        )
    if example.label is not None:
        return None
    return Row(
        example.id, kept(example), example.weight, example.ts_ms, record_ms, route.learner, *place, beside,
        made=NOTHING, is_measured=False,
    )  # fmt: skip


class _Gathered:
    """Rows and labels that have not met yet. Whichever comes first waits for the other."""

    def __init__(self, adopted: Mapping[str, Adopted], bounds: Sequence[Waiting]) -> None:
        self.adopted = adopted
        self.entries_max = max(waiting.entries_max for waiting in bounds)
        self.bytes_most = ROOM * max(waiting.bytes_max for waiting in bounds)
        self.nbytes = 0
        self.halves: dict[bool, OrderedDict[str, _Half]] = {False: OrderedDict(), True: OrderedDict()}  # by is early
        self.settled: OrderedDict[str, None] = OrderedDict()

    def add(self, half: _Half) -> None:
        key, is_early = half.key, isinstance(half.entry, Early)
        if half.entry is None:
            self._settle(key)
        elif key in self.settled:
            return
        elif key in self.halves[not is_early]:
            self._settle(key)
        else:
            before = self.halves[is_early].get(key)
            if before is None or not self._may_wait(before):
                self._take(key, is_early)
                self._put(key, half, is_early)

    def keep(self, waiting: Mapping[str, Waiting]) -> None:
        for place in waiting.values():
            for key in self.settled:
                place.settle(key)
        left = [half for halves in self.halves.values() for half in halves.values() if self._may_wait(half)]
        for half in left:
            names = half.names[:1] if isinstance(half.entry, Early) else half.names
            for name in names:
                _let_wait(waiting[name], half)
        read = ", ".join(f"{one.topic}[{one.partition}] {one.start} to {one.end}" for one in self.adopted.values())
        log.info("taken over from another slot (%s): %d wait for their label or their features", read, len(left))

    def _may_wait(self, half: _Half) -> bool:
        """What came before the oldest that waited was done with, whatever it met."""
        entry = half.entry
        assert entry is not None
        adopted = self.adopted[entry.topic]
        return entry.offset >= (adopted.labels if isinstance(entry, Early) else adopted.rows)

    def _settle(self, key: str) -> None:
        self._take(key, False)
        self._take(key, True)
        self.settled.setdefault(key)
        if len(self.settled) > self.entries_max:
            self.settled.popitem(last=False)

    def _take(self, key: str, is_early: bool) -> None:
        half = self.halves[is_early].pop(key, None)
        if half is not None and half.entry is not None:
            self.nbytes -= half.entry.nbytes

    def _put(self, key: str, half: _Half, is_early: bool) -> None:
        assert half.entry is not None
        place = self.halves[is_early]
        place[key] = half
        self.nbytes += half.entry.nbytes
        while len(place) > ROOM * self.entries_max or (self.nbytes > self.bytes_most and len(place) > 1):
            self._take(next(iter(place)), is_early)


def _let_wait(waiting: Waiting, half: _Half) -> None:
    entry = half.entry
    assert entry is not None
    if waiting.expects(half.key):
        time_ms = None if half.time_ms == NO_TIME else half.time_ms
        waiting.tick(entry.topic, entry.partition, time_ms, begins=True)
        waiting.add(half.key, msgspec.structs.replace(entry))
