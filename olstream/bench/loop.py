"""The service against the bare loop, in turn over the same records, and against Quix Streams + River."""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median
from typing import Any, Final

from olstream.bench import rivals
from olstream.bench.bare import bare_loop
from olstream.bench.load import Topics
from olstream.bench.ours import OnAndOff, Run, configuration, our_loop, watched
from olstream.bench.part import Bench, Part, Row, percent, speed
from olstream.bench.span import Span

WARM_UP: Final = 20_000  # records: compiles the kernels, fills the broker's caches
QUIX_MAX: Final = 50_000
GUARANTEES: Final = ("exactly_once", "at_least_once")


def measure(bench: Bench) -> Part:
    bare: list[Span] = []
    ours: dict[str, list[Run]] = {guarantee: [] for guarantee in GUARANTEES}
    us: dict[bool, list[float]] = {True: [], False: []}  # of the loop's thread, with metrics and without
    with Topics(bench.kafka, f"{bench.prefix}-loop") as topics:
        record_bytes = topics.fill(bench.records)
        for i in range(bench.repetitions + 1):
            n = bench.records if i else min(bench.records, WARM_UP)
            span = bare_loop(configuration(topics, topics.group(f"bare-{i}"), Path("unused")), topics.bare, n)
            runs = {guarantee: _run(topics, f"{i}-{guarantee}", n, guarantee) for guarantee in GUARANTEES}
            in_turn = _on_and_off(topics, f"{i}-on-and-off", n, begins_on=i % 2 == 1)
            told = f"bare {span.us:.2f}, olstream {runs['exactly_once'].span.us:.2f} us"
            bench.say(f"loop, {f'pair {i} of {bench.repetitions}' if i else 'warm-up'}: {told}")
            if i:
                bare.append(span)
                us = {on: us[on] + in_turn[on] for on in us}
                for guarantee, run in runs.items():
                    ours[guarantee].append(run)
        part = _part(bench.records, record_bytes, bare, ours)
        _add_metrics(part, us)
        count = min(bench.records, QUIX_MAX)
        for guarantee in ("exactly-once", "at-least-once"):
            arguments = [topics.kafka["bootstrap.servers"], topics.input, topics.bare, guarantee, count]
            against_us = median(span.us for span in bare)
            rivals.compare(part, bench, f"Quix Streams + River, {guarantee}", "quix", arguments, against_us)
    return part


def _run(topics: Topics, name: str, n: int, guarantee: str) -> Run:
    with tempfile.TemporaryDirectory(prefix="olstream-bench-") as state:
        return our_loop(configuration(topics, topics.group(name), Path(state), guarantee=guarantee), n)


def _on_and_off(topics: Topics, name: str, n: int, begins_on: bool) -> dict[bool, list[float]]:
    with tempfile.TemporaryDirectory(prefix="olstream-bench-") as state:
        config = configuration(topics, topics.group(name), Path(state))
        return watched(config, lambda app, stop: OnAndOff(app, n, stop, begins_on)).us


def _add_metrics(part: Part, us: dict[bool, list[float]]) -> None:
    """What metrics cost, by CPU time: of a few percent the clock on the wall says nothing."""
    if not all(us.values()):
        return
    on, off = median(us[True]), median(us[False])
    told = f"{on:.2f} us of CPU with metrics, {off:.2f} without"
    part.rows.append(Row("the loop's thread, on and off in turn", told, f"metrics {percent(1.0 - off / on)}"))
    part.numbers["metrics"] = {
        "on_us": [round(one, 3) for one in us[True]],
        "off_us": [round(one, 3) for one in us[False]],
        "share": round(1.0 - off / on, 4),
    }


def _part(n: int, record_bytes: int, bare: list[Span], ours: dict[str, list[Run]]) -> Part:
    best = min(ours["exactly_once"], key=lambda run: run.span.us)
    stages_us = best.stages_us | {"other": best.span.us - sum(best.stages_us.values())}
    part = Part(f"loop: {n:,} records of {record_bytes} bytes, 20 features and a label, a commit every 200 ms")
    part.rows.append(Row("bare loop", _speed(bare), "1"))
    part.numbers = {"records": n, "record_bytes": record_bytes, "bare": _numbers(bare, bare)}
    for guarantee, runs in ours.items():
        spans = [run.span for run in runs]
        numbers = part.numbers[guarantee] = _numbers(bare, spans)
        ratio = f"{numbers['ratio']['median']:.2f}, best {numbers['ratio']['best']:.2f}"
        what = f"olstream AROW, {guarantee.replace('_', '-')}"
        part.rows.append(Row(what, _speed(spans), ratio, percent(runs[0].wrong)))
    stages = ", ".join(f"{name} {us:.2f}" for name, us in stages_us.items())
    part.rows.append(Row("best exactly-once run by stage, us", stages))
    part.numbers |= {"stages_us": {name: round(us, 3) for name, us in stages_us.items()}, "wrong": best.wrong}
    return part


def _speed(spans: list[Span]) -> str:
    return speed(median(span.us for span in spans), median(span.cpu_us for span in spans))


def _numbers(bare: list[Span], spans: list[Span]) -> dict[str, Any]:
    """The median ratio is of pairs, so that what slows the machine for a while slows both; the best, of best runs."""
    pairs = [then.us / span.us for then, span in zip(bare, spans, strict=True)]
    best = min(span.us for span in bare) / min(span.us for span in spans)
    return {
        "us": [round(span.us, 3) for span in spans],
        "cpu_us": [round(span.cpu_us, 3) for span in spans],
        "ratio": {"median": round(median(pairs), 3), "best": round(best, 3)},
    }
