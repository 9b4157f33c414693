"""The document of /status.json as the page, the terminal and the report read it.

Whatever is missing there, or of another kind, is not known: an older service is shown as far as it goes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import mul
from typing import Any, Final

from olstream.page import figures

STATES: Final = ("stable", "warning", "drift")
VERDICTS: Final = ("better", "worse", "no difference")
LAST_ROWS: Final = 1000  # as many as a sliding error has by itself
_CLASSES_MAX: Final = 100  # of a confusion table; more are no service's


@dataclass(frozen=True, slots=True)
class Curve:
    """Means over the rows between two counts: `labelled` has one more than the others; a missing one is empty."""

    labelled: tuple[int, ...] = ()
    error: tuple[float, ...] = ()
    loss: tuple[float, ...] = ()
    majority: tuple[float, ...] = ()
    no_change: tuple[float, ...] = ()
    updated: tuple[float, ...] = ()
    every: int | None = None

    def __bool__(self) -> bool:
        return bool(self.error)

    def coarser(self, most: int) -> Curve:
        """The same over longer stretches, so that there are at most that many; the oldest may be shorter."""
        n = len(self.labelled) - 1
        if n <= most:
            return self
        each = math.ceil(n / most)
        cuts = sorted({0, *range(n, 0, -each)})
        labelled = tuple(self.labelled[cut] for cut in cuts)
        spans = list(pairwise(cuts))
        shares = [
            (self.labelled[i + 1] - self.labelled[i]) / (self.labelled[end] - self.labelled[start])
            for start, end in spans
            for i in range(start, end)
        ]
        error, loss, majority, no_change, updated = (
            tuple(sum(map(mul, values[start:end], shares[start:end])) for start, end in spans if values)
            for values in (self.error, self.loss, self.majority, self.no_change, self.updated)
        )
        return Curve(labelled, error, loss, majority, no_change, updated, self.every and self.every * each)

    def last(self, values: Sequence[float], rows: int = LAST_ROWS) -> float | None:
        """The mean of one of its lines over about the last rows."""
        total, n = 0.0, 0
        for (start, end), value in zip(reversed(list(pairwise(self.labelled))), reversed(values), strict=False):
            if n >= rows:
                break
            total, n = total + value * (end - start), n + end - start
        return total / n if n and math.isfinite(total) else None


@dataclass(frozen=True, slots=True)
class Mark:
    """A detection of drift, at a count of labelled rows."""

    labelled: int
    detector: str
    signal: str


@dataclass(frozen=True, slots=True)
class Watcher:
    """A detector of one learner as of now."""

    detector: str
    signal: str
    level: int
    statistic: float | None = None
    threshold: float | None = None
    window_events: float | None = None
    detections: int = 0
    warnings: int = 0


@dataclass(frozen=True, slots=True)
class Drift:
    level: int | None = None
    detections: int = 0
    warnings: int = 0
    last: Mark | None = None
    ago: int | None = None
    detectors: tuple[Watcher, ...] = ()

    @property
    def state(self) -> str | None:
        return None if self.level is None else STATES[self.level]


@dataclass(frozen=True, slots=True)
class Confusion:
    """Rows by label and prediction: counts[label][predicted]."""

    classes: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]

    @property
    def labels(self) -> list[int]:
        return [sum(row) for row in self.counts]

    @property
    def predictions(self) -> list[int]:
        return [sum(column) for column in zip(*self.counts, strict=True)]


@dataclass(frozen=True, slots=True)
class Bin:
    """Predictions whose probability lay between two bounds."""

    rows: int
    probability: float  # mean
    correct: float  # share


@dataclass(frozen=True, slots=True)
class Compared:
    """A shadow against one champion, over the rows that both measured; each figure in total and faded."""

    champion: str
    rows: int = 0
    verdict: str | None = None
    difference: Mapping[str, float | None] = field(default_factory=dict)  # of the errors: below 0 is better
    evidence: Mapping[str, float | None] = field(default_factory=dict)  # McNemar's, or what a regression has instead
    q: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Learner:
    """Errors are ratios, in a regression mean absolute errors."""

    name: str
    role: str = ""
    algorithm: str = ""
    task: str = ""
    seen: int = 0
    labelled: int = 0
    updates: int | None = None
    updated_share: float | None = None
    error: Mapping[str, float | None] = field(default_factory=dict)  # by window: sliding, fading, total
    loss: Mapping[str, float | None] = field(default_factory=dict)
    majority: float | None = None
    no_change: float | None = None
    regret: float | None = None
    margin_before: float | None = None  # the mean, signed
    margin_after: float | None = None
    regret_rows: int | None = None  # of its window
    regret_ago: int | None = None  # rows that came since
    hindsight_loss: float | None = None
    features: int | None = None
    classes: int | None = None
    size_bytes: float | None = None
    weights_norm: float | None = None
    variance_mean: float | None = None
    drift: Drift = Drift()
    recent: Curve = Curve()
    life: Curve = Curve()
    marks: tuple[Mark, ...] = ()
    confusion: Confusion | None = None
    calibration: tuple[Bin, ...] = ()
    versus: tuple[Compared, ...] = ()
    pending: int | None = None

    @property
    def is_regression(self) -> bool:
        return self.task == "regression"

    def shown(self, error: float | None) -> str:
        """An error as it is written: a ratio in percent, in a regression a number."""
        return figures.number(error) if self.is_regression else figures.percent(error)

    def shown_difference(self, error: float | None) -> str:
        return figures.signed(error) if self.is_regression else figures.signed_percent(error)

    @property
    def now(self) -> float | None:
        """The error over the last rows."""
        sliding = self.error.get("sliding")
        return self.recent.last(self.recent.error) if sliding is None else sliding

    @property
    def drift_ago(self) -> int | None:
        """Labelled rows since the last detection."""
        last = self.drift.last
        if last is None or self.drift.ago is not None:
            return self.drift.ago
        return max(0, self.labelled - last.labelled)

    @property
    def has_drifted(self) -> bool:
        """Lately: within the rows that an error "now" is about."""
        return self.drift_ago is not None and self.drift_ago < LAST_ROWS

    @property
    def is_behind(self) -> bool:
        """Always guessing would have been no worse."""
        known = [baseline for baseline in (self.majority, self.no_change) if baseline is not None]
        total = self.error.get("total")
        return total is not None and bool(known) and total >= min(known)


def learners(document: Mapping[str, Any]) -> list[Learner]:
    return [_learner(name, mapping(of)) for name, of in mapping(document.get("learners")).items()]


def _learner(name: str, of: Mapping[str, Any]) -> Learner:
    history, baseline, hindsight = mapping(of.get("history")), mapping(of.get("baseline")), mapping(of.get("hindsight"))
    recent = _curve(history.get("recent"))
    error = _windows(of.get("absolute_error" if of.get("task") == "regression" else "error"))
    return Learner(
        name=name,
        role=text(of.get("role")),
        algorithm=text(of.get("algorithm")),
        task=text(of.get("task")),
        seen=whole(of.get("seen")) or 0,
        labelled=whole(of.get("labelled")) or 0,
        error=error,
        loss=_windows(of.get("loss")),
        majority=number(baseline.get("majority")),
        no_change=number(baseline.get("no_change")),
        regret=number(hindsight.get("regret")),
        margin_before=number(mapping(mapping(of.get("margin")).get("mean")).get("before")),
        margin_after=number(mapping(mapping(of.get("margin")).get("mean")).get("after")),
        regret_rows=whole(hindsight.get("rows")),
        regret_ago=whole(hindsight.get("ago")),
        hindsight_loss=number(hindsight.get("loss")),
        updates=whole(of.get("updates")),
        updated_share=number(of.get("updated_share")),
        features=whole(of.get("features")),
        classes=whole(of.get("classes")),
        size_bytes=number(of.get("size_bytes")),
        weights_norm=number(of.get("weights_norm")),
        variance_mean=number(of.get("variance_mean")),
        drift=_drift(mapping(of.get("drift"))),
        recent=recent,
        life=_curve(history.get("life")),
        marks=tuple(mark for mark in map(_mark, items(of.get("marks"))) if mark),
        confusion=_confusion(mapping(of.get("confusion"))),
        pending=whole(of.get("pending")),
        versus=tuple(_compared(name, mapping(of)) for name, of in mapping(of.get("versus")).items()),
    )


def _compared(champion: str, of: Mapping[str, Any]) -> Compared:
    verdict, mcnemar = text(of.get("verdict")), _windows(of.get("mcnemar"))
    paired = _windows(of.get("paired"))
    return Compared(
        champion,
        whole(of.get("rows")) or 0,
        verdict if verdict in VERDICTS else None,
        _windows(of.get("difference")),
        {window: paired[window] if value is None else value for window, value in mcnemar.items()},
        _windows(of.get("q")),
    )


def _windows(of: object) -> dict[str, float | None]:
    return {window: number(mapping(of).get(window)) for window in ("sliding", "fading", "total")}


def _curve(of: object) -> Curve:
    """Nothing where its counts do not rise; a line of another length than theirs is left out."""
    told = mapping(of)
    labelled = [n for n in map(whole, items(told.get("labelled"))) if n is not None]
    if len(labelled) < 2 or any(after <= before for before, after in pairwise(labelled)):
        return Curve()
    lines = {}
    for key in ("error", "loss", "majority", "no_change", "updated"):
        values = items(told.get(key))
        is_whole = len(values) == len(labelled) - 1 and all(number(value) is not None for value in values)
        lines[key] = tuple(map(float, values)) if is_whole else ()
    return Curve(tuple(labelled), **lines, every=whole(told.get("every")))


def _drift(of: Mapping[str, Any]) -> Drift:
    last = mapping(of.get("last"))
    return Drift(
        level=_level(of.get("level")),
        detections=whole(of.get("detections")) or 0,
        warnings=whole(of.get("warnings")) or 0,
        last=_mark(last),
        ago=whole(last.get("ago")),
        detectors=tuple(_watcher(mapping(each)) for each in items(of.get("detectors"))),
    )


def _watcher(of: Mapping[str, Any]) -> Watcher:
    return Watcher(
        text(of.get("detector")),
        text(of.get("signal")),
        _level(of.get("level")) or 0,
        number(of.get("statistic")),
        number(of.get("threshold")),
        number(of.get("window_events")),
        whole(of.get("detections")) or 0,
        whole(of.get("warnings")) or 0,
    )


def _level(of: object) -> int | None:
    level = whole(of)
    return None if level is None else min(max(level, 0), 2)


def _mark(of: object) -> Mark | None:
    told = mapping(of)
    labelled = whole(told.get("labelled"))
    return None if labelled is None else Mark(labelled, text(told.get("detector")), text(told.get("signal")))


def _confusion(of: Mapping[str, Any]) -> Confusion | None:
    classes = tuple(text(name) for name in items(of.get("classes"))[: _CLASSES_MAX + 1])
    rows = items(of.get("counts"))[: _CLASSES_MAX + 1]
    counts = tuple(tuple(whole(n) or 0 for n in items(row)[: _CLASSES_MAX + 1]) for row in rows)
    if (
        not 0 < len(classes) <= _CLASSES_MAX
        or len(counts) != len(classes)
        or any(len(row) != len(classes) for row in counts)
    ):
        return None
    return Confusion(classes, counts)


# What a value is, or nothing.


def mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def items(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def number(value: object) -> float | None:
    """Finite ones only."""
    if type(value) is float:  # nearly all
        return value if math.isfinite(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def whole(value: object) -> int | None:
    known = number(value)
    return None if known is None else int(known)


def text(value: object) -> str:
    """Of a text or a number that fits a double; of anything else nothing."""
    return value if isinstance(value, str) else "" if number(value) is None else str(value)
