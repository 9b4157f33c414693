"""A slot that has learnt before finds no checkpoint, or no journal to go on along: `checkpoint.on_missing` decides."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from typing import Any

import pytest

from olstream.io.disk import PREFIX
from olstream.journal import Line
from tests.kafka.events import events
from tests.kafka.service import Service, ServiceFactory, Worker
from tests.kafka.straight import learnt_from

N = 100
MORE = 50
STREAM = events(N + MORE)


def lost(service: Service) -> None:
    shutil.rmtree(service.state)


def damaged(service: Service) -> None:
    found = list(service.state.glob(f"*/*/{PREFIX}*"))
    assert len(found) > 1
    for checkpoint in found:
        manifest = checkpoint / "manifest.json"
        manifest.write_bytes(manifest.read_bytes()[:-9])


Loss = Callable[[Service], None]
losses = pytest.mark.parametrize(("loss", "guarantee"), [
    (lost, "exactly_once"), (lost, "at_least_once"), (damaged, "exactly_once"),
])  # fmt: skip


def lived(service: ServiceFactory, **settings: object) -> Service:
    """A service that has learnt N records and was stopped in good order, with the empty checkpoint still there."""
    made = service(**settings).make_topics()
    made.topics.produce(made.input, STREAM[:N])
    made.run_to(N)
    return made


def go_on(made: Service, **settings: object) -> None:
    """The rest of the stream, in one life that ends well."""
    made.configure(**settings)
    made.topics.produce(made.input, STREAM[N:])
    made.run_to(N + MORE)


def journal(made: Service) -> list[Line]:
    read = made.topics.read(f"{made.group}-journal")
    return [Line.from_bytes(message.value() or b"", message.offset() or 0) for message in read]


def learners(made: Service) -> dict[str, Any]:
    found: dict[str, Any] = made.inspect()["learners"]
    return found


def assert_answered_once(made: Service) -> None:
    assert [p["offset"] for p in made.predicted()] == list(range(N + MORE))


def restored(worker: Worker, result: str) -> bool:
    return worker.counted("olstream_restores_total", result=result) == 1


def refused(made: Service) -> str:
    """The sentence of a worker that ends with exit code 4."""
    worker = made.start()
    assert worker.wait(60) == 4, worker.said()
    assert "Traceback" not in worker.said()
    return worker.said().splitlines()[-1]


@pytest.mark.parametrize("loss", [lost, damaged])
def test_a_missing_model_is_a_question(service: ServiceFactory, loss: Loss) -> None:
    made = lived(service)
    loss(made)

    said, said_again = refused(made), refused(made)

    assert said == said_again
    assert all(choice in said for choice in ("bring its state directory back", "on_missing: replay", "fresh"))
    assert len(made.predicted()) == N


@losses
def test_replay_makes_the_model_that_was(service: ServiceFactory, loss: Loss, guarantee: str) -> None:
    made = lived(service, guarantee=guarantee)
    before = made.inspect()
    loss(made)

    worker = made.start(checkpoint={"on_missing": "replay"}).until_ready()
    assert restored(worker, "restored")
    assert worker.counted("olstream_events_processed_total", kind="replayed") == N
    worker.kill()
    after = made.inspect()
    go_on(made, checkpoint={"on_missing": "fail"})

    assert (after["learners"], after["offsets"], after["seq"]) == (
        before["learners"], before["offsets"], before["seq"],
    )  # fmt: skip
    assert learners(made) == learnt_from(made, STREAM)
    assert_answered_once(made)
    made.verify()


@losses
def test_fresh_begins_anew_where_the_group_stands(service: ServiceFactory, loss: Loss, guarantee: str) -> None:
    made = lived(service, guarantee=guarantee)
    old = made.inspect()["lineage"]
    loss(made)

    worker = made.start(checkpoint={"on_missing": "fresh"}).until_ready()
    assert restored(worker, "fresh")
    worker.kill()
    go_on(made, checkpoint={"on_missing": "fail"})

    assert learners(made) == learnt_from(made, STREAM[N:])
    assert_answered_once(made)
    lines = [line for line in journal(made) if line.ranges and line.lineage != old]
    assert [line.seq for line in lines] == list(range(1, len(lines) + 1))
    assert (lines[0].ranges[0].start, lines[-1].ranges[-1].end) == (N, N + MORE)


def test_one_damaged_checkpoint_is_passed_over(service: ServiceFactory) -> None:
    made = lived(service)
    newest = max(made.state.glob(f"*/*/{PREFIX}*"), key=lambda folder: folder.name)
    (newest / "model.safetensors").write_bytes(b"")

    worker = made.start().until_ready()
    assert restored(worker, "fell_back")
    worker.stop()
    go_on(made)

    assert learners(made) == learnt_from(made, STREAM)
    assert list(made.state.glob("*/*/damaged-*"))


def position(made: Service) -> int:
    """Where the newest checkpoint goes on reading the journal."""
    manifests = [json.loads(path.read_bytes()) for path in made.state.glob(f"*/*/{PREFIX}*/manifest.json")]
    return max(int(manifest["journal_offset"]) for manifest in manifests)


def cut_journal(made: Service, offset: int) -> None:
    made.topics.delete_before(f"{made.group}-journal", offset)


def test_a_journal_cut_before_the_checkpoint_is_no_loss(service: ServiceFactory) -> None:
    made = lived(service)
    cut_journal(made, position(made))

    go_on(made)

    assert learners(made) == learnt_from(made, STREAM)
    assert_answered_once(made)


@pytest.mark.parametrize("on_missing", ["fail", "replay", "fresh"])
@pytest.mark.parametrize("is_empty", [True, False])
def test_a_journal_without_its_beginning_cannot_be_learnt_again(
    service: ServiceFactory, on_missing: str, is_empty: bool
) -> None:
    made = lived(service)
    cut_journal(made, position(made) if is_empty else 1)
    lost(made)
    made.configure(checkpoint={"on_missing": on_missing})

    if on_missing == "fresh":
        go_on(made)
        assert learners(made) == learnt_from(made, STREAM[N:])
        assert_answered_once(made)
    else:
        said = refused(made)
        assert "bring its state directory back" in said
        assert "fresh to begin anew" in said
        assert len(made.predicted()) == N


def test_a_journal_cut_after_the_checkpoint_is_a_question(service: ServiceFactory) -> None:
    made = service(checkpoint={"interval": "1h"}).make_topics()
    made.topics.produce(made.input, STREAM[:N])
    worker = made.start()
    made.until_committed(N, worker)
    worker.kill()
    cut_journal(made, position(made) + 1)

    said = refused(made)

    assert "state rollback" in said
    assert "on_missing: fresh" in said
