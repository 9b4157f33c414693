"""What every part of the benchmark is given, and what it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True)
class Bench:
    """One run of the benchmark. `rivals`: an interpreter whose environment has the competitors, None without."""

    kafka: dict[str, str | int | float]
    prefix: str
    records: int
    repetitions: int
    rivals: str | None
    say: Callable[[str], None]


class Row(NamedTuple):
    """A line of the table. `wrong`: the share of wrong predictions, each made before its label was used."""

    what: str
    measured: str
    ratio: str = ""
    wrong: str = ""


@dataclass(slots=True)
class Part:
    """The rows of a part for people, and its numbers for programs."""

    title: str
    rows: list[Row] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)


def speed(us: float, cpu_us: float | None = None) -> str:
    """Microseconds per record, those of CPU, and records per second, as rows show them."""
    cpu = "" if cpu_us is None else f", {cpu_us:.2f} of CPU"
    return f"{us:.2f} us{cpu}, {1e6 / us:,.0f}/s"


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"
