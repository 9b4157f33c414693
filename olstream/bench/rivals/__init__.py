"""The competitors: each a program of this folder that needs nothing of ours, run by an interpreter that has them.

A program measures once and prints one JSON line: a list of {"what", "records", "us", "wrong"}.
Microseconds are of the clock beside a broker, and of CPU where a learner is alone.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Final

from olstream.bench.part import Bench, Part, Row, percent, speed

PATIENCE_S: Final = 300.0
HOW: Final = "left out: `make bench` installs it, or give --rivals a Python with requirements-bench.lock"


@dataclass(frozen=True, slots=True)
class Told:
    """One measurement: microseconds per record, and the share of wrong predictions."""

    what: str
    records: int
    us: float
    wrong: float


def compare(part: Part, bench: Bench, name: str, program: str, arguments: Sequence[object], against_us: float) -> None:
    """Add what a program measures, or why there is nothing of it."""
    told = _ask(bench, name, program, arguments)
    if isinstance(told, str):
        part.rows.append(Row(name, told))
        told = []
    for one in told:
        part.rows.append(Row(one.what, speed(one.us), f"{against_us / one.us:.2g}", percent(one.wrong)))
    rivals: list[dict[str, Any]] = part.numbers.setdefault("rivals", [])
    rivals += [asdict(one) for one in told]


def _ask(bench: Bench, name: str, program: str, arguments: Sequence[object]) -> list[Told] | str:
    """The medians of so many runs as there are repetitions."""
    if bench.rivals is None:
        return HOW
    bench.say(f"{name} ...")
    runs: list[list[Told]] = []
    for _ in range(bench.repetitions):
        command = [bench.rivals, str(Path(__file__).with_name(f"{program}.py")), *map(str, arguments)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            return f"left out: not done within {PATIENCE_S:.0f} s"
        if done.returncode:
            return f"left out: {(done.stderr.strip().splitlines() or ['it failed'])[-1]}"
        runs.append([Told(**measured) for measured in json.loads(done.stdout.splitlines()[-1])])
    return [replace(same[0], us=median(one.us for one in same)) for same in zip(*runs, strict=True)]
