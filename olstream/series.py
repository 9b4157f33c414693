"""The kinds of number that Prometheus reads: counters, gauges, histograms, each a family of series.

The client library renders them; it does not keep them, because its own metrics cannot be absent
until known, carry `_created` series unless that is switched off for the whole process, and take
a histogram's values one at a time. Any thread may write, any may read.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import product
from threading import Lock
from typing import Any, Final, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry
from prometheus_client.utils import floatToGoString

from olstream.counting import fill
from olstream.learners._jit import I64

LARGEST: Final = sys.float_info.max
BUCKETS_MAX: Final = 12  # +Inf included: each bucket is a series, for each learner

Labels: TypeAlias = tuple[str, ...]


def bounded(value: float) -> float:
    """A sum that ran past the doubles stays at the largest: no sample is ever infinite."""
    return min(max(value, -LARGEST), LARGEST)


class Number:
    """The value of one series; None is "not known", and is not exported."""

    __slots__ = ("_lock", "value")

    def __init__(self, lock: Lock, value: float | None) -> None:
        self._lock = lock
        self.value = value

    def add(self, amount: float) -> None:
        if amount and not math.isnan(amount):
            with self._lock:
                self.value = bounded((self.value or 0.0) + amount)

    def set(self, value: float | None) -> None:
        self.value = float(value) if value is not None and math.isfinite(value) else None


class Family(Collector):
    """All series of one name. What exists is said once; nothing seen later can add a series."""

    def __init__(self, registry: CollectorRegistry, name: str, text: str, labels: Sequence[str] = ()) -> None:
        self.name = name
        self.text = text
        self.label_names = tuple(labels)
        self._lock = Lock()
        registry.register(self)

    def _empty(self) -> Metric:
        raise NotImplementedError

    def go_on_from(self, other: Self) -> None:
        """Series that are in both keep their numbers: the same objects, so that none is lost that is added just now."""

    def describe(self) -> Iterable[Metric]:
        return [self._empty()]


class Counters(Family):
    """Counts of this process's life, from 0."""

    def __init__(
        self,
        registry: CollectorRegistry,
        name: str,
        text: str,
        labels: Mapping[str, Iterable[str]] | None = None,
        sets: Iterable[Labels] | None = None,
    ) -> None:
        """`labels` maps each label's name to its values; `sets` where not every combination exists."""
        labels = labels or {}
        super().__init__(registry, name, text, tuple(labels))
        series = product(*labels.values()) if sets is None else sets
        self._numbers: dict[Labels, Number] = {tuple(map(str, values)): Number(self._lock, 0.0) for values in series}

    def at(self, *values: str) -> Number:
        return self._numbers[values]

    def go_on_from(self, other: Self) -> None:
        self._numbers |= {at: number for at, number in other._numbers.items() if at in self._numbers}

    def values(self) -> dict[Labels, float]:
        return {values: number.value or 0.0 for values, number in self._numbers.items()}

    def _empty(self) -> CounterMetricFamily:
        return CounterMetricFamily(self.name, self.text, labels=self.label_names)

    def collect(self) -> Iterable[Metric]:
        family = self._empty()
        for values, value in self.values().items():
            family.add_metric(values, value)
        return [family]


class Gauges(Family):
    """Values as they are now; a series that is not known is not there."""

    def __init__(self, registry: CollectorRegistry, name: str, text: str, labels: Sequence[str] = ()) -> None:
        super().__init__(registry, name, text, labels)
        self._numbers: dict[Labels, Number] = {}

    def at(self, *values: str) -> Number:
        with self._lock:
            return self._numbers.setdefault(values, Number(self._lock, None))

    def go_on_from(self, other: Self) -> None:
        with other._lock:
            self._numbers |= other._numbers

    def keep(self, these: Collection[Labels]) -> None:
        """Forget all other series."""
        with self._lock:
            self._numbers = {at: number for at, number in self._numbers.items() if at in these}

    def set(self, value: float | None) -> None:
        self.at().set(value)

    @property
    def value(self) -> float | None:
        return self.at().value

    def values(self) -> dict[Labels, float]:
        with self._lock:
            return {labels: n.value for labels, n in self._numbers.items() if n.value is not None}

    def _empty(self) -> GaugeMetricFamily:
        return GaugeMetricFamily(self.name, self.text, labels=self.label_names)

    def collect(self) -> Iterable[Metric]:
        family = self._empty()
        for labels, value in self.values().items():
            family.add_metric(labels, value)
        return [family]


class Readings(Family):
    """Gauges that are read off their source when somebody asks."""

    def __init__(
        self,
        registry: CollectorRegistry,
        name: str,
        text: str,
        read: Callable[[], Mapping[Labels, float | None]],
        labels: Sequence[str] = (),
    ) -> None:
        super().__init__(registry, name, text, labels)
        self.read = read

    def _empty(self) -> GaugeMetricFamily:
        return GaugeMetricFamily(self.name, self.text, labels=self.label_names)

    def collect(self) -> Iterable[Metric]:
        family = self._empty()
        for labels, value in self.read().items():
            if value is not None and math.isfinite(value):
                family.add_metric(labels, value)
        return [family]


class BatchHistogram:
    """One histogram's series, filled a batch at a time."""

    __slots__ = ("_counts", "_lock", "_sum", "bounds", "edges")

    def __init__(self, bounds: Sequence[float], lock: Lock) -> None:
        assert len(bounds) < BUCKETS_MAX and list(bounds) == sorted(set(bounds)), "few buckets, in order"
        self.bounds = tuple(bounds)
        # A margin that is 1 by construction comes out as 1.0000000000000002 as often as not.
        self.edges = np.asarray(bounds, np.float64) + np.abs(bounds) * 1e-9
        self._counts = np.zeros(len(bounds) + 1, np.int64)
        self._sum = 0.0
        self._lock = lock

    def observe_many(self, values: NDArray[Any]) -> None:
        """Count them; values that are not finite are left out."""
        if not values.size:
            return
        counts = np.zeros(self._counts.size, np.int64)
        total = fill(self.edges, counts, values.astype(np.float64, copy=False))
        self.add(counts, total)

    def add(self, counts: I64, total: float) -> None:
        """Values that were counted by `edges` already, and their sum."""
        with self._lock:
            self._counts += counts
            if not math.isnan(total):
                self._sum = bounded(self._sum + total)

    def observe(self, value: float) -> None:
        self.observe_many(np.array([value], np.float64))

    def read(self) -> tuple[list[tuple[str, float]], float]:
        """[(upper bound, values at or below it)], and the sum."""
        with self._lock:
            at_or_below = self._counts.cumsum().tolist()
            total = self._sum
        return list(zip([*map(floatToGoString, self.bounds), "+Inf"], at_or_below, strict=True)), total


class Histograms(Family):
    """Histograms of one name, with the same buckets."""

    def __init__(
        self,
        registry: CollectorRegistry,
        name: str,
        text: str,
        bounds: Sequence[float],
        labels: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        labels = labels or {}
        super().__init__(registry, name, text, tuple(labels))
        self._histograms = {values: BatchHistogram(bounds, self._lock) for values in product(*labels.values())}

    def at(self, *values: str) -> BatchHistogram:
        return self._histograms[values]

    def go_on_from(self, other: Self) -> None:
        self._histograms |= {at: one for at, one in other._histograms.items() if at in self._histograms}

    def _empty(self) -> HistogramMetricFamily:
        return HistogramMetricFamily(self.name, self.text, labels=self.label_names)

    def collect(self) -> Iterable[Metric]:
        family = self._empty()
        for values, histogram in self._histograms.items():
            # Where bounds are negative the library leaves _sum and _count out, as OpenMetrics wants: +Inf is the count.
            family.add_metric(values, *histogram.read())
        return [family]
