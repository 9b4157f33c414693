"""How long a checkpoint of a large model stops the loop, and how much its writing slows the loop down."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from threading import Event
from typing import Any, Final

from olstream.app import App
from olstream.bench.load import FEATURES, Topics
from olstream.bench.memory import grow
from olstream.bench.ours import LEARNER, Stopwatch, configuration, watched
from olstream.bench.part import Bench, Part, Row, speed
from olstream.checkpoint import Position
from olstream.config import Config
from olstream.io.disk import Store, slot_directory
from olstream.model import Model
from olstream.recover import checkpoint_of

RUNS_MAX: Final = 3
TIMES: Final = 3  # the records of the other parts: so many that several checkpoints are written meanwhile


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the loop that had records. `writing`: a checkpoint was written beside it."""

    records: int
    seconds: float
    writing: bool


class Turns(Stopwatch):
    """Also every turn, and how long each copy took."""

    def __init__(self, app: App, n: int, stop: Event) -> None:
        super().__init__(app, n, stop)
        self.turns: list[Turn] = []
        self.copies_s: list[float] = []
        self._copying_s = 0.0  # all of it so far

    def turned(self, models: Iterable[Model], n: int, seconds: float) -> None:
        super().turned(models, n, seconds)
        copying_s = self.metrics.families.stages.at("checkpoint").value or 0.0
        if copying_s > self._copying_s:
            self.copies_s.append(copying_s - self._copying_s)
            self._copying_s = copying_s
        if n:
            self.turns.append(Turn(n, seconds, len(self.copies_s) > self.written()))

    def written(self) -> float:
        return self.metrics.families.checkpoint_duration.at().read()[0][-1][1]


@dataclass(frozen=True, slots=True)
class Slowed:
    """One run: microseconds per record without and with a checkpoint beside the loop, and its stalls."""

    idle_us: float
    writing_us: float
    copies_ms: list[float]
    longest_turn_ms: float
    write_s: float

    @classmethod
    def of(cls, turns: Turns) -> Slowed:
        seconds = turns.metrics.families.checkpoint_duration.at().read()[1]
        return cls(
            _us(turn for turn in turns.turns if not turn.writing),
            _us(turn for turn in turns.turns if turn.writing),
            [1e3 * copy for copy in turns.copies_s],
            1e3 * max(turn.seconds for turn in turns.turns),
            seconds / max(1.0, turns.written()),
        )


def _us(turns: Iterable[Turn]) -> float:
    counted = list(turns)
    return sum(turn.seconds for turn in counted) / sum(turn.records for turn in counted) * 1e6


def measure(bench: Bench, features: int = 1 << 20, interval: str = "300ms") -> Part:
    n = TIMES * bench.records
    runs: list[Slowed] = []
    with Topics(bench.kafka, f"{bench.prefix}-checkpoint") as topics:
        topics.fill(n)
        for i in range(min(bench.repetitions, RUNS_MAX)):
            with tempfile.TemporaryDirectory(prefix="olstream-bench-") as state:
                config = _configuration(topics, topics.group(str(i)), Path(state), features, interval)
                _lay_down(config, features)
                turns = watched(config, lambda app, stop: Turns(app, n, stop))
            if {turn.writing for turn in turns.turns} == {True, False}:
                runs.append(Slowed.of(turns))
                told = f"{runs[-1].idle_us:.2f} us, {runs[-1].writing_us:.2f} while one is written"
                bench.say(f"checkpoint, {features:,} features: {told}")
    return _part(features, runs)


def _configuration(topics: Topics, group: str, state: Path, features: int, interval: str) -> Config:
    learner: dict[str, Any] = {"algorithm": "arow", "task": "binary", "classes": [-1, 1]}
    return configuration(
        topics,
        group,
        state,
        learners={LEARNER: {**learner, "features": {"names_max": features}}},
        checkpoint={"path": str(state), "interval": interval},
    )


def _lay_down(config: Config, features: int) -> None:
    """A checkpoint to start from, of a model that is large already; the stream brings the last names."""
    model = Model(LEARNER, config.learners[LEARNER], config.monitor)
    grow(model, features - FEATURES)
    store = Store(slot_directory(config.checkpoint.path, config.group, config.slot))
    store.open()
    store.save(checkpoint_of(config, {LEARNER: model}, Position(uuid.uuid4().hex), {}))
    store.close()


def _part(features: int, runs: list[Slowed]) -> Part:
    part = Part(f"checkpoint: a model of {features:,} features")
    if not runs:
        part.rows = [Row("not measured", "no checkpoint was written among so few --records")]
        return part
    copies_ms = [copy for run in runs for copy in run.copies_ms]
    ratio = median(run.idle_us / run.writing_us for run in runs)
    writing = speed(median(run.writing_us for run in runs))
    longest_ms, write_s = max(run.longest_turn_ms for run in runs), median(run.write_s for run in runs)
    part.rows = [
        Row("loop stopped by the copy", f"{median(copies_ms):.0f} ms, at most {max(copies_ms):.0f} ms"),
        Row("loop with nothing beside it", speed(median(run.idle_us for run in runs)), "1"),
        Row("loop while a checkpoint is written", f"{writing}, for {write_s:.1f} s", f"{ratio:.2f}"),
        Row("longest turn of the loop", f"{longest_ms:.0f} ms"),
    ]
    part.numbers = {
        "features": features,
        "copies_ms": [round(copy, 1) for copy in copies_ms],
        "idle_us": [round(run.idle_us, 3) for run in runs],
        "writing_us": [round(run.writing_us, 3) for run in runs],
        "ratio": round(ratio, 3),
        "write_s": round(write_s, 2),
        "longest_turn_ms": round(longest_ms, 1),
    }
    return part
