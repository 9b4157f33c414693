"""Ports whose time is measured, so that the loop itself need not look at a clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from olstream.checkpoint import Partition, Position
from olstream.config import Config
from olstream.journal import Line
from olstream.messages import Chunk, Outgoing, Records
from olstream.pipeline import Pipeline
from olstream.ports import Checkpoints, Sink, Source
from olstream.watch import Watch


class TimedSource:
    """A source whose polls count as stage `poll`."""

    def __init__(self, source: Source, watch: Watch) -> None:
        self.poll: Callable[[int, float], list[Chunk]] = watch.timed("poll", source.poll)
        self.on_revoke = source.on_revoke
        self.unmarked = source.unmarked
        self.moved = source.moved
        self.passed = source.passed
        self.is_settled = source.is_settled
        self.close = source.close


class TimedSink:
    """A sink whose sending counts as stage `produce`, its commits as stage `commit`."""

    def __init__(self, sink: Sink, watch: Watch) -> None:
        self._sink = sink
        self.open_run = sink.open_run
        self.publish: Callable[[Records], None] = watch.timed("produce", sink.publish)
        self.publish_one: Callable[[Outgoing], None] = watch.timed("produce", sink.publish_one)
        self.commit: Callable[[Line | None, Mapping[Partition, int]], int] = watch.timed("commit", sink.commit)
        self.look = sink.look
        self.close = sink.close

    @property
    def note(self) -> Callable[[Partition], str]:
        return self._sink.note

    @note.setter
    def note(self, note: Callable[[Partition], str]) -> None:
        self._sink.note = note


class TimedCheckpoints:
    """A writer whose copies, which are taken in the loop, count as stage `checkpoint`."""

    def __init__(self, writer: Checkpoints, watch: Watch) -> None:
        self.busy = writer.busy
        self.write: Callable[[Pipeline, Position], None] = watch.timed("checkpoint", writer.write)
        self.write_under: Callable[[Config, Pipeline, Position], None] = watch.timed("checkpoint", writer.write_under)
        self.wait = writer.wait
