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
        size = f"{self.records:,} records of {self.record_bytes} bytes"
        console.print(f"{size}, 20 features and a label; AROW, exactly once, a commit every 200 ms", highlight=False)
        pairs = Table()
        for heading in ("", "best us", "median us", "best 1/s", "share, best", "median"):
            pairs.add_column(heading, justify="right" if heading else "left")
        pairs.add_row("bare loop", *_row(self.bare_us), "1", "1")
        shares = (f"{self.ratio_best:.2f}", f"{self.ratio_median:.2f}")
        pairs.add_row("olstream", *_row([run.us for run in self.ours]), *shares)
        console.print(pairs)
        console.print("share: of the bare loop's rate; the median is that of the pairs.", style="dim")
        stages = Table("stage", "us", title="the best run, by stage")
        for name, us in self.stages_us().items():
            stages.add_row(name, f"{us:.2f}")
        console.print(stages)


def _row(us: list[float]) -> tuple[str, str, str]:
    return f"{min(us):.2f}", f"{median(us):.2f}", f"{1e6 / min(us):,.0f}"
