"""Every detector slow and obvious, straight from its formulas: what the kernels are held against.

`update` gives the level; `seen` is the statistic and the threshold, None where there are none; `events`
is how many values they rest on.
"""

from __future__ import annotations

import math
from statistics import fmean

Seen = tuple[float, float] | None


class Reference:
    """Keeps every value since the last drift."""

    def __init__(self) -> None:
        self.level = 0
        self.seen: Seen = None
        self.begin()

    def begin(self) -> None:
        self.xs: list[float] = []
        self.seen = None

    @property
    def events(self) -> int:
        return len(self.xs)

    def update(self, x: float) -> int:
        if self.level == 2:
            self.begin()
            self.level = 0
        self.xs.append(x)
        self.level = self.judge()
        return self.level

    def judge(self) -> int:
        raise NotImplementedError


class Ddm(Reference):
    def __init__(self, min_samples: int = 30, warning: float = 2.0, drift: float = 3.0, min_errors: int = 0) -> None:
        self.min_samples, self.warning, self.drift, self.min_errors = min_samples, warning, drift, min_errors
        super().__init__()

    def begin(self) -> None:
        super().begin()
        self.lowest: tuple[float, float] | None = None

    def judge(self) -> int:
        n, errors = len(self.xs), self.xs.count(1.0)
        if n <= self.min_samples or errors < self.min_errors:
            return 0
        p = errors / n
        s = math.sqrt(p * (1 - p) / n)
        if self.lowest is None or p + s <= sum(self.lowest):
            self.lowest = p, s
        p_min, s_min = self.lowest
        self.seen = p + s, p_min + self.drift * s_min
        if p + s > p_min + self.drift * s_min:
            return 2
        return 1 if p + s > p_min + self.warning * s_min else 0


class Adwin(Reference):
    """Buckets are lists of their values, the oldest first."""

    def __init__(
        self, delta: float = 0.002, clock: int = 32, max_buckets: int = 5, min_window: int = 5, min_samples: int = 10
    ) -> None:
        self.delta, self.clock, self.max_buckets = delta, clock, max_buckets
        self.min_window, self.min_samples = min_window, min_samples
        self.ticks = 0
        self.buckets: list[list[float]] = []
        super().__init__()
        self.last: Seen = None

    def begin(self) -> None:
        """The window is kept, and what was seen last goes on."""
        self.seen = self.last if self.ticks else None

    @property
    def events(self) -> int:
        return sum(map(len, self.buckets))

    def update(self, x: float) -> int:
        if self.level == 2:
            self.begin()
        self.ticks += 1
        self.buckets.append([x])
        self.merge()
        looks = self.ticks % self.clock == 0 and self.events > self.min_samples
        self.level = self.judge() if looks else 0
        return self.level

    def merge(self) -> None:
        size = 1
        while [len(bucket) for bucket in self.buckets].count(size) > self.max_buckets:
            oldest = next(i for i, bucket in enumerate(self.buckets) if len(bucket) == size)
            self.buckets[oldest : oldest + 2] = [self.buckets[oldest] + self.buckets[oldest + 1]]
            size *= 2

    def judge(self) -> int:
        looks = [self.look()]
        while (last := looks[-1]) is not None and last[0] > 1:
            del self.buckets[0]
            looks.append(self.look())
        self.seen, self.last = max(looks, key=lambda seen: seen or (0.0, 1.0)), last
        return 2 if len(looks) > 1 else 0

    def look(self) -> Seen:
        values = [x for bucket in self.buckets for x in bucket]
        w, mean = len(values), fmean(values)
        variance = sum((x - mean) ** 2 for x in values) / w
        d = math.log(2 * math.log(w) / self.delta)
        shares, n0 = [], 0
        for bucket in self.buckets[:-1]:
            n0 += len(bucket)
            n1 = w - n0
            if n0 > self.min_window + 1 and n1 > self.min_window + 1:
                h = 1 / (n0 - self.min_window + 1) + 1 / (n1 - self.min_window + 1)
                bound = math.sqrt(2 * h * variance * d) + 2 / 3 * h * d
                shares.append(abs(fmean(values[:n0]) - fmean(values[n0:])) / bound)
                if shares[-1] > 1:
                    break
        return (max(shares), 1.0) if shares else None


REFERENCES: dict[str, type[Reference]] = {"adwin": Adwin, "ddm": Ddm}
