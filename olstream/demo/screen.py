"""What the demo shows: a live table on a terminal, a line now and then elsewhere, and the summary."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, Final, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

LINE_EVERY_S: Final = 5.0
TOP: Final = 6  # weights shown at each end


class Screen:
    def __init__(self, console: Console, title: str, total: int, footer: str) -> None:
        self._console, self._title, self._total, self._footer = console, title, total, footer
        self._live = Live(console=console, refresh_per_second=4) if console.is_terminal else None
        self._start_s = self._line_s = time.monotonic()

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._live:
            self._live.stop()

    def show(self, status: dict[str, Any], consumed: int) -> None:
        now_s = time.monotonic()
        rate = consumed / max(now_s - self._start_s, 0.001)
        if self._live:
            self._live.update(self._picture(status, consumed, rate))
        elif now_s >= self._line_s + LINE_EVERY_S:
            self._line_s = now_s
            self._console.print(self._line(status, consumed, rate), highlight=False, soft_wrap=True)

    def _picture(self, status: dict[str, Any], consumed: int, rate: float) -> RenderableType:
        progress = Table.grid(padding=(0, 1))
        progress.add_row(ProgressBar(total=self._total, completed=consumed, width=40), self._counted(consumed, rate))
        return Group(Text(self._title, style="bold"), comparison(status), progress, Text(self._footer, style="dim"))

    def _counted(self, consumed: int, rate: float) -> str:
        return f"{consumed:,} of {self._total:,} events, {rate:,.0f}/s"

    def _line(self, status: dict[str, Any], consumed: int, rate: float) -> str:
        errors = [f"{name} {_percent(each['error']['total'])}" for name, each in status["learners"].items()]
        return f"{self._counted(consumed, rate)}; error: {', '.join(errors)}, majority {_percent(_majority(status))}"


def comparison(status: dict[str, Any]) -> Table:
    """The learners side by side, and what always saying the commonest class would have cost."""
    table = Table()
    table.add_column("learner")
    for heading in ("labelled", "error so far", "error, last 1000", "updates"):
        table.add_column(heading, justify="right")
    for name, each in status["learners"].items():
        role = "predicts" if each["role"] == "champion" else "shadow"
        errors = (_percent(each["error"][window]) for window in ("total", "sliding"))
        table.add_row(f"{name} ({role})", f"{each['labelled']:,}", *errors, f"{each['updates']:,}")
    table.add_row("majority class", "", _percent(_majority(status)), "", "", style="dim")
    return table


def weights(console: Console, learner: str, inspected: dict[str, Any]) -> None:
    """The features that speak most for and against the positive class."""
    model = inspected["learners"][learner]
    negative, positive = model["classes"]
    ranked = sorted(model["weights"].items(), key=lambda item: item[1])
    table = Table(title=f"what {learner} learnt: {len(ranked):,} weights, the largest of them by name")
    for label in (positive, negative):
        table.add_column(f"speaks for {label!r}")
        table.add_column("weight", justify="right")
    for (name, weight), (other, less) in zip(reversed(ranked[-TOP:]), ranked[:TOP], strict=False):
        table.add_row(name, f"{weight:+.3f}", other, f"{less:+.3f}")
    console.print(table)


def _majority(status: dict[str, Any]) -> float | None:
    first = next(iter(status["learners"].values()))
    rate: float | None = first["baseline"]["majority"]
    return rate


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.1%}"
