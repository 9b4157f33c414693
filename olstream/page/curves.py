"""Curves as inline SVG that is as wide as its place: x in percent, y and letters in pixels, colours from the style."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from olstream.drawing import COLORS, DASHES, SETTLED, highest, ticks
from olstream.page import figures
from olstream.page.html import Html, element, joined
from olstream.page.view import Curve, Learner, Mark

_HEIGHT, _TOP, _BOTTOM = 176, 16, 18  # pixels: of all of it, above the curves, below them
_ACROSS: Final = 1000
_Y_TICKS, _X_TICKS = 5, 5
_FLAGS_MAX: Final = 12  # drift marks that have a line each
_WIDTH, _SPARK = 108, 22  # of a sparkline, pixels


@dataclass(frozen=True, slots=True)
class Line:
    """Means between edges. `look` is a class of the style."""

    name: str
    look: str
    edges: Sequence[int]
    values: Sequence[float]
    dash: str = ""
    is_baseline: bool = False


def of_learner(learner: Learner, curve: Curve) -> list[Line]:
    """Its baselines, and above them itself."""
    lines = [
        Line("last label", "no-change", curve.labelled, curve.no_change, DASHES[2], True),
        Line("majority", "majority", curve.labelled, curve.majority, DASHES[1], True),
        Line(learner.name, "own", curve.labelled, curve.error),
    ]
    return [line for line in lines if line.values]


def look_of(i: int) -> tuple[str, str]:
    """Class and dashes of the i-th of several learners."""
    return f"c{i % len(COLORS)}", DASHES[i // len(COLORS) % len(DASHES)]


def chart(lines: Sequence[Line], is_ratio: bool, told: str, marks: Sequence[Mark] = ()) -> Html:
    """One picture over labelled rows. `told` is what it says for who cannot see it."""
    drawn = [line for line in lines if len(line.edges) > 1 and len(line.values) == len(line.edges) - 1]
    if not drawn:
        return element("p", "No curve yet.", class_="none")
    start, end = min(line.edges[0] for line in drawn), max(line.edges[-1] for line in drawn)
    frame = _Frame(start, end, _top(drawn), is_ratio)
    inner = element(
        "svg",
        *(_polyline(line, frame) for line in drawn),
        x="0", y=_TOP, width="100%", height=_HEIGHT - _TOP - _BOTTOM,
        viewBox=f"0 0 {_ACROSS} {_HEIGHT - _TOP - _BOTTOM}", preserveAspectRatio="none",
    )  # fmt: skip
    return element(
        "svg",
        *_grid(frame),
        *_rows(frame),
        inner,
        *_scale(frame),
        *_marks(marks, frame),
        class_="chart", width="100%", height=_HEIGHT, role="img", aria_label=told,
        data_start=start, data_end=end, data_top=frame.top, data_ratio=is_ratio,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Frame:
    start: int
    end: int
    top: float
    is_ratio: bool

    def shown(self, value: float) -> str:
        return figures.short_percent(value) if self.is_ratio else figures.short(value)

    def across(self, row: float) -> float:
        """From 0 to 1."""
        return (row - self.start) / (self.end - self.start)

    def down(self, value: float) -> float:
        """Pixels below the top of the curves; what is far out of sight is just above."""
        height = _HEIGHT - _TOP - _BOTTOM
        return height - height * min(max(value / self.top, -0.1), 1.2)


def _top(lines: Sequence[Line]) -> float:
    """As high as what is settled; the first few rows of a life are not, where there is more."""
    start, end = min(line.edges[0] for line in lines), max(line.edges[-1] for line in lines)
    settled = start + SETTLED * (end - start)
    ours: list[float] = []
    baselines: list[float] = []
    for line in lines:
        kept = [v for v, at in zip(line.values, line.edges[1:], strict=True) if at >= settled]
        (baselines if line.is_baseline else ours).extend(kept)
    return highest(ours, baselines)


def _polyline(line: Line, frame: _Frame) -> Html:
    """Through the middles of the means, from the first edge to the last."""
    middles = [(before + after) / 2 for before, after in pairwise(line.edges)]
    places = [
        (line.edges[0], line.values[0]),
        *zip(middles, line.values, strict=True),
        (line.edges[-1], line.values[-1]),
    ]
    points = " ".join(f"{_ACROSS * frame.across(x):.1f},{frame.down(y):.1f}" for x, y in places)
    title = element("title", line.name)
    return element("polyline", title, class_=line.look, points=points, stroke_dasharray=line.dash or None)


def _grid(frame: _Frame) -> list[Html]:
    return [
        element("line", x1="0", x2="100%", y1=y, y2=y, class_="axis" if not value else "grid")
        for value in ticks(frame.top, _Y_TICKS)
        for y in [round(_TOP + frame.down(value)) + 0.5]
    ]


def _rows(frame: _Frame) -> list[Html]:
    step = ticks(frame.end - frame.start, _X_TICKS)[1]
    labels = []
    for i in range(math.ceil(frame.start / step), math.floor(frame.end / step) + 1):
        place = frame.across(i * step)
        anchor = "start" if place < 0.04 else "end" if place > 0.96 else "middle"
        told = f"{figures.short(i * step).replace('-', '−')}{' rows' if anchor == 'end' else ''}"
        labels.append(element("text", told, x=f"{100 * place:.2f}%", y=_HEIGHT - 4, text_anchor=anchor))
    return labels


def _scale(frame: _Frame) -> list[Html]:
    """Above their lines, over the curves."""
    return [
        element("text", frame.shown(value), x="0", y=round(_TOP + frame.down(value)) - 3, class_="scale")
        for value in ticks(frame.top, _Y_TICKS)
        if value
    ]


def _marks(marks: Sequence[Mark], frame: _Frame) -> list[Html]:
    """Flags with a line across the curves; of many only strokes above, for they would hide the curves."""
    return [_mark(mark, frame, len(marks) <= _FLAGS_MAX) for mark in marks]


def _mark(mark: Mark, frame: _Frame, is_flag: bool) -> Html:
    x = f"{100 * frame.across(mark.labelled):.2f}%"
    return element(
        "g",
        element("title", f"drift at row {mark.labelled:,}: {mark.detector}, {mark.signal}"),
        element("line", x1=x, x2=x, y1=_TOP - 4, y2=_HEIGHT - _BOTTOM) if is_flag else None,
        element("text", "▼", x=x, y=_TOP - 5, text_anchor="middle") if is_flag else None,
        None if is_flag else element("line", x1=x, x2=x, y1=_TOP - 14, y2=_TOP - 4),
        class_="mark" if is_flag else "mark stroke",
    )


def sparkline(values: Sequence[float], told: str) -> Html:
    """A small curve from 0 up."""
    if not values:
        return element("span", figures.ABSENT, class_="none")
    top, across = highest(values, ()), (_WIDTH - 2) / max(1, len(values) - 1)
    points = [(1 + i * across, _SPARK - 1 - (_SPARK - 3) * min(value / top, 1.0)) for i, value in enumerate(values)]
    if len(points) == 1:
        points.append((_WIDTH - 1, points[0][1]))
    drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return element(
        "svg",
        element("line", x1="0", x2=_WIDTH, y1=_SPARK - 0.5, y2=_SPARK - 0.5, class_="grid"),
        element("polyline", points=drawn, class_="own"),
        class_="spark", width=_WIDTH, height=_SPARK, role="img", aria_label=told,
    )  # fmt: skip


def key(line_look: str, dash: str, *what: str | None) -> Html:
    """One entry of a legend: a piece of the line, and what it is."""
    piece = element("line", x1="0", x2="22", y1="5", y2="5", class_=line_look, stroke_dasharray=dash or None)
    drawn = element("svg", piece, class_="key", width="22", height="10", aria_hidden="true")
    return element("span", drawn, joined(*what), class_="entry")
