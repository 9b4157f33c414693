"""The state directory of one slot: a lock, and immutable checkpoint folders.

    PATH/<group>/<slot>/lock
    PATH/<group>/<slot>/checkpoint-<seq>-<journal offset>-<id>/manifest.json, <learner>.safetensors

A folder appears by rename, whole and durable, or not at all. What a dead process left half
written is swept at the next start; what is damaged is kept aside under another name.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from olstream import __version__, crash
from olstream.checkpoint import Checkpoint, Damaged, from_folder, read_manifest, to_files
from olstream.errors import ConfigError, FencedError, StateError

log = logging.getLogger(__name__)

PREFIX = "checkpoint-"
REMOVED = "removed-"  # learners that are no longer configured
_OURS = re.compile(rf"{PREFIX}\d{{12,}}-\d{{12,}}-[0-9a-f]{{8}}")
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def slot_directory(root: Path, group: str, slot: int) -> Path:
    """Where one slot keeps its state; a group name can hold no path."""
    return root / group.replace("/", "_") / str(slot)


class Store:
    """The checkpoints of one slot."""

    def __init__(self, directory: Path, keep: int = 3) -> None:
        self.directory = directory
        self.keep = keep
        self.skipped = 0  # damaged checkpoints that the last `load` passed over
        self._lock: int | None = None

    def open(self) -> None:
        """Make the directory, take its lock until this process ends, prove that it can be written, sweep leftovers."""
        try:
            make_directory(self.directory)
            self._lock = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            _own(self._lock, 0o600)
        except OSError as error:
            raise unwritable(self.directory, error) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.close()
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise FencedError(
                    f"another process holds {self.directory}/lock: stop it, or give this worker another slot"
                ) from error
            raise unwritable(self.directory, error) from error
        for leftover in self.directory.glob(".writing-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        self._try_out()

    def _try_out(self) -> None:
        """The first checkpoint may come late: what would stop it is told now."""
        probe = self.directory / ".probe"
        try:
            _write_durably(probe, bytes(4096))
        except OSError as error:
            raise unwritable(self.directory, error) from error
        finally:
            with suppress(OSError):
                probe.unlink(missing_ok=True)

    def close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def save(self, checkpoint: Checkpoint) -> int:
        """Write it durably, then drop what is older than the `keep` newest. Bytes written. Raises OSError."""
        size_bytes = self._write(PREFIX, checkpoint)
        self._prune()
        return size_bytes

    def keep_removed(self, checkpoint: Checkpoint) -> None:
        """Write the last state of removed learners, for people: no start will load it. Raises OSError."""
        self._write(REMOVED, checkpoint)

    def _write(self, prefix: str, checkpoint: Checkpoint) -> int:
        position = checkpoint.position
        name = f"{prefix}{position.seq:012d}-{position.journal_offset:012d}-{uuid.uuid4().hex[:8]}"
        files = to_files(checkpoint, __version__, datetime.now(UTC).isoformat(timespec="milliseconds"))
        scratch = self.directory / f".writing-{name}"
        try:
            make_directory(scratch)
            for file, data in files.items():
                _write_durably(scratch / file, data)
            _sync_directory(scratch)
            crash.point("rename.before")
            os.rename(scratch, self.directory / name)
            crash.point("rename.after")
        except OSError:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        _sync_directory(self.directory)
        return sum(map(len, files.values()))

    def load(self) -> Checkpoint | None:
        """The newest whole checkpoint. Damaged ones are reported and kept aside under another name."""
        self.skipped = 0
        for folder in list(newest_first(self.directory)):
            try:
                return from_folder(folder)
            except Damaged as damage:
                aside = folder.with_name(f"damaged-{folder.name}")
                log.error("checkpoint is damaged, kept aside as %s, the next older one is used: %s", aside, damage)
                os.rename(folder, aside)
                self.skipped += 1
            except PermissionError as error:
                raise ConfigError(
                    f"cannot read {error.filename} as {_us()}: give that user the whole of {self.directory}"
                ) from error
        return None

    def has_damaged(self) -> bool:
        return any(self.directory.glob("damaged-*"))

    def begin(self, checkpoint: Checkpoint) -> None:
        """Write the first one of a new lineage; the others are kept aside, not pruned. Raises OSError."""
        self._write(PREFIX, checkpoint)
        self.set_others_aside(checkpoint.position.lineage)

    def set_others_aside(self, lineage: str) -> None:
        """Keep the checkpoints of other lineages, out of the way of starts and of pruning. Raises OSError."""
        for folder in list(newest_first(self.directory)):
            with suppress(Damaged, StateError):  # which has a sentence of its own at a start
                if read_manifest(folder)["lineage"] != lineage:
                    crash.point("aside.before")
                    os.rename(folder, folder.with_name(f"earlier-{folder.name}"))
                    crash.point("aside.after")

    def _prune(self) -> None:
        """Keep the newest of each of the `keep` last states: an idle worker does not push out the older ones.

        At one seq there are as many states as settings followed each other there: each may have changed the models.
        """
        kept, newer = 0, None
        for folder in list(newest_first(self.directory)):
            state = _state(folder)
            kept, is_new, newer = kept + (state != newer), state != newer, state
            if is_new and kept <= self.keep:
                continue
            crash.point("prune.before")
            doomed = folder.with_name(f".writing-{folder.name}")  # swept at the next start should we die here
            os.rename(folder, doomed)
            shutil.rmtree(doomed, ignore_errors=True)
            crash.point("prune.after")


def _state(folder: Path) -> tuple[str, object]:
    """What makes a checkpoint another one than its neighbour; one that is damaged is like no other."""
    seq = folder.name.removeprefix(PREFIX).split("-")[0]
    try:
        return seq, read_manifest(folder)["settings"]
    except (Damaged, StateError, OSError):
        return seq, folder.name


def _us() -> str:
    return f"uid {os.getuid()}, gid {os.getgid()}"


def newest_first(directory: Path) -> Iterator[Path]:
    """The checkpoint folders of a slot, the one that reaches farthest into the journal first. No others count.

    The journal tells the order where seq does not, over a new lineage and a start under other settings, and
    where the clock was moved; it stands still only where nothing but the time of writing differs.
    """

    def age(folder: Path) -> tuple[list[str], int]:
        try:
            written_ns = folder.stat().st_mtime_ns
        except FileNotFoundError:  # pruned by its owner while we look
            written_ns = 0
        seq_and_offset = folder.name.removeprefix(PREFIX).split("-")[:2]
        return seq_and_offset[::-1], written_ns

    yield from sorted(_checkpoints(directory), key=age, reverse=True)


def _checkpoints(directory: Path, below: str = ".") -> Iterator[Path]:
    """A link is not ours, wherever it leads."""
    found = (path for path in directory.glob(f"{below}/{PREFIX}*") if _OURS.fullmatch(path.name))
    return (path for path in found if not path.is_symlink())


def slot_directories(root: Path) -> list[Path]:
    """All slot directories at or below a state path: itself, its children or its grandchildren."""
    for pattern in (".", "*", "*/*"):
        found = sorted({p.parent for p in _checkpoints(root, pattern)})
        if found:
            return found
    return []


def write_folder(folder: Path, checkpoint: Checkpoint) -> None:
    """One checkpoint as a folder of its own, outside any slot (`Learner.save`)."""
    make_directory(folder)
    for name, data in to_files(checkpoint, __version__, datetime.now(UTC).isoformat(timespec="milliseconds")).items():
        scratch = folder / f".{name}.writing"
        _write_durably(scratch, data)
        os.rename(scratch, folder / name)


def make_directory(path: Path) -> None:
    """A directory that is there, and whatever above it is missing; those that we make are ours alone.

    Whatever the umask: it could take the owner's own rights away.
    """
    if path.is_dir():
        return
    if not path.parent.is_dir():
        make_directory(path.parent)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        if not path.is_dir():
            raise
        return  # somebody else was first
    os.chmod(path, 0o700)


def _own(handle: int, mode: int) -> None:
    """Give a file of ours that mode, whatever the umask made of it. One of somebody else stays as it is."""
    with suppress(PermissionError):
        os.fchmod(handle, mode)


def _write_durably(path: Path, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "wb") as out:
        _own(out.fileno(), 0o600)
        crash.point("write.before")
        out.write(data)
        out.flush()
        crash.point("write.after")
        _sync(out.fileno())


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        _sync(handle)
    finally:
        os.close(handle)


def _sync(handle: int) -> None:
    crash.point("fsync.before")
    os.fsync(handle)
    crash.point("fsync.after")


def unwritable(directory: Path, error: OSError) -> ConfigError:
    """Why there can be no checkpoint, and what to do."""
    if isinstance(error, (FileExistsError, NotADirectoryError)):
        return ConfigError(f"cannot keep state in {directory}: a file stands in its way ({error.filename})")
    if error.errno in _NO_ROOM:
        return ConfigError(f"no room for a checkpoint in {directory} ({error.strerror}): free some, or give it more")
    if error.errno == errno.EROFS:
        return ConfigError(f"cannot write the state directory {directory} ({error.strerror}): mount it for writing")
    return ConfigError(
        f"cannot write the state directory {directory} as {_us()} ({error.strerror}): "
        "give that user the directory, or in Kubernetes set securityContext.fsGroup to that gid"
    )
