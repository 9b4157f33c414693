"""Every detector slow and obvious, straight from its formulas: what the kernels are held against.

`update` gives the level; `seen` is the statistic and the threshold, None where there are none; `events`
is how many values they rest on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import copy
from functools import cache
from itertools import pairwise
from statistics import fmean, pstdev

import numpy as np

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
        self, delta: float = 0.002, clock: int = 32, max_buckets: int = 5, min_window: int = 5, min_samples: int = 10,
        mode: str = "both",
    ) -> None:  # fmt: skip
        self.delta, self.clock, self.max_buckets = delta, clock, max_buckets
        self.min_window, self.min_samples, self.mode = min_window, min_samples, mode
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
        while any(abs(share) > 1 for share in looks[-1]):
            del self.buckets[0]
            looks.append(self.look())
        seen = [self.told(look) for look in looks]
        self.seen, self.last = max(seen, key=lambda told: told or (-1.0, 1.0)), seen[-1]
        return 2 if self.seen is not None and self.seen[0] > 1 else 0

    def told(self, shares: list[float]) -> Seen:
        if not shares:
            return None
        up, down = max(0.0, *shares), max(0.0, *(-share for share in shares))
        return {"up": up, "down": down, "both": max(up, down)}[self.mode], 1.0

    def look(self) -> list[float]:
        """How far the mean after each cut is above that before it, as a share of the bound."""
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
                shares.append((fmean(values[n0:]) - fmean(values[:n0])) / bound)
                if abs(shares[-1]) > 1:
                    break
        return shares


class Eddm(Reference):
    def __init__(self, min_samples: int = 30, min_errors: int = 30, warning: float = 0.95, drift: float = 0.9) -> None:
        self.min_samples, self.min_errors, self.warning, self.drift = min_samples, min_errors, warning, drift
        super().__init__()

    def begin(self) -> None:
        super().begin()
        self.largest = -math.inf

    def deviation(self, distances: list[int]) -> float:
        return pstdev(distances)

    def judge(self) -> int:
        if self.xs[-1] == 0.0:
            return self.level
        at = [0, *(i + 1 for i, x in enumerate(self.xs) if x == 1.0)]
        distances = [after - before for before, after in pairwise(at)]
        if len(self.xs) <= self.min_samples:
            return 0
        q = fmean(distances) + 2 * self.deviation(distances)
        enough = len(distances) > self.min_errors
        if q > self.largest:
            self.largest = q
            self.seen = (0.0, 1 - self.drift) if enough else None
            return self.at_a_new_largest()
        if not enough:
            return 0
        ratio = q / self.largest
        self.seen = 1 - ratio, 1 - self.drift
        if ratio < self.drift:
            return 2
        return 1 if ratio < self.warning else 0

    def at_a_new_largest(self) -> int:
        return 0


def nearer(sides: list[Seen]) -> Seen:
    known = [side for side in sides if side is not None]
    return max(known, key=lambda seen: seen[0] - seen[1]) if known else None


class HddmA(Reference):
    def __init__(self, drift: float = 0.001, warning: float = 0.005, two_sided: bool = False) -> None:
        self.drift, self.warning, self.two_sided = drift, warning, two_sided
        super().__init__()

    def begin(self) -> None:
        super().begin()
        self.lowest = self.highest = 0

    def mean(self, n: int) -> float:
        return sum(self.xs[:n]) / n

    def e(self, n: int) -> float:
        return math.sqrt(math.log(1 / self.drift) / (2 * n))

    def bound(self, cut: int, confidence: float) -> float:
        n = len(self.xs)
        return math.sqrt((n - cut) / (2 * n * cut) * math.log(2 / confidence))

    def judge(self) -> int:
        n = len(self.xs)
        z = self.mean(n)
        if not self.lowest or self.mean(self.lowest) + self.e(self.lowest) >= z + self.e(n):
            self.lowest = n
        if not self.highest or self.mean(self.highest) - self.e(self.highest) <= z - self.e(n):
            self.highest = n
        sides = [(z - self.mean(self.lowest), self.lowest)]
        if self.two_sided:
            sides.append((self.mean(self.highest) - z, self.highest))
        sides = [(apart, cut) for apart, cut in sides if cut < n]
        self.seen = nearer([(apart, self.bound(cut, self.drift)) for apart, cut in sides])
        if any(apart >= self.bound(cut, self.drift) for apart, cut in sides):
            return 2
        return int(any(apart >= self.bound(cut, self.warning) for apart, cut in sides))


class Sample:
    """A weighted mean and the sum of the squared weights; of no value at first."""

    def __init__(self, lam: float) -> None:
        self.lam = lam
        self.n, self.e, self.b = 0, math.nan, math.nan

    def take(self, x: float) -> None:
        self.n += 1
        if self.n == 1:
            self.e, self.b = x, self.first_b()
        else:
            self.e = self.lam * x + (1 - self.lam) * self.e
            self.b = self.lam * self.lam + (1 - self.lam) * (1 - self.lam) * self.b

    def first_b(self) -> float:
        return 1.0


class HddmW(Reference):
    sample: type[Sample] = Sample

    def __init__(
        self, drift: float = 0.001, warning: float = 0.005, lambda_: float = 0.05, two_sided: bool = False
    ) -> None:
        self.drift, self.warning, self.lam, self.two_sided = drift, warning, lambda_, two_sided
        super().__init__()

    def begin(self) -> None:
        super().begin()
        self.total = self.sample(self.lam)
        self.lowest, self.highest = math.inf, -math.inf
        self.parts = {side: (self.sample(self.lam), self.sample(self.lam)) for side in ("up", "down")}

    def reach(self, b: float, confidence: float) -> float:
        return math.sqrt(b * -math.log(confidence) / 2)

    def judge(self) -> int:
        x = self.xs[-1]
        self.total.take(x)
        e, reach = self.total.e, self.reach(self.total.b, self.drift)
        is_lowest, self.lowest = e + reach < self.lowest, min(e + reach, self.lowest)
        is_highest, self.highest = e - reach > self.highest, max(e - reach, self.highest)
        for side, cuts in (("up", is_lowest), ("down", is_highest)):
            if cuts:
                self.parts[side] = copy(self.total), self.sample(self.lam)
            else:
                self.parts[side][1].take(x)
        sides = [self.compared(side) for side in (("up", "down") if self.two_sided else ("up",))]
        self.seen = nearer([seen for _, seen in sides])
        return max(level for level, _ in sides)

    def compared(self, side: str) -> tuple[int, Seen]:
        first, second = self.parts[side]
        if not second.n:
            return 0, None
        apart = second.e - first.e if side == "up" else first.e - second.e
        bound, warns = (self.reach(first.b + second.b, level) for level in (self.drift, self.warning))
        return (2 if apart > bound else int(apart > warns)), (apart, bound)


class PageHinkley(Reference):
    def __init__(
        self, delta: float = 0.005, lambda_: float = 50.0, alpha: float = 0.9999, min_samples: int = 30,
        mode: str = "up",
    ) -> None:  # fmt: skip
        self.delta, self.lam, self.alpha, self.min_samples, self.mode = delta, lambda_, alpha, min_samples, mode
        super().__init__()

    def begin(self) -> None:
        super().begin()
        self.apart: list[float] = []
        self.ups: list[float] = []
        self.downs: list[float] = []

    def judge(self) -> int:
        n = len(self.xs)
        self.apart.append(self.xs[-1] - sum(self.xs) / n)
        fading = self.alpha ** np.arange(n)[::-1]
        self.ups.append(float(fading @ (np.array(self.apart) - self.delta)))
        self.downs.append(float(fading @ (np.array(self.apart) + self.delta)))
        if n < self.min_samples:
            return 0
        up, down = self.ups[-1] - min(self.ups), max(self.downs) - self.downs[-1]
        risen = max({"up": [up], "down": [down], "both": [up, down]}[self.mode])
        self.seen = risen, self.lam
        return 2 if risen > self.lam else 0


def splitmix64(seed: int) -> Iterator[int]:
    """Steele, Lea, Flood. OOPSLA 2014."""
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) % 2**64
        z = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        yield z ^ z >> 31


@cache
def chance(h: int, r: int) -> float:
    """That two samples of r have r D ≥ h: the share of the ways to merge them, by counting those that stay nearer."""
    ways = {(i, j): 0 for i in range(-1, r + 1) for j in range(-1, r + 1)}
    ways[0, -1] = 1
    for i in range(r + 1):
        for j in range(r + 1):
            ways[i, j] = ways[i - 1, j] + ways[i, j - 1] if abs(i - j) < h else 0
    return 1 - ways[r, r] / math.comb(2 * r, r)


class Kswin(Reference):
    def __init__(
        self,
        alpha: float = 0.005,
        window: int = 100,
        stat: int = 30,
        seed: int = 0,
        threshold: str = "river",
        mode: str = "both",
    ) -> None:
        self.mode = mode
        self.alpha, self.window, self.r, self.threshold = alpha, window, stat, threshold
        self.least = min(h / self.r for h in range(1, self.r + 1) if self.is_drift(h / self.r))
        self.random = splitmix64(seed)
        super().__init__()

    def begin(self) -> None:
        """The newest are kept."""
        self.xs = getattr(self, "xs", [])[-self.r :]
        self.seen = None

    def draw(self, values: list[float]) -> list[float]:
        for k in range(self.r):
            other = k + next(self.random) % (len(values) - k)
            values[k], values[other] = values[other], values[k]
        return values[: self.r]

    def is_drift(self, d: float) -> bool:
        if self.threshold == "paper":
            return d > math.sqrt(-math.log(self.alpha) / self.r)
        return d > 0.1 and chance(round(d * self.r), self.r) <= self.alpha

    def judge(self) -> int:
        self.xs = self.xs[-self.window :]
        if len(self.xs) < self.window:
            return 0
        older, newest = np.array(self.draw(self.xs[: -self.r])), np.array(self.xs[-self.r :])
        at = np.array(self.xs)
        shares = [np.mean(sample[:, None] <= at, axis=0) for sample in (older, newest)]
        d = float(np.max(np.abs(shares[0] - shares[1])))
        is_told = self.mode == "both" or (self.mode == "up") == (math.fsum(newest) > math.fsum(older))
        self.seen = d if is_told else 0.0, self.least
        if self.is_drift(d) and not is_told:
            self.xs = self.xs[-self.r :]
        return 2 if self.is_drift(d) and is_told else 0


REFERENCES: dict[str, type[Reference]] = {
    "adwin": Adwin,
    "ddm": Ddm,
    "eddm": Eddm,
    "hddm_a": HddmA,
    "hddm_w": HddmW,
    "page_hinkley": PageHinkley,
    "kswin": Kswin,
}
