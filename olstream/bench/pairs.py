"""Runs the bare loop and the service in turn, over the same records."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rich.console import Console

from olstream.bench.bare import bare_loop
from olstream.bench.load import Topics
from olstream.bench.ours import Run, configuration, our_loop
from olstream.bench.report import Report

WARM_UP: Final = 20_000  # records: compiles the kernels, fills the broker's caches


def measure(topics: Topics, n: int, repetitions: int, console: Console) -> Report:
    groups = [f"{topics.prefix}-{i}" for i in range(repetitions + 1)]
    bare_us: list[float] = []
    ours: list[Run] = []
    try:
        topics.make()
        console.print(f"Writing {n:,} records ...", style="dim")
        record_bytes = topics.fill(n)
        for i, group in enumerate(groups):
            count = n if i else min(n, WARM_UP)
            bare = bare_loop(configuration(topics, f"{group}-bare", Path("unused")), topics.bare, count)
            run = our_loop(topics, group, count)
            if i:
                bare_us.append(bare)
                ours.append(run)
            told = f"bare {bare:.2f}, olstream {run.us:.2f} us/message"
            console.print(f"{f'pair {i} of {repetitions}' if i else 'warm-up'}: {told}", style="dim", highlight=False)
    finally:
        topics.delete(*(f"{group}-journal" for group in groups))
    return Report(n, record_bytes, bare_us, ours)
