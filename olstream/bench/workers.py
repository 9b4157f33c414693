"""What a second worker adds: two processes, slots and partitions against one on one.

The records are written in one transaction once every worker holds its partition: so all begin at
once, with all of their records there, and nobody feeds meanwhile.
"""

from __future__ import annotations

import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any, Final

from olstream.bench.load import Topics
from olstream.bench.ours import configuration
from olstream.bench.part import Bench, Part, Row, speed
from olstream.bench.side import KINDS, processes, until_shared_out, work
from olstream.bench.span import Span, together

RUNS_MAX: Final = 3


def measure(bench: Bench) -> Part:
    runs: dict[str, dict[int, list[list[Span]]]] = {kind: {1: [], 2: []} for kind in KINDS}
    with processes(2) as pool:
        for i in range(min(bench.repetitions, RUNS_MAX)):
            for kind in KINDS:
                for workers in (1, 2):
                    spans = _run(bench, pool, f"workers-{i}-{kind.split()[0]}-{workers}", kind, workers)
                    runs[kind][workers].append(spans)
                    bench.say(f"workers, {kind}, {workers} on {workers}: {together(spans):.2f} us")
    part = Part(f"workers: {bench.records:,} records a partition")
    for kind in KINDS:
        _add(part, kind, runs[kind])
    return part


def _run(bench: Bench, pool: ProcessPoolExecutor, name: str, kind: str, workers: int) -> list[Span]:
    with (
        Topics(bench.kafka, f"{bench.prefix}-{name}", partitions=workers) as topics,
        tempfile.TemporaryDirectory(prefix="olstream-bench-") as state,
    ):
        group = topics.group("worker")
        configs = [configuration(topics, group, Path(state), slot=slot) for slot in range(workers)]
        started = [pool.submit(work, kind, config, topics.bare, bench.records) for config in configs]
        until_shared_out(topics.admin, group, started)
        topics.fill_at_once(bench.records)
        return [worker.result() for worker in started]


def _add(part: Part, kind: str, runs: dict[int, list[list[Span]]]) -> None:
    ratio = median(together(one) / together(two) for one, two in zip(runs[1], runs[2], strict=True))
    numbers: dict[str, Any] = {"ratio": round(ratio, 3), "us": {}, "cpu_us": {}}
    for workers, shown in ((1, "1"), (2, f"{ratio:.2f}")):
        us = [together(spans) for spans in runs[workers]]
        cpu_us = median(span.cpu_us for spans in runs[workers] for span in spans)
        part.rows.append(Row(f"{kind}, {workers} on {workers}", speed(median(us), cpu_us), shown))
        numbers["us"][str(workers)] = [round(value, 3) for value in us]
        numbers["cpu_us"][str(workers)] = round(cpu_us, 3)
    part.numbers[kind] = numbers
