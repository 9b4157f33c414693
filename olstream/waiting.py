"""What a learner waits for: labels of rows that it has predicted, and features of labels that came first.

An id waits once, and is settled by its first label; what comes for it after that is a duplicate. What waits is
bounded by count, by bytes and by time, and the oldest goes first. Time is that of the records: for each partition
the median of the last five, never backwards, so that a replay sees the same and one record with a wild time moves
nothing. Of several topics with the same keys the slowest says how late it is: what one of them still has to tell is
not lost because another was read faster. While nothing waits no clock runs.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable
from typing import Final, TypeAlias

import msgspec

from olstream.checkpoint import Partition
from olstream.messages import Label, time_of

NO_TIME: Final = -(2**63)
MEDIAN_OF: Final = 5
ENTRY_BYTES: Final = 512  # what an entry takes beside its texts, about


class Made(msgspec.Struct, gc=False, frozen=True):
    """A prediction as it was made: all that the loss of a label that comes later depends on."""

    score: float
    variance: float  # of the score; 0 where the learner has none
    fresh: float  # several classes: of a class that was not known then
    predicted: int  # index of the class, -1 for none
    known: int  # see Classes.known_code
    scores: bytes = b""  # several classes: float64 of each class that was known
    spreads: bytes = b""  # and the variances, where there are some


NOTHING: Final = Made(0.0, 0.0, 0.0, -1, 0)  # predicted by another slot


class Row(msgspec.Struct, gc=False):
    """Features whose label has not come. `made` is None until their batch has been predicted."""

    id: str | int
    features: bytes  # JSON, keys in order
    weight: float
    ts_ms: int | None  # the message's own
    record_ms: int | None
    champion: str  # the learner that led when they came
    topic: str
    partition: int
    offset: int
    beside: tuple[int, ...] = ()  # from where to read each input topic to find it, and what it met, again; -1: unknown
    at_ms: int = NO_TIME  # what time it was in its partition
    made: Made | None = None
    is_measured: bool = True  # False: predicted by another slot
    made_bytes: int = 0  # that `made` will take: what makes way for a row must not depend on when it is predicted

    @property
    def nbytes(self) -> int:
        return ENTRY_BYTES + len(self.features) + self.made_bytes


class Early(msgspec.Struct, gc=False):
    """A label whose features have not come."""

    id: str | int
    label: Label
    weight: float
    ts_ms: int | None
    record_ms: int | None
    learner: str | None  # the one that its message names
    topic: str
    partition: int
    offset: int
    beside: tuple[int, ...] = ()
    at_ms: int = NO_TIME

    @property
    def nbytes(self) -> int:
        return ENTRY_BYTES + len(str(self.label))


Entry: TypeAlias = Row | Early


class Clock(msgspec.Struct):
    """What time it is in a partition."""

    last: list[int] = []
    now_ms: int = NO_TIME

    def tick(self, at_ms: int) -> bool:
        """Whether it is later now."""
        self.last = [*self.last[1 - MEDIAN_OF :], at_ms]
        median_ms = sorted(self.last)[(len(self.last) - 1) // 2]
        if median_ms <= self.now_ms:
            return False
        self.now_ms = median_ms
        return True


class Waiting:
    """Of one learner, by the text of the id."""

    def __init__(self) -> None:
        self.entries: OrderedDict[str, Entry] = OrderedDict()  # the oldest first
        self.of_partition: dict[tuple[str, int, bool], OrderedDict[str, None]] = {}  # rows and early labels apart
        self.away: set[Partition] = set()  # what waited of these went with them to another slot
        self.clocks: dict[Partition, Clock] = {}
        self._of_number: dict[int, list[Clock] | None] = {}  # see `_clocks`
        self.settled: dict[str, None] = {}
        self.settled_before: dict[str, None] = {}  # the generation before: so many are remembered at least
        self.nbytes = 0
        self.early = 0
        self.joined = 0  # late labels so far
        self.dropped: Counter[str] = Counter()  # by reason, for the counters; whoever tells them clears it
        self.bind(3_600_000, 100_000, 256 * 1024**2, ())

    def bind(self, ttl_ms: int, entries_max: int, bytes_max: int, topics: Iterable[str]) -> None:
        """`topics`: whose records can reach this learner. New bounds take effect with the next entry."""
        self.ttl_ms = ttl_ms
        self.entries_max = entries_max
        self.bytes_max = bytes_max
        self.topics = tuple(topics)
        self._of_number.clear()

    def __len__(self) -> int:
        return len(self.entries)

    def get(self, key: str) -> Entry | None:
        return self.entries.get(key)

    def is_settled(self, key: str) -> bool:
        return key in self.settled or key in self.settled_before

    def expects(self, key: str) -> bool:
        """Whether features of that id would wait."""
        return key not in self.entries and not self.is_settled(key)

    def tick(self, topic: str, partition: int, at_ms: int | None, begins: bool = False) -> None:
        """A record of that time came; `begins` where it is going to wait. What has waited too long goes."""
        if at_ms is None or not (self.entries or begins):
            return
        clock = self.clocks.get((topic, partition))
        if clock is None:
            clock = self.clocks[topic, partition] = Clock()
            self._of_number.clear()
        if clock.tick(at_ms) and self.entries:
            self._expire(partition)

    def add(self, key: str, entry: Entry) -> None:
        """Wait for the other half of this; the oldest makes way."""
        at = entry.topic, entry.partition
        clock = self.clocks.get(at)
        entry.at_ms = NO_TIME if clock is None else clock.now_ms
        self.put(key, entry)
        while len(self.entries) > self.entries_max or self.nbytes > self.bytes_max:
            self._drop(next(iter(self.entries)))

    def put(self, key: str, entry: Entry) -> None:
        """As it is, behind all others."""
        self.entries[key] = entry
        place = _place(entry)
        keys = self.of_partition.get(place)
        if keys is None:
            keys = self.of_partition[place] = OrderedDict()
        keys[key] = None
        self.nbytes += entry.nbytes
        self.early += isinstance(entry, Early)

    def take(self, key: str) -> Entry | None:
        """What waits under that id waits no more."""
        entry = self.entries.pop(key, None)
        if entry is not None:
            del self.of_partition[_place(entry)][key]
            self.nbytes -= entry.nbytes
            self.early -= isinstance(entry, Early)
        return entry

    def settle(self, key: str) -> None:
        """The label of that id is known, and nothing waits under it any more."""
        self.take(key)
        self.settled[key] = None
        if len(self.settled) >= self.entries_max:
            self.settled_before, self.settled = self.settled, {}

    def settle_all(self, keys: list[str]) -> None:
        """The same for many, while nothing waits."""
        if len(self.settled) + len(keys) < self.entries_max:
            self.settled.update(dict.fromkeys(keys))
        else:
            for key in keys:
                self.settle(key)

    def oldest(self, at: Partition, early: bool) -> Entry | None:
        """Of the rows of a partition, or of its early labels."""
        keys = self.of_partition.get((*at, early))
        return self.entries[next(iter(keys))] if keys else None

    def since(self, at: Partition, offset: int, early: bool) -> int:
        """An offset of a partition, or that of the oldest row or early label that waits there, if it is lower."""
        oldest = self.oldest(at, early)
        return offset if oldest is None else min(offset, oldest.offset)

    def held(self) -> set[Partition]:
        """The partitions of all that waits."""
        return {(topic, p) for (topic, p, _), keys in self.of_partition.items() if keys}

    def leave(self, partitions: Iterable[Partition]) -> None:
        """These partitions went to another slot, and what waits of them with them."""
        for at in partitions:
            self._forget(at)
            self.away.add(at)

    def come(self, partitions: Iterable[Partition]) -> None:
        """These partitions are ours now; whatever waited of them here is gathered anew."""
        for at in partitions:
            self._forget(at)
            self.away.discard(at)

    def _forget(self, at: Partition) -> None:
        for early in (False, True):
            for key in list(self.of_partition.get((*at, early), ())):
                self.take(key)
            self.of_partition.pop((*at, early), None)
        self.clocks.pop(at, None)
        self._of_number.clear()

    def go_on_in(self, file: str) -> None:
        """The records of a file come after those of the one that was read before: time does not begin anew."""
        for topic, partition in list(self.clocks):
            if topic not in self.topics:
                self.clocks[file, partition] = self.clocks.pop((topic, partition))
        self._of_number.clear()

    def time_of(self, partition: int) -> int:
        """How late it is there for all topics; NO_TIME where one of them has not told yet."""
        if partition not in self._of_number:
            self._of_number[partition] = self._clocks(partition)
        clocks = self._of_number[partition]
        return min(clock.now_ms for clock in clocks) if clocks else NO_TIME

    def _clocks(self, partition: int) -> list[Clock] | None:
        """The clocks of all topics there; None where one of them has not told yet."""
        told = {topic: clock for (topic, p), clock in self.clocks.items() if p == partition}
        is_file = told.keys().isdisjoint(self.topics)
        return list(told.values()) if is_file or told.keys() >= set(self.topics) else None

    def _expire(self, partition: int) -> None:
        ends_ms = self.time_of(partition) - self.ttl_ms
        for (_, p, _), keys in self.of_partition.items():
            while p == partition and keys and self._begun_ms(key := next(iter(keys))) < ends_ms:
                self._drop(key)

    def _begun_ms(self, key: str) -> int:
        """Since when it waits: of what came before all clocks, since there is one."""
        entry = self.entries[key]
        clock = self.clocks.get((entry.topic, entry.partition))
        if entry.at_ms == NO_TIME and clock is not None:
            entry.at_ms = clock.now_ms
        return entry.at_ms if entry.at_ms != NO_TIME else -NO_TIME

    def _drop(self, key: str) -> None:
        """In vain: a prediction without a label has expired, of a label without features nobody knows."""
        self.dropped["expired" if isinstance(self.take(key), Row) else "unknown"] += 1


def _place(entry: Entry) -> tuple[str, int, bool]:
    return entry.topic, entry.partition, isinstance(entry, Early)


def delay_of(row: Row, label_ms: int | None, record_ms: int | None) -> int | None:
    """From the time of the features to that of their label, which is its message's own, else its record's.

    None where one of them has none.
    """
    begins_ms, ends_ms = time_of(row.ts_ms, row.record_ms), time_of(label_ms, record_ms)
    return None if begins_ms is None or ends_ms is None else ends_ms - begins_ms
