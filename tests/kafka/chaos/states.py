"""State directories that are damaged, foreign, of another time or of another slot."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

from olstream.checkpoint import FORMAT, MANIFEST
from olstream.io.disk import newest_first, slot_directory
from tests.kafka.chaos.disks import without_roots_rights
from tests.kafka.chaos.scenario import scenario
from tests.kafka.chaos.stage import Stage
from tests.kafka.chaos.verdict import assert_ended, assert_whole
from tests.kafka.service import Service, Worker
from tests.kafka.topics import until

TENSORS: Final = "model.safetensors"
TWO_CLASSES: Final[dict[str, Any]] = {"model": {"algorithm": "arow", "task": "binary", "classes": [0, 1]}}
CHANGED: Final[dict[str, Any]] = {"model": {"algorithm": "arow", "task": "binary", "params": {"r": 5.0}}}


def flip(path: Path, at: float) -> None:
    data = bytearray(path.read_bytes())
    data[int(at * len(data))] ^= 0x10
    path.write_bytes(data)


def cut(path: Path, at: float) -> None:
    path.write_bytes(path.read_bytes()[: int(at * path.stat().st_size)])


def empty(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


DAMAGES: Final[dict[str, Callable[[Path, float], None]]] = {
    "bit of the tensors": lambda folder, at: flip(folder / TENSORS, at),
    "bit of the manifest": lambda folder, at: flip(folder / MANIFEST, at),
    "tensors cut": lambda folder, at: cut(folder / TENSORS, at),
    "manifest cut": lambda folder, at: cut(folder / MANIFEST, at),
    "tensors empty": lambda folder, at: cut(folder / TENSORS, 0),
    "manifest empty": lambda folder, at: cut(folder / MANIFEST, 0),
    "no tensors": lambda folder, at: (folder / TENSORS).unlink(),
    "no manifest": lambda folder, at: (folder / MANIFEST).unlink(),
    "nothing": lambda folder, at: empty(folder),
}


@scenario(count=3)
def newest_checkpoint_damaged(stage: Stage) -> None:
    """A bit flipped, a file cut, empty or gone: the next older one and the journal give the model back each time."""
    with stage.flow():
        kinds = stage.rng.sample(list(DAMAGES), len(DAMAGES))
        for name in islice(cycle(kinds), stage.count):
            worker = at_work(stage)
            worker.kill()
            damage(stage, name)
            worker = stage.service.start().until_ready()
            assert worker.counted("olstream_restores_total", result="fell_back") == 1, name
            worker.kill()
    stage.finish(stage.service.start())
    assert_whole(stage)


@scenario()
def every_checkpoint_damaged(stage: Stage) -> None:
    """Not one is left whole: exit 4 with the choices, each time; the journal can give all of it back."""
    with stage.flow():
        at_work(stage).kill()
    for folder in checkpoints(stage):
        DAMAGES[stage.rng.choice(list(DAMAGES))](folder, stage.rng.random())
    stage.fault()
    for _ in range(2):
        assert_ended(stage.service.start(), 4, "no usable checkpoint", "on_missing: replay", "fresh")
    stage.finish(stage.service.start(checkpoint={"on_missing": "replay"}))
    assert_whole(stage)


@scenario(bounded=False)
def checkpoint_not_for_us(stage: Stage) -> None:
    """Of a newer format, of another configuration, not to be read: exit 4 or 2. Nothing is touched, so all goes on."""
    service = stage.service
    stage.flow().feed(300)
    stage.finish(service.start())
    newest = checkpoints(stage)[0]
    manifest = newest / MANIFEST
    before = manifest.read_bytes()

    manifest.write_text(json.dumps(json.loads(before) | {"format": FORMAT + 1}))
    assert_ended(
        service.start(), 4, f"format {FORMAT + 1}", f"up to {FORMAT}", "upgrade olstream", "move that folder away"
    )
    manifest.write_bytes(before)

    learners = service.config["learners"]
    assert_ended(service.start(learners=CHANGED), 4, "params.r: 1.0 -> 5.0", "put them back")
    service.configure(learners=learners)

    service.wrapper = without_roots_rights()
    for path in (newest / TENSORS, manifest, newest):
        mode = path.stat().st_mode
        path.chmod(0)
        assert_ended(service.start(), 2, f"cannot read {newest}", "give that user")
        path.chmod(mode)
    stage.fault(5)

    assert checkpoints(stage)[0] == newest and manifest.read_bytes() == before
    stage.flow().feed(300)
    stage.finish(service.start())
    assert_whole(stage)


@scenario(bounded=False, partitions=2, learners=TWO_CLASSES)
def directory_of_another_slot(stage: Stage) -> None:
    """A slot finds the state of another slot, or of another group: exit 4; with its own again all goes on."""
    slots = [stage.slot(n) for n in range(2)]
    directories = [slot_directory(slot.state, stage.group, n) for n, slot in enumerate(slots)]
    with stage.flow():
        workers = [slot.start() for slot in slots]
        for worker in workers:
            worker.until_ready()
        stage.until_more(500, *workers)
    stage.finish(*workers)

    own = directories[0].rename(directories[0].with_name("own"))
    shutil.copytree(directories[1], directories[0])
    assert_ended(slots[0].start(), 4, f"that of slot 1 of group {stage.group}", f"slot 0 of group {stage.group}")
    shutil.rmtree(directories[0])
    own.rename(directories[0])

    of_others = slot_directory(slots[0].state, "others", 0)
    shutil.copytree(directories[0], of_others)
    assert_ended(slots[0].start(group="others"), 4, f"that of slot 0 of group {stage.group}", "slot 0 of group others")
    shutil.rmtree(of_others.parent)
    slots[0].configure(group=stage.group)
    stage.fault(2)

    stage.flow().feed(300)
    stage.finish(*(slot.start() for slot in slots))
    assert_whole(stage)


@scenario(bounded=False, checkpoint={"keep": 2})
def directory_with_other_things(stage: Stage) -> None:
    """Leftovers of a write that died are swept; what other people put there is neither read, renamed nor removed."""
    with stage.flow():
        at_work(stage).kill()
        directory = slot_directory(stage.service.state, stage.group, 0)
        newest = checkpoints(stage)[0]
        shutil.copytree(newest, directory / f".writing-{newest.name}")
        (directory / ".writing-half").mkdir()
        (directory / ".writing-half" / TENSORS).write_bytes(b"half")
        foreign = [
            "notes.txt",
            "checkpoint-999999999999.tar.gz",
            "lost+found",
            "checkpoint-of-mine",
            f"{newest.name}.bak",
        ]
        for name in foreign[:2]:
            (directory / name).write_text("a file of somebody's")
        for name in foreign[2:]:
            shutil.copytree(newest, directory / name)
        stage.fault()
        worker = at_work(stage)
        assert worker.counted("olstream_restores_total", result="restored") == 1
    stage.finish(worker)

    assert {path.name for path in directory.iterdir()} - {path.name for path in checkpoints(stage)} == {
        "lock",
        *foreign,
    }
    assert len(checkpoints(stage)) == 2
    assert_whole(stage)


@scenario(bounded=False)
def directory_from_a_backup(stage: Stage) -> None:
    """An old copy of the directory is put back, taken while nobody worked and while somebody did: it catches up."""
    service = stage.service
    with stage.flow():
        for is_at_work in (False, True):
            worker = at_work(stage)
            if not is_at_work:
                worker.stop()
            backup = stage.directory / f"backup-{is_at_work}"
            copy_of_something_alive(service, backup)
            worker = worker if worker.alive else service.start()
            stage.until_more(1000, worker)
            worker.kill()
            shutil.rmtree(service.state)
            shutil.copytree(backup, service.state)  # as restores do: everything is of today
            stage.fault()
    stage.finish(service.start())
    assert_whole(stage)


def at_work(stage: Stage) -> Worker:
    """A worker that has learnt something, and a checkpoint or two of it."""
    worker = stage.service.start()
    stage.until_more(100, worker)
    before = checkpoints(stage)
    until(lambda: not set(before) & set(checkpoints(stage)[:2]) or not worker.alive, "two checkpoints more")
    assert worker.alive, worker.said()[-3000:]
    return worker


def checkpoints(stage: Stage) -> list[Path]:
    return list(newest_first(slot_directory(stage.service.state, stage.group, 0)))


def damage(stage: Stage, name: str) -> None:
    DAMAGES[name](checkpoints(stage)[0], stage.rng.random())
    stage.fault()


def copy_of_something_alive(service: Service, backup: Path) -> None:
    """As a backup does it: what is pruned meanwhile is not in it."""
    try:
        shutil.copytree(service.state, backup)
    except shutil.Error as error:
        assert all("No such file" in why for *_, why in error.args[0]), error
