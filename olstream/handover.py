"""What waits when a partition goes from one slot to another: it is dropped here, and gathered again there.

What waits is no part of the topics by itself, but follows from them: with each offset that a slot commits it notes
where to begin to read so as to find it again. The slot that gets the partition reads from there up to what is
committed, joins without learning, and keeps what is left over. Labels of those rows are learnt when they come, and not
measured: another slot has predicted them. Which records were read for that stands in the journal, so that whoever
learns again does the same.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
import orjson

from olstream.checkpoint import Partition
from olstream.decode import plain
from olstream.journal import Adopted, Range
from olstream.messages import Chunk, Example
from olstream.model import Model
from olstream.route import Route
from olstream.waiting import NO_TIME, NOTHING, Early, Row, Waiting

NOTE_BYTES_MAX: Final = 3500  # brokers take 4096
ROOM: Final = 4  # so many times what may wait is kept in hand while two topics are joined


class Note(msgspec.Struct, array_like=True):
    """Beside a committed offset: who committed it, and where what waits there begins."""

    slot: int
    row: int | None = None  # offset of the oldest row that waits for its label
    early: int | None = None  # and of the oldest label that waits for its row
    beside: dict[str, int] = {}  # where the other topics stood when the older of them came; -1: nobody knows


class Taken(NamedTuple):
    """A partition that has come to us: what was committed of it, and by its note."""

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
    rows: list[int] = []
    early: list[int] = []
    beside: dict[str, int] = {}
    others = [topic for topic in topics if topic != at[0]]
    for model in models:
        for found, entry in ((rows, model.waiting.oldest(at, False)), (early, model.waiting.oldest(at, True))):
            if entry is not None:
                found.append(entry.offset)
                for topic, offset in zip(others, entry.beside, strict=False):
                    beside[topic] = min(offset, beside.get(topic, offset))
    note = Note(slot, min(rows, default=None), min(early, default=None), beside)
    text = msgspec.json.encode(note)
    if len(text) > NOTE_BYTES_MAX:  # hundreds of topics with the same keys
        note.beside = {}
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
    """What has to be read again of partitions that another slot had, or that we had given up; as far as it is there."""
    notes = {at: one.note for at, one in taken.items() if one.note is not None}
    moved = {at: note for at, note in notes.items() if note.slot != slot or at in away}
    numbers = {at[1] for at, note in moved.items() if at in held or at in away or _waits(note)}
    found = []
    for at, note in sorted(moved.items()):
        if at[1] in numbers:
            beside = [other.beside for (_, p), other in moved.items() if p == at[1] and _waits(other)]
            starts = [offset for offset in (note.row, note.early) if offset is not None]
            starts += [of_other[at[0]] for of_other in beside if at[0] in of_other]
            end = taken[at].offset
            found.append(Adopted(*at, min(starts, default=end), end, end if note.early is None else note.early))
    return tuple(found)


def _waits(note: Note) -> bool:
    return note.row is not None or note.early is not None


class _Record(NamedTuple):
    """One record of several topics, in the order of their times."""

    time_ms: int
    topic: str
    partition: int
    offset: int
    example: Example
    route: Route
    record_ms: int | None


def adopt(
    adopted: Sequence[Adopted], topics: Sequence[str], models: Mapping[str, Model], read: Read, reading: Reading
) -> None:
    """Read, join without learning, and let what is left over wait here."""
    for model in models.values():
        model.waiting.come((one.topic, one.partition) for one in adopted)
    for number in sorted({one.partition for one in adopted}):
        its = [one for one in adopted if one.partition == number]
        joined = _Gathered(models, topics, {one.topic: one.start for one in its})
        streams = [_records(one, read, reading) for one in its if one.start < one.end]
        for record in heapq.merge(*streams, key=lambda record: record.time_ms):
            joined.add(record)
        joined.keep({one.topic: one.keep for one in its})


def _records(one: Adopted, read: Read, reading: Reading) -> Iterator[_Record]:
    for chunk in read(Range(one.topic, one.partition, one.start, one.end)):
        for i, example, route in reading(chunk):
            record_ms = chunk.timestamps[i]
            time_ms = record_ms if example.ts_ms is None else example.ts_ms
            at = (chunk.topic, chunk.partition, chunk.offsets[i])
            yield _Record(NO_TIME if time_ms is None else time_ms, *at, example, route, record_ms)


class _Gathered:
    """Rows and labels that have not met yet. Whichever comes first waits for the other."""

    def __init__(self, models: Mapping[str, Model], topics: Sequence[str], starts: Mapping[str, int]) -> None:
        self.models = models
        self.topics, self.starts = topics, starts
        self.most = ROOM * max(model.waiting.entries_max for model in models.values())
        self.rows: OrderedDict[str, _Record] = OrderedDict()
        self.early: OrderedDict[str, _Record] = OrderedDict()
        self.settled: OrderedDict[str, None] = OrderedDict()

    def add(self, record: _Record) -> None:
        example = record.example
        if example.id is None or not example.weight > 0.0:
            return
        key = str(example.id)
        if example.features is not None and example.label is not None:
            self._settle(key)
        elif key in self.settled:
            return
        elif key in (self.rows if example.features is None else self.early):
            self._settle(key)
        elif example.features is None:
            self._put(self.early, key, record)
        elif key not in self.rows:
            self._put(self.rows, key, record)

    def keep(self, from_offset: Mapping[str, int]) -> None:
        """`from_offset`, by topic: a label before it that met no row was for one that was done with before."""
        for model in self.models.values():
            for key in self.settled:
                model.waiting.settle(key)
        for key, record in self.rows.items():
            for name in (record.route.learner, *record.route.shadows):
                self._wait(self.models[name].waiting, key, record, _row(record, self._beside(record)))
        for key, record in self.early.items():
            if record.offset >= from_offset[record.topic]:
                self._wait(self.models[record.route.learner].waiting, key, record, _early(record, self._beside(record)))

    def _wait(self, waiting: Waiting, key: str, record: _Record, entry: Any) -> None:
        if waiting.expects(key):
            time_ms = None if record.time_ms == NO_TIME else record.time_ms
            waiting.tick(record.topic, record.partition, time_ms, begins=True)
            waiting.add(key, entry)

    def _beside(self, record: _Record) -> tuple[int, ...]:
        """Whoever gathers this again later has to read the other topics from where we have read them."""
        return tuple(self.starts.get(topic, -1) for topic in self.topics if topic != record.topic)

    def _settle(self, key: str) -> None:
        self.rows.pop(key, None)
        self.early.pop(key, None)
        self._put(self.settled, key, None)

    def _put(self, place: OrderedDict[str, Any], key: str, record: _Record | None) -> None:
        place.setdefault(key, record)
        if len(place) > self.most:
            place.popitem(last=False)


def _row(record: _Record, beside: tuple[int, ...]) -> Row:
    example = record.example
    assert example.id is not None
    features = orjson.dumps(plain(example).features, option=orjson.OPT_SORT_KEYS)
    return Row(
        example.id, features, example.weight, example.ts_ms, record.record_ms, record.route.learner,
        record.topic, record.partition, record.offset, beside, made=NOTHING, is_measured=False,
    )  # fmt: skip


def _early(record: _Record, beside: tuple[int, ...]) -> Early:
    example = record.example
    assert example.id is not None and example.label is not None
    return Early(
        example.id, example.label, example.weight, example.ts_ms, record.record_ms, example.learner,
        record.topic, record.partition, record.offset, beside,
    )  # fmt: skip
