"""THE LOOP: poll, decode, route, predict then update, publish, commit; now and then checkpoint.

The model is always checkpoint + committed journal lines after it. A commit is one Kafka
transaction: predictions, dead letters, journal line and input offsets. A checkpoint is taken
right after a commit that is known to have succeeded, never before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from threading import Event

from olstream.checkpoint import Partition, Position
from olstream.config import Config
from olstream.errors import StateError
from olstream.handover import Moved, adoption
from olstream.journal import Adopted, Learnt, Line, stands
from olstream.messages import Chunk
from olstream.pipeline import Pipeline, Processed
from olstream.ports import Checkpoints, Clock, Inputs, Sink, Source
from olstream.watch import Watch

IDLE_POLL_S = 0.2  # bounds how long a stop signal waits while nothing comes


class Loop:
    """One slot at work, from a recovered position on."""

    def __init__(
        self,
        config: Config,
        pipeline: Pipeline,
        position: Position,
        run: str,
        source: Source,
        sink: Sink,
        checkpoints: Checkpoints,
        clock: Clock,
        watch: Watch,
        open_inputs: Callable[[], Inputs],
    ) -> None:
        self.config = config
        self.pipeline = pipeline
        self.position = position
        self.run_id = run
        self.source = source
        self.sink = sink
        self.checkpoints = checkpoints
        self.clock = clock
        self.watch = watch
        self.open_inputs = open_inputs
        sink.note = lambda at: self.pipeline.note(at)
        self.learnt = Learnt()
        self.committed_s = self.checkpointed_s = clock.now_s()
        self.committed_since_checkpoint = False
        source.on_revoke(self.commit)

    def run(self, stop: Event, between: Callable[[], None] = lambda: None) -> None:
        """Work until told to stop, then commit, checkpoint and leave. `between` is called between two steps."""
        while not stop.is_set():
            self.step()
            between()
        self.commit()
        self._last_checkpoint()

    def step(self) -> None:
        start_s = self.clock.now_s()
        chunks = self._poll()
        self._take_over(self.source.moved())
        self._mark(self.source.unmarked())
        for chunk in chunks:
            processed = self.pipeline.process(chunk)
            self._publish(processed)
            self.learnt.add(chunk)
            self.watch.processed(chunk, processed)

        now_s = self.clock.now_s()
        if self.learnt.is_full() or now_s >= self.committed_s + self.config.commit_interval_s:
            self.commit()
        if now_s >= self.checkpointed_s + self.config.checkpoint.interval_s:
            self.checkpoint()
        self.watch.turned(self.pipeline.models.values(), sum(map(len, chunks)), self.clock.now_s() - start_s)

    def commit(self) -> None:
        """Make everything since the last commit visible and certain, or raise."""
        self.committed_s = self.clock.now_s()
        if self.learnt:
            self._write_line({})

    def _write_line(
        self, starts: Mapping[str, str], left: tuple[Partition, ...] = (), adopted: tuple[Adopted, ...] = ()
    ) -> None:
        seq = self.position.seq + 1
        line = Line(
            self.config.slot, self.run_id, self.position.lineage, seq, tuple(self.learnt.ranges),
            starts=starts, left=left, adopted=adopted,
        )  # fmt: skip
        offsets = stands([line])
        journal_offset = self.sink.commit(line, offsets)
        self.position = Position(self.position.lineage, seq, journal_offset, {**self.position.offsets, **offsets})
        self.learnt = Learnt()
        self.committed_since_checkpoint = True
        self.watch.committed()

    def checkpoint(self) -> None:
        """Hand a copy of the models and their position to the writer.

        Never ahead of Kafka: a crash costs a replay without publishing, not a lesson learnt twice.
        """
        self.checkpointed_s = self.clock.now_s()
        if self.checkpoints.busy():
            return
        self.commit()
        self._mark(self.source.passed())
        if not self.committed_since_checkpoint:
            if not self.source.is_settled():
                return
            # Idle: nothing of ours stands in between, so the next start need not read what others wrote.
            end = self.sink.look()
            self.position = self.position if end is None else replace(self.position, journal_offset=end)
        self.watch.checkpoint_taken()
        self.checkpoints.write(self.pipeline, self.position)
        self.committed_since_checkpoint = False

    def reconfigure(self, config: Config, pipeline: Pipeline, starts: Mapping[str, str]) -> None:
        """Go on under another configuration, with `pipeline`: the models as of the last commit, and new ones.

        A line without ranges makes this a place of its own in the journal, and a checkpoint there tells every start
        under which settings what follows was learnt. Raises OSError where that may not be on the disk: recover then.
        """
        assert not self.learnt, "only at a commit"
        self._write_line(starts)
        self.checkpoints.wait()
        self.watch.checkpoint_taken()
        self.checkpoints.write_under(config, pipeline, self.position)
        self.config, self.pipeline = config, pipeline
        self.checkpointed_s = self.clock.now_s()
        self.committed_since_checkpoint = False

    def _poll(self) -> list[Chunk]:
        """What came. Where it can go on no more, what is committed is saved: the records of it may be gone."""
        try:
            return self.source.poll(self.config.input.batch_max, self._patience_s())
        except StateError:
            if self.committed_since_checkpoint and not self.learnt:
                self._last_checkpoint()
            raise

    def _last_checkpoint(self) -> None:
        self.checkpoints.wait()
        self.checkpoint()
        self.checkpoints.wait()

    def _mark(self, offsets: Mapping[Partition, int]) -> None:
        """Commit where partitions begin, or stand, though no record was learnt there: a restart begins there again."""
        if offsets:
            self.commit()
            self.sink.commit(None, offsets)

    def _take_over(self, moved: Moved | None) -> None:
        """What waits for labels goes and comes with its partitions; the journal tells of it like of any record."""
        if moved is None:
            return
        held = self.pipeline.held()
        left = tuple(sorted((held if moved.whole else held & moved.gone) - moved.given))
        adopted = adoption(moved.taken, self.config.slot, held, self.pipeline.away())
        if not left and not adopted:
            return
        self.commit()
        is_read = any(one.start < one.end for one in adopted)
        if is_read:
            adopted = self._gather(left, adopted)
        else:
            self.pipeline.move(left, adopted, lambda _: iter(()))
        self._write_line({}, left, adopted)
        if is_read:
            self.checkpoint()  # what was read for this may be as old as retention allows

    def _gather(self, left: tuple[Partition, ...], adopted: tuple[Adopted, ...]) -> tuple[Adopted, ...]:
        """Read what waits in partitions that came; which of it was still there."""
        with closing(self.open_inputs()) as inputs:
            there = tuple(
                one.from_there(inputs.begin(one.topic, one.partition)) if one.start < one.end else one
                for one in adopted
            )
            self.pipeline.move(left, there, lambda wanted: inputs.read(wanted, self.config.input.batch_max))
        return there

    def _publish(self, processed: Processed) -> None:
        for records in processed.outgoing:
            self.sink.publish(records)
        for dead_letter in processed.dead_letters:
            self.sink.publish_one(dead_letter)

    def _patience_s(self) -> float:
        if not self.learnt:
            return IDLE_POLL_S
        return max(0.0, min(IDLE_POLL_S, self.committed_s + self.config.commit_interval_s - self.clock.now_s()))
