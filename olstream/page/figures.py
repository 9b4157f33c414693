"""Numbers as people read them, on the page and on a terminal alike. None is a dash: not known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

ABSENT: Final = "–"
_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_SPANS: Final = ((86400, "d"), (3600, "h"), (60, "min"))
_SCALES: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_LARGEST_TIME: Final = 253_402_300_799.0  # the end of the year 9999


def count(value: float | None) -> str:
    return ABSENT if value is None else f"{int(value):,}"


def percent(value: float | None) -> str:
    return ABSENT if value is None else f"{100 * value:.2f}%"


def number(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.4g}"


def signed_percent(value: float | None) -> str:
    return ABSENT if value is None else f"{100 * value:+.2f}%"


def signed(value: float | None) -> str:
    return ABSENT if value is None else f"{value:+.4g}"


def short(value: float | None) -> str:
    """Three figures or so, for axes: 12k, 1.5M."""
    if value is None:
        return ABSENT
    for scale, letter in _SCALES:
        if abs(value) >= scale:
            return f"{value / scale:.3g}{letter}" if abs(value) < 1e15 else f"{value:.3g}"
    return f"{value:.3g}"


def short_percent(value: float) -> str:
    return f"{100 * value:.3g}%"


def size(value: float | None) -> str:
    """Bytes, in units of 1000."""
    if value is None:
        return ABSENT
    told = short(value)
    return f"{told[:-1]} {told[-1]}B" if told[-1:].isalpha() else f"{told} B"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return ABSENT
    for span, unit in _SPANS:
        if seconds >= 2 * span:
            return f"{seconds / span:,.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def moment(epoch_s: float | None) -> str:
    """A time of day, in UTC."""
    if epoch_s is None or not 0 <= epoch_s <= _LARGEST_TIME:
        return ABSENT
    return f"{datetime.fromtimestamp(epoch_s, UTC):%Y-%m-%d %H:%M:%S} UTC"


def sparkline(values: Sequence[float], width: int) -> str:
    """A curve from 0 up as one line of block characters, the newest to the right; of many values their means."""
    if not values:
        return ""
    kept = values[-width * (len(values) // width) :] if len(values) > width else values
    each = max(1, len(kept) // width)
    means = [math.fsum(v / each for v in kept[i : i + each]) for i in range(0, len(kept), each)]
    top = max(means)
    if top <= 0.0:
        return _BLOCKS[0] * len(means)
    return "".join(_BLOCKS[min(7, max(0, int(8 * (mean / top))))] for mean in means)


def plural(n: int, thing: str) -> str:
    return f"{n:,} {thing}{'' if n == 1 else 's'}"
