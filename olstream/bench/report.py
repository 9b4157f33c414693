"""The numbers of the benchmark as a table and as JSON. Ratios are within one run on one machine."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from olstream.bench.ours import Run


@dataclass(frozen=True)
class Report:
    """Runs in pairs: bare_us[i] and ours[i] followed one another."""

    records: int
    record_bytes: int
    bare_us: list[float]
    ours: list[Run]

    @property
    def ratio_best(self) -> float:
        return min(self.bare_us) / min(run.us for run in self.ours)

    @property
    def ratio_median(self) -> float:
        """Of the pairs, so that what slows the machine for a while slows both."""
        return median(bare / run.us for bare, run in zip(self.bare_us, self.ours, strict=True))

    def stages_us(self) -> dict[str, float]:
        """Of the best run."""
        best = min(self.ours, key=lambda run: run.us)
        return best.stages_us | {"other": best.us - sum(best.stages_us.values())}

    def document(self) -> dict[str, Any]:
        return {
            "records": self.records,
            "record_bytes": self.record_bytes,
            "bare_us": [round(us, 3) for us in self.bare_us],
            "olstream_us": [round(run.us, 3) for run in self.ours],
            "ratio": {"best": round(self.ratio_best, 3), "median": round(self.ratio_median, 3)},
            "stages_us": {name: round(us, 3) for name, us in self.stages_us().items()},
        }

    def show(self, console: Console) -> None:
        title = f"{self.records:,} records of {self.record_bytes} bytes, 20 features and a label, exactly once"
        table = Table(title=title)
        table.add_column("loop")
        for heading in ("us/message, best", "median", "messages/s, best", "of the bare loop, best", "median of pairs"):
            table.add_column(heading, justify="right")
        ours_us = [run.us for run in self.ours]
        table.add_row("bare: consume, produce, commit", *_row(self.bare_us), "1", "1")
        ratios = (f"{self.ratio_best:.2f}", f"{self.ratio_median:.2f}")
        table.add_row("olstream: AROW, predict then update", *_row(ours_us), *ratios)
        console.print(table)
        stages = Table(title="where the best run's time goes")
        stages.add_column("stage")
        stages.add_column("us/message", justify="right")
        for name, us in self.stages_us().items():
            stages.add_row(name, f"{us:.2f}")
        console.print(stages)


def _row(us: list[float]) -> tuple[str, str, str]:
    return f"{min(us):.2f}", f"{median(us):.2f}", f"{1e6 / min(us):,.0f}"
