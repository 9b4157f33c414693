"""Retention, or a person with DeleteRecords, takes what is old: read already, and not read yet."""

from __future__ import annotations

import signal

from olstream.checkpoint import read_manifest
from olstream.io.disk import newest_first, slot_directory
from tests.kafka.chaos.offsets import LEAVES
from tests.kafka.chaos.scenario import scenario
from tests.kafka.chaos.stage import Stage
from tests.kafka.chaos.verdict import (
    Inputs,
    assert_answered,
    assert_as_if_undisturbed,
    assert_counted,
    assert_ended,
    assert_journal_covers,
    read_inputs,
)
from tests.kafka.service import Worker


@scenario(bounded=False, checkpoint={"keep": 1})
def input_cut_behind_the_worker(stage: Stage) -> None:
    """Records that were learnt are deleted, at work and while away, and lines before the checkpoint: harmless."""
    flow = stage.flow()
    worker = stage.service.start()
    inputs: Inputs = {}
    for _ in range(2):
        flow.feed(stage.rng.randrange(200, 400))
        flow.flush()
        stage.until_committed(flow.fed, worker)
        inputs = {**inputs, **read_inputs(stage)}
        stage.topics.delete_before(stage.input, flow.fed - stage.rng.randrange(50))
        stage.fault()
    flow.feed(200)
    stage.finish(worker)
    inputs = {**inputs, **read_inputs(stage)}
    assert_journal_covers(stage, inputs)
    stage.topics.delete_before(stage.input, flow.fed)  # all of it
    stage.topics.delete_before(f"{stage.group}-journal", newest(stage)[1])
    stage.fault(2)

    flow.feed(200)
    stage.finish(stage.service.start())
    inputs = {**inputs, **read_inputs(stage)}
    assert_answered(stage, inputs)
    assert_counted(stage, inputs)
    assert_as_if_undisturbed(stage, inputs)
    stage.service.verify()


@scenario(checkpoint={"keep": 1})
def input_cut_before_the_worker(stage: Stage) -> None:
    """Records that were not read are deleted while the worker stands still: exit 4 with their number, and again."""
    worker = stage.service.start().until_ready()
    flow = stage.flow()
    flow.feed(stage.rng.randrange(200, 400))
    flow.flush()
    stage.until_committed(flow.fed, worker)
    worker.send(signal.SIGSTOP)
    flow.feed(20_000)  # more than what may have been on its way
    flow.flush()
    cut = flow.fed - stage.rng.randrange(1, 1000)
    stage.topics.delete_before(stage.input, cut)
    stage.fault()
    worker.send(signal.SIGCONT)

    assert_ended(worker, 4, "retention took", f"to {cut}", "input.on_gap: skip")
    lost = cut - stage.committed()
    assert_ended(stage.service.start(), 4, f"retention took {lost} records", "input.on_gap: skip")
    stage.service.verify()


@scenario(**LEAVES)
def journal_cut(stage: Stage) -> None:
    """The journal is cut before the checkpoint: harmless. Beyond it: exit 4, until a rollback goes on from there."""
    flow = stage.flow()
    flow.feed(300)
    stage.finish(stage.service.start())
    worker = stage.service.start(checkpoint={"interval": "1h"})
    flow.feed(stage.rng.randrange(200, 400))
    stage.finish(worker, by=Worker.kill)  # what it did stands in the journal alone
    seq, needed = newest(stage)
    journal = f"{stage.group}-journal"
    stage.topics.delete_before(journal, needed)
    stage.fault()
    stage.service.start().until_ready().kill()

    stage.topics.delete_before(journal, needed + 1)
    stage.fault()
    assert_ended(stage.service.start(), 4, f"the journal {journal}", f"from {needed}", "state rollback")
    stage.service.roll_back(seq)
    flow.feed(200)
    stage.finish(stage.service.start())
    assert_answered(stage, read_inputs(stage))
    stage.service.verify()


def newest(stage: Stage) -> tuple[int, int]:
    """Up to which line the newest checkpoint has learnt, and from where it needs the journal."""
    manifest = read_manifest(next(newest_first(slot_directory(stage.service.state, stage.group, 0))))
    return manifest["seq"], manifest["journal_offset"]
