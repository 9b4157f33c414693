"""Runs the parts that are asked for, and shows them as one table or as JSON."""

from __future__ import annotations

import importlib
import os
import platform
from collections.abc import Sequence
from typing import Any

import confluent_kafka
import numpy as np
from rich.console import Console
from rich.table import Table

from olstream.bench.part import Bench, Part


def measured(bench: Bench, names: Sequence[str]) -> dict[str, Part]:
    parts: dict[str, Part] = {}
    for name in names:
        module = importlib.import_module(f"olstream.bench.{name}")
        parts[name] = module.measure(bench)
    return parts


def machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "librdkafka": confluent_kafka.libversion()[0],
        "numpy": np.__version__,
    }


def document(parts: dict[str, Part]) -> dict[str, Any]:
    return {"machine": machine(), **{name: part.numbers for name, part in parts.items()}}


def show(parts: dict[str, Part], console: Console) -> None:
    """A section a part."""
    for part in parts.values():
        table = Table(title=part.title, title_justify="left", title_style="bold", min_width=min(console.width, 100))
        table.add_column("")
        table.add_column("measured", ratio=1)
        table.add_column("ratio", justify="right")
        if any(row.wrong for row in part.rows):
            table.add_column("wrong", justify="right")
        for row in part.rows:
            table.add_row(*row[: len(table.columns)])
        console.print(table)
    console.print("us: microseconds per record. Medians; ratios are of rates within this run.", style="dim")
    console.print(", ".join(f"{key} {value}" for key, value in machine().items()), style="dim", highlight=False)
