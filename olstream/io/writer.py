"""Checkpoints are written beside the loop, in a thread: the loop only takes the copy.

A disk that fails does not stop the processing. It is counted, told, and tried again at the next
interval; what it costs is a longer replay after a crash.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from olstream import crash
from olstream.checkpoint import Checkpoint, Position
from olstream.config import Config
from olstream.pipeline import Pipeline
from olstream.ports import Store
from olstream.recover import checkpoint_of
from olstream.reload import facts_under

log = logging.getLogger(__name__)


class CheckpointWriter:
    """One checkpoint at a time."""

    def __init__(
        self,
        config: Config,
        store: Store,
        facts: Mapping[str, Any],
        on_written: Callable[[float, int], None],
        on_failed: Callable[[OSError], None],
    ) -> None:
        self.config = config
        self.store = store
        self.facts = facts
        self.on_written = on_written
        self.on_failed = on_failed
        self._threads = ThreadPoolExecutor(1, "checkpoint")
        self._current: Future[None] | None = None
        self._written_seq = -1

    def busy(self) -> bool:
        if self._current is None or not self._current.done():
            return self._current is not None
        self._current.result()  # what is no fault of the disk is a bug: it must come out
        return False

    def write(self, pipeline: Pipeline, position: Position) -> None:
        crash.point("copy.before")
        checkpoint = checkpoint_of(self.config, pipeline.models, position, self.facts)
        crash.point("copy.after")
        self._current = self._threads.submit(self._save, checkpoint)

    def write_under(self, config: Config, pipeline: Pipeline, position: Position) -> None:
        self.wait()
        facts = facts_under(self.facts, self.config, config, position)
        start = time.monotonic()
        try:
            size_bytes = self.store.save(checkpoint_of(config, pipeline.models, position, facts))
        except OSError as error:
            self.on_failed(error)
            raise
        self.on_written(time.monotonic() - start, size_bytes)
        self.config, self.facts = config, facts
        self._written_seq = position.seq

    def wait(self) -> None:
        if self._current is not None:
            self._current.result()

    def close(self) -> None:
        self._threads.shutdown(wait=True)

    def _save(self, checkpoint: Checkpoint) -> None:
        start = time.monotonic()
        try:
            size_bytes = self.store.save(checkpoint)
        except OSError as error:
            log.error("checkpoint was not written, processing goes on: %s", error)
            self.on_failed(error)
            return
        self.on_written(time.monotonic() - start, size_bytes)
        is_news = checkpoint.position.seq != self._written_seq
        self._written_seq = checkpoint.position.seq
        level = logging.INFO if is_news else logging.DEBUG  # an idle worker writes the same again and again
        log.log(level, "checkpoint written at seq %d, %d bytes", checkpoint.position.seq, size_bytes)
