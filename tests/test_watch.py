"""What the loop's events become."""

from __future__ import annotations

import pytest

from olstream.config import Config
from olstream.health import Health
from olstream.messages import Chunk, Example
from olstream.metrics import Metrics
from olstream.model import Model
from olstream.pipeline import Processed, Result
from olstream.watch import Watch


def watch_of(**sections: object) -> Watch:
    keys = {"input": {"topics": ["events"]}, "learners": {"a": {"algorithm": "arow"}}}
    config = Config.model_validate(keys | sections)
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


def drifting(watch: Watch, model: Model) -> None:
    """Rows whose labels turn round at the 200th."""
    examples = [Example(features={"x": 1.0 - 2.0 * (i % 2)}, label=(i + (i >= 200)) % 2) for i in range(400)]
    offsets = list(range(1000, 1400))
    for start in range(0, 400, 16):
        part = slice(start, start + 16)
        chunk = Chunk("events", 3, offsets[part], [0] * 16, [None] * 16, [b"{}"] * 16, [None] * 16)
        rows = model.predict_then_update(examples[part])
        done = Processed(chunk, [None] * 16, results=[Result(model, rows, range(16), True)])
        watch.processed(chunk, done)


def test_a_drift_is_one_line_with_its_offset_and_counts_once(caplog: pytest.LogCaptureFixture) -> None:
    watch = watch_of()
    model = Model("a", watch.metrics.config.learners["a"], watch.metrics.config.monitor)

    with caplog.at_level("WARNING", "olstream"):
        drifting(watch, model)

    reading = model.alarms.readings()[0]
    assert reading.detections >= 1
    expected = [("drift", "a", "adwin", "error", "events", 3, 999 + row, row) for row in reading.marks]
    fields = ("message", "learner", "detector", "signal", "topic", "partition", "offset", "labelled")
    assert [tuple(getattr(record, name) for name in fields) for record in caplog.records] == expected
    families = watch.metrics.families
    assert families.detections.at("a", "adwin", "error").value == reading.detections
    assert families.last_detection.at("a", "adwin", "error").value is not None
    assert families.warnings.at("a", "adwin", "error").value == 0.0


def test_what_follows_from_a_drift_is_a_line_too(caplog: pytest.LogCaptureFixture) -> None:
    watch = watch_of(monitor={"on_drift": "reset"})
    model = Model("a", watch.metrics.config.learners["a"], watch.metrics.config.monitor)

    with caplog.at_level("WARNING", "olstream"):
        drifting(watch, model)

    first = model.alarms.readings()[0].marks[0]
    boundary = -(-first // 32) * 32  # the next row after which drift is answered
    answers = [(of.getMessage(), of.learner, of.offset) for of in caplog.records if "after" in of.getMessage()]  # type: ignore[attr-defined]
    assert answers[0] == ("reset after drift", "a", 1000 + boundary - 1)
