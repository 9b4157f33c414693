"""One run of the real service over the benchmark's records, in this process, timed from inside."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from olstream.app import App
from olstream.bench.load import Topics
from olstream.config import Config
from olstream.families import STAGES
from olstream.messages import Chunk
from olstream.pipeline import Processed
from olstream.watch import Watch


@dataclass(frozen=True)
class Run:
    """Microseconds per message: the whole, and its parts (what is left is `other`)."""

    us: float
    stages_us: dict[str, float]


def configuration(topics: Topics, group: str, state: Path) -> Config:
    """Exactly once, AROW, a commit every 200 ms; everything else as it comes."""
    return Config.model_validate(
        {
            "kafka": topics.kafka,
            "consumer": {"group.protocol": "consumer"},  # joins in 0.3 s instead of 3
            "group": group,
            "input": {"topics": [topics.input]},
            "output": {"predictions": topics.predictions, "dead_letters": topics.dead_letters},
            "commit_interval": "200ms",
            "learners": {"model": {"algorithm": "arow", "task": "binary", "classes": [-1, 1]}},
            "checkpoint": {"path": str(state)},
            "http": {"port": 0},
        }
    )


class Stopwatch(Watch):
    """From the first chunk learnt to the commit that holds the last of n records."""

    def __init__(self, app: App, n: int, stop: Event) -> None:
        super().__init__(app.metrics, app.health)
        self._n, self._stop = n, stop
        self._done = self._first = 0
        self._start_s = self._end_s = 0.0
        self._stages_at_start: dict[str, float] = {}
        self._stages_at_end: dict[str, float] = {}

    def processed(self, chunk: Chunk, done: Processed) -> None:
        super().processed(chunk, done)
        if not self._done:
            self._first, self._start_s, self._stages_at_start = len(chunk), time.perf_counter(), self._stages()
        self._done += len(chunk)
        if self._done >= self._n:
            self._stop.set()  # the loop commits at once then, as the bare loop does, not at the next interval

    def committed(self) -> None:
        super().committed()
        if self._done >= self._n and not self._end_s:
            self._end_s, self._stages_at_end = time.perf_counter(), self._stages()

    def run(self) -> Run:
        per_message = 1e6 / (self._done - self._first)
        stages = {name: (s - self._stages_at_start[name]) * per_message for name, s in self._stages_at_end.items()}
        return Run((self._end_s - self._start_s) * per_message, stages)

    def _stages(self) -> dict[str, float]:
        return {name: self.metrics.families.stages.at(name).value or 0.0 for name in STAGES}


def our_loop(topics: Topics, group: str, n: int) -> Run:
    with tempfile.TemporaryDirectory(prefix="olstream-bench-") as state:
        stop = Event()
        app = App(configuration(topics, group, Path(state)))
        stopwatch = Stopwatch(app, n, stop)
        app.watch = stopwatch
        app.run(stop)
    return stopwatch.run()
