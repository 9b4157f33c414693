"""What happened, told to Prometheus: one method for each thing the loop can tell.

Calls come once a batch or more rarely, never once a message, and from any thread. Counters count
this process's life: a restart begins at 0, and what recovery learns again is `replayed` alone.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from prometheus_client import GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.registry import CollectorRegistry

from olstream import __version__
from olstream.alarms import WARNING, Alarm
from olstream.config import Config
from olstream.counting import fill_rows, fill_waits, implausible
from olstream.families import DISK_REASONS, KAFKA_CODES, OTHER, PRODUCE_REASONS, Families, confused, roles
from olstream.health import Health
from olstream.hindsight import Hindsight
from olstream.lag import Lag, Partition
from olstream.learners import base
from olstream.learners._jit import F64
from olstream.messages import Reason
from olstream.series import BUCKETS_MAX, BatchHistogram, Labels
from olstream.standing import Board

if TYPE_CHECKING:
    from olstream.model import Model
    from olstream.rows import Counts, Rows

YEAR_2000_MS: Final = 946_684_800_000.0
DAY_MS: Final = 86_400_000.0


class _Learner:
    """The series of one learner, looked up once."""

    def __init__(self, name: str, config: Config, families: Families) -> None:
        f = families
        self.labelled = f.events.at(name, "labelled")
        self.unlabelled = f.events.at(name, "unlabelled")
        self.label_only = f.events.at(name, "label_only")
        self.replayed = f.events.at(name, "replayed")
        self.predictions = f.predictions.at(name)
        self.latency = f.latency.at(name)
        self.scored = f.scored.at(name)
        self.loss = f.loss.at(name)
        self.updated = f.updates.at(name, "updated")
        self.passive = f.updates.at(name, "passive")
        self.skipped = f.updates.at(name, "skipped")
        self.unstable = f.unstable.at(name)
        self.features = f.features.at(name)
        self.novel = f.novel.at(name)
        self.overflowed = f.overflowed.at(name)
        self.widths = f.widths.at(name)
        self.steps = f.step_size.at(name)
        self.regression = config.learners[name].task == "regression"
        if self.regression:
            self.absolute_error = f.absolute_error.at(name)
            self.squared_error = f.squared_error.at(name)
        else:
            self.mistakes = f.mistakes.at(name)
            self.margin = f.margin.at(name)
            self.margin_after = f.margin_after.at(name)
        texts = confused(config.learners[name])
        self.confusion = [[f.confusion.at(name, label, predicted) for predicted in texts] for label in texts]

        histograms = [self.widths, self.steps] if self.regression else [
            self.widths, self.steps, self.margin, self.margin_after
        ]  # fmt: skip
        self._histograms = histograms
        self._edges = np.full((4, BUCKETS_MAX), np.inf)
        for row, histogram in zip(self._edges, histograms, strict=False):
            row[: histogram.edges.size] = histogram.edges
        self._counts = np.zeros((4, BUCKETS_MAX + 1), np.int64)
        self._sums = np.zeros(4)
        self._confused = np.zeros((len(texts), len(texts)), np.int64)
        self._batches: list[Counts] = []

    def add(self, rows: Rows) -> None:
        """Count a batch, to be told later: once a batch, so nothing of it is kept and little is called."""
        fill_rows(
            self._edges, self._counts, self._sums, self._confused,
            rows.entries, rows.step, rows.updated, rows.margin, rows.margin_after, rows.measured, rows.truth,
            rows.predicted,
        )  # fmt: skip
        self._batches.append(rows.counts)

    def tell(self) -> None:
        """All that was counted since the last time."""
        batches, self._batches = self._batches, []
        if not batches:
            return
        self._tell_counts(batches)
        for histogram, counts, total in zip(self._histograms, self._counts, self._sums.tolist(), strict=False):
            histogram.add(counts[: histogram.edges.size + 1], total)
        for label, predicted in np.argwhere(self._confused).tolist():
            self.confusion[label][predicted].add(int(self._confused[label, predicted]))
        self._counts[:], self._sums[:], self._confused[:] = 0, 0.0, 0

    def _tell_counts(self, batches: Sequence[Counts]) -> None:
        def total(of: str) -> Any:
            return sum(getattr(counts, of) for counts in batches)

        scored, late = total("labelled"), total("late") - total("unmeasured")
        self.labelled.add(scored - late)
        self.unlabelled.add(total("seen") - scored + late)
        self.scored.add(scored)
        self.loss.add(total("loss"))
        self.updated.add(total("updated"))
        self.passive.add(total("passive"))
        self.skipped.add(total("skipped"))
        self.unstable.add(total("unstable"))
        self.features.add(total("features"))
        self.novel.add(total("novel"))
        self.overflowed.add(total("overflowed"))
        if self.regression:
            self.absolute_error.add(total("absolute_error"))
            self.squared_error.add(total("squared_error"))
        else:
            self.mistakes.add(total("mistakes"))


class Metrics:
    """The numbers of one process, in a registry of its own.

    `board`, `behind` and `health` hold what is read off when somebody asks.
    """

    def __init__(
        self,
        config: Config,
        health: Health,
        *,
        version: str = __version__,
        librdkafka: str = "none",
        now: Callable[[], float] = time.time,
    ) -> None:
        self.config = config
        self.roles = roles(config)
        self.version = version
        self.librdkafka = librdkafka
        self.now = now
        self.started_s = now()
        self.health = health
        self.board = Board()
        self.behind = Lag(now)
        self.hindsight = _hindsight(config)
        self.families = Families(config, self.board, self.behind, health, self._regret, version, librdkafka)
        self.registry = _with_process(self.families)
        self._learners = {name: _Learner(name, config, self.families) for name in config.learners}
        self._uncommitted: defaultdict[str, list[F64]] = defaultdict(list)

    def warm_up(self) -> None:
        """Compile what the first batch would wait for."""
        BatchHistogram((0.0,), Lock()).observe_many(np.zeros(1))
        implausible(np.zeros(1), YEAR_2000_MS, DAY_MS)
        fill_waits(np.zeros(1), np.zeros(2, np.int64), np.zeros(1), 0.0, YEAR_2000_MS, DAY_MS)
        none = np.zeros(0, np.int64)
        nothing, bits = np.zeros(0), np.zeros(0, np.uint8)
        fill_rows(
            np.zeros((4, 1)), np.zeros((4, 2), np.int64), np.zeros(4), np.zeros((0, 0), np.int64),
            none, nothing, bits, nothing, nothing, bits, none, none,
        )  # fmt: skip
        for hindsight in self.hindsight.values():
            hindsight.warm_up()

    # Configuration

    def reconfigure(self, config: Config) -> None:
        """Other learners, roles or detectors from here on."""
        self.tell()
        hindsight = _hindsight(config)
        if config.monitor.hindsight == self.config.monitor.hindsight:
            hindsight |= {name: of for name, of in self.hindsight.items() if name in hindsight}
        else:
            for of in hindsight.values():
                of.warm_up()
        families = Families(config, self.board, self.behind, self.health, self._regret, self.version, self.librdkafka)
        families.go_on_from(self.families)
        vars(self).update(  # all at once: whoever asks just now must not find half of it
            config=config,
            roles=roles(config),
            hindsight=hindsight,
            families=families,
            registry=_with_process(families),
            _learners={name: _Learner(name, config, families) for name in config.learners},
        )
        self.board.forget_all_but(config.learners)

    def reloaded(self, result: str) -> None:
        """success: the file is in force; failure: it was refused, and the one before stays."""
        self.families.reloads.at(result).add(1)

    # Input

    def consumed(self, topic: str, partition: int, record_ms: F64) -> None:
        """Records of the live loop, by their times; nan = not known."""
        self.families.consumed.at(topic).add(len(record_ms))
        last_ms = self.said(topic, record_ms)
        if not math.isnan(last_ms):
            self.behind.consumed((topic, partition), last_ms / 1000)

    def said(self, topic: str, times_ms: F64) -> float:
        """Times of records, or that accepted messages gave themselves; the last that is plausible."""
        strange, last_ms = implausible(times_ms, YEAR_2000_MS, self.now() * 1000 + DAY_MS)
        self.families.implausible.at(topic).add(strange)
        return last_ms

    def rejected(self, topic: str, reason: Reason, n: int = 1) -> None:
        self.families.rejected.at(topic, reason).add(n)

    def tombstones(self, topic: str, n: int = 1) -> None:
        self.families.tombstones.at(topic).add(n)

    def offsets_lost(self, topic: str, n: int) -> None:
        """Of a topic that is read no more, but was learnt from, there is no series."""
        if topic in self.config.input.topics:
            self.families.offsets_lost.at(topic).add(n)

    # Learning

    def rows(self, learner: str, rows: Rows) -> None:
        """What the live loop's model made of a batch. Nobody sees it before `tell`."""
        self._learners[learner].add(rows)
        if learner in self.hindsight:
            self.hindsight[learner].add(rows)

    def tell(self) -> None:
        """Show what was made of batches since the last time."""
        for learner in self._learners.values():
            learner.tell()

    def alarm(self, learner: str, alarm: Alarm) -> None:
        """A detector began to warn, or said drift."""
        at = learner, alarm.detector, alarm.signal
        if alarm.level == WARNING:
            self.families.warnings.at(*at).add(1)
        else:
            self.families.detections.at(*at).add(1)
            self.families.last_detection.at(*at).set(self.now())

    def labels_unmatched(self, learner: str, reason: str, n: int = 1) -> None:
        """`duplicate`: a label too many; what waited in vain: `expired` a row, `unknown` a label."""
        self.families.unmatched.at(learner, reason).add(n)

    def label_only(self, learner: str, n: int = 1) -> None:
        """Messages with nothing but a label."""
        self._learners[learner].label_only.add(n)

    def label_delays(self, learner: str, delays_ms: Sequence[float]) -> None:
        """Labels that met their row, by how much later they were; nan = not known."""
        later_s = np.maximum(np.asarray(delays_ms, np.float64), 0.0) / 1000  # a label may come before its row
        self.families.label_delay.at(learner).observe_many(later_s)

    def labels_unmeasured(self, learner: str, n: int = 1) -> None:
        """Labels of rows that another worker had predicted."""
        self.families.unmeasured.at(learner).add(n)

    def replayed(self, learner: str, n: int) -> None:
        """Of a learner that is configured no more, but is learnt again to be kept aside, there is no series."""
        if learner in self._learners:
            self._learners[learner].replayed.add(n)

    def replay_remaining(self, n: int) -> None:
        self.families.replay_remaining.set(n)

    def standings(self, models: Iterable[Model]) -> None:
        """The loop came round: here are the models, should anybody have asked. Once a turn, between batches."""
        self.board.answer(models)

    # Output

    def produced(self, learner: str, record_ms: F64) -> None:
        """Predictions handed to the producer, by the times of their records."""
        self._learners[learner].predictions.add(len(record_ms))
        self._uncommitted[learner].append(record_ms)

    def produce_failed(self, topic: str, code: str) -> None:
        self.families.produce_failures.at(topic, PRODUCE_REASONS.get(code, OTHER)).add(1)

    def committed(self, outcome: str = "committed") -> None:
        """How a transaction ended. After `aborted` the same predictions are sent again."""
        self.families.commits.at(outcome).add(1)
        if outcome == "aborted":
            return
        if outcome != "lost":
            for learner, batches in self._uncommitted.items():
                self._waited(self._learners[learner].latency, batches)
        self._uncommitted.clear()

    # Kafka

    def assigned(self, partitions: Collection[Partition]) -> None:
        self.families.assigned.set(len(partitions))
        self.behind.assigned(partitions)

    def rebalanced(self, kind: str) -> None:
        self.families.rebalances.at(kind).add(1)

    def lag(self, positions: Mapping[Partition, tuple[int, int]]) -> None:
        """{partition: (our next offset, the stable end)} of all that is assigned; negative = not known."""
        self.behind.measured(positions)

    def kafka_error(self, code: str) -> None:
        self.families.kafka_errors.at(code if code in KAFKA_CODES else OTHER).add(1)

    # Time and state

    def batches(self, turns: Sequence[tuple[int, float]]) -> None:
        """Turns of the loop that had records: how many, and for how long."""
        if turns:
            records, seconds = np.array(turns, np.float64).T.copy()
            self.families.batch_messages.at().observe_many(records)
            self.families.batch_duration.at().observe_many(seconds)

    def stage(self, name: str, seconds: float) -> None:
        self.families.stages.at(name).add(max(0.0, seconds))

    def restored(self, result: str) -> None:
        """fresh: a new slot; restored: from its newest checkpoint; fell_back: from an older one; failed."""
        self.families.restores.at(result).add(1)

    def checkpoint_written(self, seconds: float, size_bytes: int) -> None:
        self.families.checkpoint_duration.at().observe(seconds)
        self.families.checkpoint_bytes.set(size_bytes)
        self.families.checkpoint_last.set(self.now())

    def checkpoint_failed(self, error: BaseException) -> None:
        io = "io" if isinstance(error, OSError) else OTHER
        reason = DISK_REASONS.get(error.errno or 0, io) if isinstance(error, OSError) else io
        self.families.checkpoint_failures.at(reason).add(1)

    def uncheckpointed(self, n: int) -> None:
        self.families.uncheckpointed.set(n)

    def _regret(self, number: int) -> dict[Labels, float | None]:
        """The loss (0) or the regret (1) of what was found last."""
        return {(name,): of.found and of.found[number] for name, of in self.hindsight.items()}

    def _waited(self, latency: BatchHistogram, batches: list[F64]) -> None:
        now_s, counts, total = self.now(), np.zeros(latency.edges.size + 1, np.int64), 0.0
        for times_ms in batches:
            total += fill_waits(latency.edges, counts, times_ms, now_s, YEAR_2000_MS, now_s * 1000 + DAY_MS)
        latency.add(counts, total)


def _with_process(families: Families) -> CollectorRegistry:
    """What the client library tells of the process stands on the same page."""
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=families.registry)
    return families.registry


def _hindsight(config: Config) -> dict[str, Hindsight]:
    wanted = config.monitor.hindsight
    if wanted is None:
        return {}
    found = {}
    for name, of in config.learners.items():
        params: dict[str, Any] = {**base.algorithm(of.algorithm).check(of.task, of.params, of.classes)}
        found[name] = Hindsight(wanted, of.task, params.get("eps", 0.0))
    return found


def as_array(times_ms: Sequence[int | None]) -> F64:
    """nan for what is not known."""
    try:
        return np.array(times_ms, np.int64).astype(np.float64)  # twice as fast as by way of floats
    except TypeError:
        return np.array(times_ms, np.float64)  # None becomes nan
