"""The disk of the state is full, or cannot be written, at the start and under a worker at work."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, TypeAlias

from olstream.io.disk import newest_first, slot_directory
from tests.kafka.chaos.scenario import NotHere, scenario
from tests.kafka.chaos.stage import Stage
from tests.kafka.chaos.verdict import assert_ended, assert_whole
from tests.kafka.service import Worker
from tests.kafka.topics import until

Trouble: TypeAlias = Callable[[Path], AbstractContextManager[None]]

SIZE: Final = "2m"
BLOCK: Final = bytes(4096)
WITHOUT_ROOTS_RIGHTS: Final = "-dac_override,-dac_read_search"


@scenario()
def disk_full(stage: Stage) -> None:
    """The disk fills up: no start, but at work processing goes on; with room there are checkpoints again."""
    with small(stage.service.state):
        live_with(stage, full, "no_space", "no room for a checkpoint in", "No space left on device")


@scenario(bounded=False)
def disk_read_only(stage: Stage) -> None:
    """The disk is mounted without writing: the same."""
    live_with(stage, read_only, "denied", "cannot write the state directory", "mount it for writing")


@scenario(bounded=False)
def disk_denied(stage: Stage) -> None:
    """The directory is somebody else's, or without leave to write: the same."""
    stage.service.wrapper = without_roots_rights()
    live_with(stage, denied, "denied", "cannot write the state directory", "fsGroup")


def live_with(stage: Stage, trouble: Trouble, reason: str, *told: str) -> None:
    """No new slot and no other starts while it lasts; a worker that is there goes on, and is whole afterwards."""
    service = stage.service
    service.state.mkdir(exist_ok=True)
    with trouble(service.state):
        assert_ended(service.start(), 2, *told)
    with stage.flow():
        worker = service.start()
        for i in range(stage.count):
            stage.until_more(300, worker)
            with trouble(service.state):
                stage.fault()
                until_failed(worker, reason, 2)
                stage.until_more(500, worker)
                assert (worker.status("/live"), worker.status("/ready")) == (200, 200)
                assert worker.counted("olstream_uncheckpointed_events") >= 500
                if i % 2 == 0:
                    worker.kill()
                    assert_ended(service.start(), 2, *told)
            worker = worker if worker.alive else service.start()
            until_written(stage, worker)
    stage.finish(worker)
    assert_whole(stage)


def until_failed(worker: Worker, reason: str, n: int) -> None:
    """So many checkpoints more have not been written, and were counted with their reason."""
    before = worker.counted("olstream_checkpoint_failures_total", reason=reason)
    until(
        lambda: worker.counted("olstream_checkpoint_failures_total", reason=reason) >= before + n or not worker.alive,
        f"{n} checkpoints fail: {reason}",
    )
    assert worker.alive, worker.said()[-3000:]


def until_written(stage: Stage, worker: Worker) -> None:
    """There is a checkpoint of what was learnt in the meantime."""
    directory = slot_directory(stage.service.state, stage.group, 0)
    before = next(newest_first(directory)).name
    until(lambda: next(newest_first(directory)).name != before or not worker.alive, "a checkpoint is written")
    assert worker.alive, worker.said()[-3000:]


@contextmanager
def small(directory: Path) -> Iterator[None]:
    """A disk of its own there, of a size that is soon full."""
    directory.mkdir()
    with _mounted(directory, "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs"):
        yield


@contextmanager
def full(directory: Path) -> Iterator[None]:
    """Not a block is left."""
    ballast = directory / "ballast"
    with ballast.open("wb", buffering=0) as out:
        try:
            while True:
                out.write(BLOCK)
        except OSError as error:
            assert error.errno == errno.ENOSPC
    yield
    ballast.unlink()


@contextmanager
def read_only(directory: Path) -> Iterator[None]:
    with _mounted(directory, "--bind", str(directory)):
        _mount("-o", "remount,bind,ro", str(directory))
        yield


@contextmanager
def denied(directory: Path) -> Iterator[None]:
    """Nothing in it may be made or removed."""
    directories = [directory, *(path for path in directory.rglob("*") if path.is_dir())]
    for each in directories:
        each.chmod(0o500)
    try:
        yield
    finally:
        for each in directories:
            each.chmod(0o700)


def without_roots_rights() -> list[str]:
    """A command whose process obeys permissions, though it be root's."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        raise NotHere("root may write everywhere, and there is no setpriv to take that from it")
    return ["setpriv", f"--bounding-set={WITHOUT_ROOTS_RIGHTS}"]


@contextmanager
def _mounted(directory: Path, *what: str) -> Iterator[None]:
    _mount(*what, str(directory))
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)


def _mount(*arguments: str) -> None:
    try:
        subprocess.run(["mount", *arguments], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        why = getattr(error, "stderr", "") or str(error)
        raise NotHere(f"nothing can be mounted here: {why.splitlines()[0]}") from None
