"""How fast committed records are learnt again after a crash, against how fast they were learnt live."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from statistics import median
from threading import Event

from olstream.app import App
from olstream.bench.load import Topics
from olstream.bench.ours import configuration, our_loop, watched
from olstream.bench.part import Bench, Part, Row, speed
from olstream.bench.span import Instant, Span
from olstream.config import Config
from olstream.io.disk import newest_first, slot_directory
from olstream.messages import Chunk
from olstream.pipeline import Processed
from olstream.watch import Watch


class Relearning(Watch):
    """From the first chunk learnt again to the last one; then the service is told to stop."""

    def __init__(self, app: App, stop: Event) -> None:
        super().__init__(app.metrics, app.health)
        self._stop = stop
        self._ticks: list[tuple[int, Instant]] = []

    def replayed(self, chunk: Chunk, done: Processed) -> None:
        super().replayed(chunk, done)
        self._ticks.append((len(chunk), Instant.now()))

    def remaining(self, n: int) -> None:
        super().remaining(n)
        if n == 0:
            self._stop.set()

    def span(self) -> Span:
        (_, start), *ticks = self._ticks
        return Span(sum(n for n, _ in ticks), start, ticks[-1][1])


def measure(bench: Bench) -> Part:
    live: list[float] = []
    again: list[Span] = []
    with Topics(bench.kafka, f"{bench.prefix}-recovery") as topics:
        topics.fill(bench.records)
        for i in range(bench.repetitions):
            with tempfile.TemporaryDirectory(prefix="olstream-bench-") as state:
                config = configuration(topics, topics.group(str(i)), Path(state))
                live.append(our_loop(config, bench.records).span.us)
                _forget_all_but_the_first_checkpoint(config)
                again.append(watched(config, Relearning).span())
            told = f"live {live[-1]:.2f}, again {again[-1].us:.2f} us"
            bench.say(f"recovery, pair {i + 1} of {bench.repetitions}: {told}")
    ratio = median(then / now.us for then, now in zip(live, again, strict=True))
    part = Part(f"recovery: {bench.records:,} records")
    part.rows = [
        Row("learnt live", speed(median(live)), "1"),
        Row("learnt again, nothing published", speed(median(span.us for span in again)), f"{ratio:.2f}"),
    ]
    part.numbers = {
        "live_us": [round(us, 3) for us in live],
        "again_us": [round(span.us, 3) for span in again],
        "again_records": min(span.records for span in again),
        "ratio": round(ratio, 3),
    }
    return part


def _forget_all_but_the_first_checkpoint(config: Config) -> None:
    """As if the service had died before it wrote another: all of the journal has to be learnt again."""
    for folder in list(newest_first(slot_directory(config.checkpoint.path, config.group, config.slot)))[:-1]:
        shutil.rmtree(folder)
