"""What the loop's events become."""

from __future__ import annotations

from olstream.config import Config
from olstream.health import Health
from olstream.messages import Chunk
from olstream.metrics import Metrics
from olstream.pipeline import Processed
from olstream.watch import Watch


def watch_of() -> Watch:
    config = Config.model_validate({"input": {"topics": ["events"]}, "learners": {"a": {"algorithm": "arow"}}})
    health = Health()
    return Watch(Metrics(config, health), health)


def commit(watch: Watch, n: int) -> None:
    chunk = Chunk("events", 0, list(range(n)), [0] * n, [None] * n, [b"{}"] * n, [None] * n)
    watch.processed(chunk, Processed(chunk, [None] * n))
    watch.committed()


def uncheckpointed(watch: Watch) -> float | None:
    return watch.metrics.families.uncheckpointed.value


def test_records_count_as_checkpointed_once_their_checkpoint_is_on_disk() -> None:
    watch = watch_of()
    commit(watch, 5)

    watch.checkpoint_taken()
    commit(watch, 2)
    while_writing = uncheckpointed(watch)
    watch.checkpoint_written(0.1, 1000)

    assert (while_writing, uncheckpointed(watch)) == (7, 2)


def test_a_checkpoint_that_fails_leaves_its_records_uncheckpointed() -> None:
    watch = watch_of()
    commit(watch, 5)

    watch.checkpoint_taken()  # and is never written
    commit(watch, 2)
    watch.checkpoint_taken()
    failed = uncheckpointed(watch)
    watch.checkpoint_written(0.1, 1000)

    assert (failed, uncheckpointed(watch)) == (7, 0)
