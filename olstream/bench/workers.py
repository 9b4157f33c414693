"""What a second worker adds: two processes, slots and partitions against one on one.

The records are there before, in a transaction that is committed once every worker holds its partition:
so all begin at once, and nobody feeds meanwhile.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any, Final

from olstream.bench.bare import bare_loop
from olstream.bench.load import Topics
from olstream.bench.ours import configuration, our_loop
from olstream.bench.part import Bench, Part, Row, speed
from olstream.bench.side import processes, until_shared_out
from olstream.bench.span import Span, together

KINDS: Final = ("bare loop", "olstream")
RUNS_MAX: Final = 3


def measure(bench: Bench) -> Part:
    us: dict[str, dict[int, list[float]]] = {kind: {1: [], 2: []} for kind in KINDS}
    cores: dict[str, dict[int, list[float]]] = {kind: {1: [], 2: []} for kind in KINDS}
    with processes(2) as pool:
        for i in range(min(bench.repetitions, RUNS_MAX)):
            for kind in KINDS:
                for workers in (1, 2):
                    spans = _run(bench, pool, f"workers-{i}-{kind.split()[0]}-{workers}", kind, workers)
                    us[kind][workers].append(together(spans))
                    cores[kind][workers].append(sum(span.cores for span in spans))
                    bench.say(f"workers, {kind}, {workers} on {workers}: {us[kind][workers][-1]:.2f} us")
    return _part(bench.records, us, cores)


def _run(bench: Bench, pool: ProcessPoolExecutor, name: str, kind: str, workers: int) -> list[Span]:
    with (
        Topics(bench.kafka, f"{bench.prefix}-{name}", partitions=workers) as topics,
        tempfile.TemporaryDirectory(prefix="olstream-bench-") as state,
    ):
        group = topics.group("worker")
        configs = [configuration(topics, group, Path(state), slot=slot) for slot in range(workers)]
        n = bench.records
        if kind == "bare loop":
            started: Sequence[Future[Any]] = [pool.submit(bare_loop, config, topics.bare, n) for config in configs]
        else:
            started = [pool.submit(our_loop, config, n) for config in configs]
        until_shared_out(topics.admin, group, started)
        release = topics.hold(n)
        release()
        found = [worker.result() for worker in started]
        return [one if isinstance(one, Span) else one.span for one in found]


def _part(n: int, us: dict[str, dict[int, list[float]]], cores: dict[str, dict[int, list[float]]]) -> Part:
    part = Part(f"workers: {n:,} records a partition; cores are those that the workers themselves kept busy")
    for kind in KINDS:
        ratio = median(one / two for one, two in zip(us[kind][1], us[kind][2], strict=True))
        for workers, shown in ((1, "1"), (2, f"{ratio:.2f}")):
            busy = median(cores[kind][workers])
            what = f"{kind}, {workers} on {workers}"
            part.rows.append(Row(what, f"{speed(median(us[kind][workers]))}, {busy:.1f} cores", shown))
        part.numbers[kind] = {
            "us": {str(workers): [round(value, 3) for value in values] for workers, values in us[kind].items()},
            "cores": {str(workers): round(median(values), 2) for workers, values in cores[kind].items()},
            "ratio": round(ratio, 3),
        }
    return part
