"""What a binary AROW keeps in memory, by number of features; each size in a process of its own."""

from __future__ import annotations

import gc
import re
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from olstream.bench.part import Bench, Part, Row
from olstream.bench.side import processes
from olstream.checkpoint import Position
from olstream.config import Config, parse
from olstream.io.disk import Store
from olstream.messages import Example
from olstream.model import Model
from olstream.recover import checkpoint_of

SIZES: Final = (1_000, 100_000, 1_000_000)
ROW: Final = 20  # features of a row
BATCH: Final = 500  # rows
STATUS: Final = Path("/proc/self/status")


class Resident(NamedTuple):
    """Bytes: before the first feature, with all of them, and at most while a checkpoint was written."""

    empty: int
    full: int
    peak: int


def measure(bench: Bench, sizes: tuple[int, ...] = SIZES) -> Part:
    part = Part("memory: a binary AROW, resident above the empty process")
    if not STATUS.exists():
        part.rows.append(Row("not measured", "only Linux tells it"))
        return part
    for n in sizes:
        bench.say(f"memory, {n:,} features ...")
        with processes(1) as pool:
            found = pool.submit(resident, n).result()
        held, peak = found.full - found.empty, found.peak - found.empty
        shown = f"{held / 1e6:.1f} MB, {held / n:,.0f} bytes each; {peak / 1e6:.1f} MB while a checkpoint is written"
        part.rows.append(Row(f"{n:,} features", shown))
        part.numbers[str(n)] = found._asdict()
    return part


def resident(n: int) -> Resident:
    """To be called in a new process."""
    config = of_features(n)
    model = Model("model", config.learners["model"], config.monitor)
    model.warm_up()
    empty = _status("VmRSS")
    grow(model, n)
    gc.collect()
    full = _status("VmRSS")
    with tempfile.TemporaryDirectory(prefix="olstream-bench-") as directory:
        store = Store(Path(directory, "state"))
        store.open()
        store.save(checkpoint_of(config, {"model": model}, Position("bench"), {}))
        store.close()
    return Resident(empty, full, _status("VmHWM"))


def of_features(n: int) -> Config:
    text = f"learners: {{model: {{algorithm: arow, task: binary, classes: [-1, 1], features: {{names_max: {n}}}}}}}"
    return parse(text, "bench", {})


def grow(model: Model, n: int) -> None:
    """Learn rows of names that have not been there before, until there are n."""
    for start in range(0, n, ROW * BATCH):
        rows = range(start, min(n, start + ROW * BATCH), ROW)
        names = ([f"name_{i}" for i in range(row, min(n, row + ROW))] for row in rows)
        model.predict_then_update([Example(features=dict.fromkeys(row, 1.0), label=1) for row in names])


def _status(key: str) -> int:
    found = re.search(rf"^{key}:\s+(\d+) kB$", STATUS.read_text(), re.MULTILINE)
    assert found is not None
    return 1024 * int(found[1])
