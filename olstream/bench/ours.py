"""One run of the real service over the benchmark's records, in this process, timed from inside."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, ParamSpec, TypeVar

from olstream.app import App
from olstream.bench.load import Topics
from olstream.bench.span import Instant, Span
from olstream.config import Config
from olstream.families import STAGES
from olstream.messages import Chunk
from olstream.model import Model
from olstream.pipeline import Processed
from olstream.watch import Watch

LEARNER = "model"

WatchT = TypeVar("WatchT", bound=Watch)
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Run:
    """Microseconds per record by stage (what is left is `other`), and the share of wrong predictions."""

    span: Span
    stages_us: dict[str, float]
    wrong: float


def configuration(topics: Topics, group: str, state: Path, **settings: Any) -> Config:
    """Exactly once, AROW, a commit every 200 ms; everything else as it comes, but for `settings`."""
    return Config.model_validate(
        {
            "kafka": topics.kafka,
            "consumer": {"group.protocol": "consumer"},  # joins in 0.3 s instead of 3
            "group": group,
            "input": {"topics": [topics.input]},
            "output": {"predictions": topics.predictions, "dead_letters": topics.dead_letters},
            "commit_interval": "200ms",
            "learners": {LEARNER: {"algorithm": "arow", "task": "binary", "classes": [-1, 1]}},
            "checkpoint": {"path": str(state)},
            "http": {"port": 0},
            **settings,
        }
    )


class Stopwatch(Watch):
    """From the first chunk learnt to the commit that holds the last of n records."""

    def __init__(self, app: App, n: int, stop: Event) -> None:
        super().__init__(app.metrics, app.health)
        self._n, self._stop = n, stop
        self._done = self._first = self._labelled = self._mistakes = 0
        self._start: Instant | None = None
        self._end: Instant | None = None
        self._stages_at_start: dict[str, float] = {}
        self._stages_at_end: dict[str, float] = {}

    def processed(self, chunk: Chunk, done: Processed) -> None:
        self.tell(chunk, done)
        if self._start is None:
            self._first, self._start, self._stages_at_start = len(chunk), Instant.now(), self._stages()
        self._done += len(chunk)
        for result in done.results:
            self._labelled += result.rows.counts.labelled
            self._mistakes += result.rows.counts.mistakes
        if self._done >= self._n:
            self._stop.set()  # the loop commits at once then, as the bare loop does, not at the next interval

    def tell(self, chunk: Chunk, done: Processed) -> None:
        super().processed(chunk, done)

    def committed(self) -> None:
        super().committed()
        if self._done >= self._n and self._end is None:
            self._end, self._stages_at_end = Instant.now(), self._stages()

    def run(self) -> Run:
        assert self._start is not None and self._end is not None, "the service ended before the last record"
        span = Span(self._done - self._first, self._start, self._end)
        per_record = 1e6 / span.records
        stages = {name: (s - self._stages_at_start[name]) * per_record for name, s in self._stages_at_end.items()}
        return Run(span, stages, self._mistakes / self._labelled)

    def _stages(self) -> dict[str, float]:
        return {name: self.metrics.families.stages.at(name).value or 0.0 for name in STAGES}


class OnAndOff(Stopwatch):
    """The same with metrics and without them in turn, from one commit to the next. The last stretches of a run are
    slower than others, so runs should begin with metrics and without them in turn too.

    `us`: what the loop's thread computed for a record in each such stretch, with them and without. Other threads are
    the client's, which has nothing to do with them.
    """

    def __init__(self, app: App, n: int, stop: Event, begins_on: bool) -> None:
        super().__init__(app, n, stop)
        self.us: dict[bool, list[float]] = {True: [], False: []}
        self._is_on = begins_on
        self._since: tuple[int, float] | None = None

    def timed(self, stage: str, function: Callable[P, T]) -> Callable[P, T]:
        measured = super().timed(stage, function)

        def either(*args: P.args, **kwargs: P.kwargs) -> T:
            return (measured if self._is_on else function)(*args, **kwargs)

        return either

    def tell(self, chunk: Chunk, done: Processed) -> None:
        if self._is_on:
            super().tell(chunk, done)

    def turned(self, models: Iterable[Model], n: int, seconds: float) -> None:
        if self._is_on or not n:
            super().turned(models, n, seconds)
        else:
            self.health.polled()

    def committed(self) -> None:
        super().committed()
        now = self._done, time.thread_time()
        if self._since is not None and self._done > self._since[0]:
            self.us[self._is_on].append((now[1] - self._since[1]) / (now[0] - self._since[0]) * 1e6)
        self._since, self._is_on = now, not self._is_on


def our_loop(config: Config, n: int) -> Run:
    return watched(config, lambda app, stop: Stopwatch(app, n, stop)).run()


def watched(config: Config, watch: Callable[[App, Event], WatchT]) -> WatchT:
    """Run the service until its watch sets the event."""
    stop = Event()
    app = App(config)
    app.watch = its_watch = watch(app, stop)
    app.run(stop)
    del app
    gc.collect()  # its clients are held by circles, and would go on beside the next run
    return its_watch
