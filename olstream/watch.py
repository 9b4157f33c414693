"""What people see of the loop: every event of it, told to the metrics and to the health.

The loop calls this once a chunk, once a commit, once a checkpoint; never once a message.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
import orjson

from olstream.alarms import DRIFT
from olstream.checkpoint import Partition
from olstream.health import Health
from olstream.learners._jit import F64
from olstream.messages import Chunk
from olstream.metrics import Metrics, as_array
from olstream.model import Model
from olstream.pipeline import Processed, Result
from olstream.waiting import delay_of

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


class Watch:
    """Metrics and health of one process."""

    def __init__(self, metrics: Metrics, health: Health, on_answer: Callable[[], None] = lambda: None) -> None:
        self.metrics = metrics
        self.health = health
        self._on_answer = on_answer  # of a broker
        self._learnt = self._copied = self._saved = 0  # records: committed, of these in a copy, of these on disk
        self._since_commit = 0
        self._has_copied = False
        self._inner_s = 0.0
        self._spent_s: dict[str, list[float]] = {}  # by stage, in a list of one, not told yet
        self._turns: list[tuple[int, float]] = []  # records and seconds, not told yet
        # Times not told yet, as arrays: lists of so many numbers, kept till then, would cost the loop its warm memory.
        self._consumed: defaultdict[Partition, list[F64]] = defaultdict(list)  # of records
        self._said: defaultdict[str, list[F64]] = defaultdict(list)  # that messages gave themselves, by topic
        self._predicted: defaultdict[str, list[F64]] = defaultdict(list)  # of records, by who predicted

    def timed(self, stage: str, function: Callable[P, T]) -> Callable[P, T]:
        """The same function, its time added to a stage, less that of stages inside it. For the loop's thread."""
        clock, stage_s = time.perf_counter, self._spent_s.setdefault(stage, [0.0])

        @wraps(function)
        def measured(*args: P.args, **kwargs: P.kwargs) -> T:
            outer_s, self._inner_s = self._inner_s, 0.0
            start = clock()
            try:
                return function(*args, **kwargs)
            finally:
                spent_s = clock() - start
                stage_s[0] += spent_s - self._inner_s
                self._inner_s = outer_s + spent_s

        return measured

    # The loop.

    def processed(self, chunk: Chunk, done: Processed) -> None:
        metrics = self.metrics
        record_ms = as_array(chunk.timestamps)
        self._consumed[chunk.topic, chunk.partition].append(record_ms)
        if done.event_times:
            self._said[chunk.topic].append(as_array(done.event_times))
        if done.rejects:
            for reason, n in Counter(reject.reason for reject in done.rejects.values()).items():
                metrics.rejected(chunk.topic, reason, n)
            self._tell_rejects(chunk, done)
        if done.tombstones:
            metrics.tombstones(chunk.topic, done.tombstones)
        for (learner, why), n in done.joined.unmatched.items():
            metrics.labels_unmatched(learner, why, n)
        for learner, n in done.joined.label_only.items():
            metrics.label_only(learner, n)
        for result in done.results:
            metrics.rows(result.model.name, result.rows)
            if result.late:
                self._tell_late(chunk, result)
            if result.rows.alarms or result.rows.answer:
                self._tell_drift(chunk, result)
            if result.published:
                self._predicted[result.model.name].append(_times_answered(result, record_ms))
        self._since_commit += len(chunk)

    def turned(self, models: Iterable[Model], n: int, seconds: float) -> None:
        """The loop came round, with n records or none."""
        self.health.polled()
        self.metrics.standings(models)
        if n:
            self._turns.append((n, seconds))
        if not n or self._has_copied:
            self._has_copied = False
            self.show()

    def show(self) -> None:
        """Show what has come together: few calls a batch, for each of them costs more than what it counts."""
        for (topic, partition), times in self._consumed.items():
            self.metrics.consumed(topic, partition, np.concatenate(times))
        for topic, times in self._said.items():
            self.metrics.said(topic, np.concatenate(times))
        for learner, times in self._predicted.items():
            self.metrics.produced(learner, np.concatenate(times))
        for shown in (self._consumed, self._said, self._predicted):
            shown.clear()
        self.metrics.tell()
        self.metrics.batches(self._turns)
        self._turns.clear()
        for stage, stage_s in self._spent_s.items():
            self.metrics.stage(stage, stage_s[0])
            stage_s[0] = 0.0

    def outcome(self, outcome: str) -> None:
        """How a transaction ended, and with it what was published."""
        self.show()
        self.metrics.committed(outcome)

    def committed(self) -> None:
        self.show()
        self._learnt += self._since_commit
        self._since_commit = 0
        self.metrics.uncheckpointed(self._learnt - self._saved)
        self._answered()

    def checkpoint_taken(self) -> None:
        """The copy that is written next has all that is committed."""
        self._copied = self._learnt
        self._has_copied = True

    def checkpoint_written(self, seconds: float, size_bytes: int) -> None:
        """Told by its writer, beside the loop; a copy that does not come so far counts for nothing."""
        self._saved = self._copied
        self.metrics.uncheckpointed(self._learnt - self._saved)
        self.metrics.checkpoint_written(seconds, size_bytes)

    # Recovery.

    def replayed(self, _chunk: Chunk, done: Processed) -> None:
        self.alive()
        self._answered()
        for result in done.results:
            self.metrics.replayed(result.model.name, result.rows.n)

    def remaining(self, n: int) -> None:
        self.metrics.replay_remaining(n)
        self.health.restoring(f"{n} records to learn again")

    # The group and the broker.

    def alive(self) -> None:
        """A wait that the loop knows of."""
        self.health.polled()

    def _answered(self) -> None:
        self.health.broker(True)
        self._on_answer()

    def group_changed(self, kind: str, partitions: Mapping[Partition, int]) -> None:
        self.metrics.rebalanced(kind)
        self.metrics.assigned(partitions)
        self.health.assigned(len(partitions) if kind == "assigned" else None)

    def client_error(self, name: str) -> None:
        self.metrics.kafka_error(name)
        if name == "_ALL_BROKERS_DOWN":
            self.health.broker(False, "no broker answers")

    def statistics(self, text: str, positions: Mapping[Partition, int]) -> None:
        """The client's own report, every few seconds: where each partition's stable end is."""
        told: dict[str, Any] = orjson.loads(text)
        if any(broker.get("state") == "UP" for broker in told.get("brokers", {}).values()):
            self._answered()
        ends = {
            (topic, int(number)): partition["ls_offset"]
            for topic, its in told.get("topics", {}).items()
            for number, partition in its["partitions"].items()
        }
        self.metrics.lag({at: (position, ends.get(at, -1)) for at, position in positions.items()})

    def _tell_late(self, chunk: Chunk, result: Result) -> None:
        at_ms = [chunk.timestamps[i] for i in result.positions]
        delays = [delay_of(row, result.label_ms[k], at_ms[k]) for k, row in result.late.items() if row.is_measured]
        self.metrics.label_delays(result.model.name, [delay for delay in delays if delay is not None])
        self.metrics.labels_unmeasured(result.model.name, result.rows.counts.unmeasured)

    def _tell_drift(self, chunk: Chunk, result: Result) -> None:
        """A line each: they are rare, and each is a change of state."""
        name = result.model.name
        for alarm in result.rows.alarms:
            self.metrics.alarm(name, alarm)
            what = "drift" if alarm.level == DRIFT else "warning of drift"
            said = {"learner": name, "detector": alarm.detector, "signal": alarm.signal, "labelled": alarm.labelled}
            log.log(
                logging.WARNING if alarm.level == DRIFT else logging.INFO,
                what,
                extra={**said, **_place(chunk, result.positions[alarm.row])},
            )
        if result.rows.answer:
            log.warning(
                "%s after drift", result.rows.answer, extra={"learner": name, **_place(chunk, result.positions[-1])}
            )

    def _tell_rejects(self, chunk: Chunk, done: Processed) -> None:
        """One line an interval and reason; payloads stay out of it."""
        for i, reject in done.rejects.items():
            log.warning(
                "record refused as %s: %s[%d] offset %d: %s",
                reject.reason,
                chunk.topic,
                chunk.partition,
                chunk.offsets[i],
                reject.detail,
                extra={"every_s": 10.0, "same_as": f"refused as {reject.reason}"},
            )


def _times_answered(result: Result, record_ms: F64) -> F64:
    """The times of the records that a prediction answers."""
    refused = result.rows.rejects.keys() | result.late.keys()
    if not refused and len(result.positions) == record_ms.size:
        return record_ms
    return record_ms[[position for i, position in enumerate(result.positions) if i not in refused]]


def _place(chunk: Chunk, position: int) -> dict[str, object]:
    return {"topic": chunk.topic, "partition": chunk.partition, "offset": chunk.offsets[position]}
