"""The service against the bare loop, in turn over the same records, and against Quix Streams + River."""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import Final

from olstream.bench import rivals
from olstream.bench.bare import bare_loop
from olstream.bench.load import Topics
from olstream.bench.ours import Run, configuration, our_loop
from olstream.bench.part import Bench, Part, Row, percent, speed

WARM_UP: Final = 20_000  # records: compiles the kernels, fills the broker's caches
QUIX_MAX: Final = 50_000
GUARANTEES: Final = ("exactly_once", "at_least_once")


def measure(bench: Bench) -> Part:
    bare_us: list[float] = []
    ours: dict[str, list[Run]] = {guarantee: [] for guarantee in GUARANTEES}
    with Topics(bench.kafka, f"{bench.prefix}-loop") as topics:
        record_bytes = topics.fill(bench.records)
        for i in range(bench.repetitions + 1):
            n = bench.records if i else min(bench.records, WARM_UP)
            bare = bare_loop(configuration(topics, topics.group(f"bare-{i}"), Path("unused")), topics.bare, n)
            runs = {guarantee: _run(topics, f"{i}-{guarantee}", n, guarantee) for guarantee in GUARANTEES}
            told = f"bare {bare.us:.2f}, olstream {runs['exactly_once'].span.us:.2f} us"
            bench.say(f"loop, {f'pair {i} of {bench.repetitions}' if i else 'warm-up'}: {told}")
            if i:
                bare_us.append(bare.us)
                for guarantee, run in runs.items():
                    ours[guarantee].append(run)
        part = _part(bench.records, record_bytes, bare_us, ours)
        for guarantee in ("exactly-once", "at-least-once"):
            arguments = [topics.kafka["bootstrap.servers"], topics.input, topics.bare, guarantee]
            count = min(bench.records, QUIX_MAX)
            rivals.compare(
                part, bench, f"Quix Streams + River, {guarantee}", "quix", [*arguments, count], median(bare_us)
            )
    return part


def _run(topics: Topics, name: str, n: int, guarantee: str) -> Run:
    with tempfile.TemporaryDirectory(prefix="olstream-bench-") as state:
        return our_loop(configuration(topics, topics.group(name), Path(state), guarantee=guarantee), n)


def _part(n: int, record_bytes: int, bare_us: list[float], ours: dict[str, list[Run]]) -> Part:
    exactly_once = [run.span.us for run in ours["exactly_once"]]
    best = min(ours["exactly_once"], key=lambda run: run.span.us)
    stages_us = best.stages_us | {"other": best.span.us - sum(best.stages_us.values())}
    part = Part(f"loop: {n:,} records of {record_bytes} bytes, 20 features and a label, a commit every 200 ms")
    part.rows = [
        Row("bare loop", speed(median(bare_us)), "1"),
        *(_row(guarantee, bare_us, runs) for guarantee, runs in ours.items()),
        Row("its best run by stage, us", ", ".join(f"{name} {us:.2f}" for name, us in stages_us.items())),
    ]
    part.numbers = {
        "records": n,
        "record_bytes": record_bytes,
        "bare_us": _rounded(bare_us),
        "olstream_us": {guarantee: _rounded([run.span.us for run in runs]) for guarantee, runs in ours.items()},
        "ratio": {
            "best": round(min(bare_us) / min(exactly_once), 3),
            "median": round(_ratio(bare_us, exactly_once), 3),
        },
        "stages_us": {name: round(us, 3) for name, us in stages_us.items()},
        "wrong": best.wrong,
    }
    return part


def _row(guarantee: str, bare_us: list[float], runs: list[Run]) -> Row:
    us = [run.span.us for run in runs]
    ratio = f"{_ratio(bare_us, us):.2f}, best {min(bare_us) / min(us):.2f}"
    return Row(f"olstream AROW, {guarantee.replace('_', '-')}", speed(median(us)), ratio, percent(runs[0].wrong))


def _ratio(bare_us: list[float], us: list[float]) -> float:
    """Of the pairs, so that what slows the machine for a while slows both."""
    return median(bare / own for bare, own in zip(bare_us, us, strict=True))


def _rounded(us: list[float]) -> list[float]:
    return [round(value, 3) for value in us]
