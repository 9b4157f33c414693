"""Error curves as a picture: SVG written here, PNG by matplotlib where it is installed (`olstream[plot]`)."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from xml.sax.saxutils import escape

from olstream.drawing import COLORS, DASHES, SETTLED, highest, ticks
from olstream.errors import ConfigError

_GREYS: Final = ("#777777", "#aaaaaa")
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 960, 480, 70, 60, 50
_LETTER: Final = 7.5  # how wide one is about, of the names beside the curves


@dataclass(frozen=True, slots=True)
class Line:
    """One curve: points (labelled rows so far, error)."""

    name: str
    points: Sequence[tuple[int, float]]
    is_baseline: bool


@dataclass(frozen=True, slots=True)
class Chart:
    title: str
    measure: str  # what stands at the axis
    is_ratio: bool  # shown in percent
    lines: Sequence[Line]

    @property
    def rows(self) -> int:
        return max((line.points[-1][0] for line in self.lines if line.points), default=1)

    @property
    def top(self) -> float:
        """The highest point that is settled. What is far above the baselines goes out of the picture."""
        first = SETTLED * self.rows
        settled = [(y, line.is_baseline) for line in self.lines for x, y in line.points if x >= first]
        return highest((y for y, _ in settled), (y for y, is_baseline in settled if is_baseline))

    def shown(self, error: float) -> str:
        return f"{100 * error:.3g}%" if self.is_ratio else f"{error:.4g}"


def svg(chart: Chart) -> bytes:
    """A picture that needs nothing else."""
    right = _WIDTH - 40 - _LETTER * max((len(_label(chart, line)) for line in chart.lines), default=0)
    parts = [*_frame(chart, right), *_curves(chart, right), *_names(chart, right)]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif">'
    return "\n".join([head, *parts, "</svg>", ""]).encode()


def png(chart: Chart) -> bytes:
    """The same by matplotlib. ConfigError where that is not installed."""
    figure = _figure_class()(figsize=(_WIDTH / 100, _HEIGHT / 100), layout="constrained")
    axes = figure.subplots()
    for line, (color, dash) in zip(chart.lines, _styles(chart.lines), strict=True):
        style = (0, tuple(map(float, dash.split()))) if dash else "-"
        rows, errors = zip(*line.points, strict=True) if line.points else ((), ())
        axes.plot(rows, errors, color=color, linestyle=style, label=_label(chart, line))
    axes.set_title(chart.title)
    axes.set_xlabel("labelled rows")
    axes.set_ylabel(chart.measure)
    axes.set_ylim(0.0, chart.top)
    axes.yaxis.set_major_formatter(lambda error, _position: chart.shown(error))
    axes.grid(alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=150)
    return data.getvalue()


def check_png() -> None:
    """ConfigError where no PNG can be drawn, before anything is worked out for one."""
    _figure_class()


def _figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ConfigError('a PNG is drawn by matplotlib: pip install "olstream[plot]", or name a file .svg') from None
    return Figure


def _frame(chart: Chart, right: float) -> Iterable[str]:
    bottom = _HEIGHT - _BOTTOM
    yield f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>'
    yield _text(_LEFT, 26, chart.title, size=17)
    yield _text(_LEFT, _TOP - 14, chart.measure)
    yield _text(right, _HEIGHT - 12, "labelled rows", "end")
    for error in ticks(chart.top):
        y = _y(chart, error)
        yield f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{right:.1f}" y2="{y:.1f}" stroke="#dddddd"/>'
        yield _text(_LEFT - 8, y + 4, chart.shown(error), "end")
    for row in ticks(chart.rows):
        yield _text(_x(chart, row, right), bottom + 18, f"{row:,.0f}", "middle")
    yield f'<clipPath id="inside"><rect x="{_LEFT}" y="{_TOP}" width="{right - _LEFT:.1f}" height="{bottom - _TOP}"/>'
    yield "</clipPath>"


def _curves(chart: Chart, right: float) -> Iterable[str]:
    for line, (color, dash) in zip(chart.lines, _styles(chart.lines), strict=True):
        points = " ".join(f"{_x(chart, x, right):.1f},{_y(chart, y):.1f}" for x, y in line.points)
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        yield f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.6"{dashed}'
        yield f' clip-path="url(#inside)"><title>{escape(line.name)}</title></polyline>'


def _names(chart: Chart, right: float) -> Iterable[str]:
    """One below the other, in the order of the lines."""
    apart = min(20.0, (_HEIGHT - _TOP - 20) / max(1, len(chart.lines)))
    for i, (line, (color, dash)) in enumerate(zip(chart.lines, _styles(chart.lines), strict=True)):
        y = round(_TOP + 10 + apart * i, 1)
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        yield f'<line x1="{right + 8:.1f}" y1="{y}" x2="{right + 28:.1f}" y2="{y}" stroke="{color}" stroke-width="2.5"'
        yield f"{dashed}/>"
        yield _text(right + 34, y + 4, _label(chart, line))


def _label(chart: Chart, line: Line) -> str:
    return f"{line.name}  {chart.shown(line.points[-1][1])}" if line.points else line.name


def _styles(lines: Sequence[Line]) -> list[tuple[str, str]]:
    """Colour and dashes of each; baselines are grey."""
    styles, ours, others = [], 0, 0
    for line in lines:
        if line.is_baseline:
            styles.append((_GREYS[others % len(_GREYS)], DASHES[1]))
            others += 1
        else:
            styles.append((COLORS[ours % len(COLORS)], DASHES[ours // len(COLORS) % len(DASHES)]))
            ours += 1
    return styles


def _x(chart: Chart, row: float, right: float) -> float:
    return _LEFT + (right - _LEFT) * row / chart.rows


def _y(chart: Chart, error: float) -> float:
    bottom = _HEIGHT - _BOTTOM
    return bottom - (bottom - _TOP) * min(error / chart.top, 2.0)


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 13) -> str:
    told = escape(text)
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="#333333">{told}</text>'
