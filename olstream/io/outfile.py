"""Files that a command writes: never over one that it reads, and their troubles told by their name."""

from __future__ import annotations

import os
import stat
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self, TypeAlias

from olstream.errors import ConfigError

STREAM: Final = "-"  # standard input among what is read, standard output among what is written
STDOUT: Final = "standard output"
# Opened by these names a file that standard output goes to would be emptied first.
_STDOUT_PATHS: Final = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
_STDIN, _STDOUT = 0, 1  # their file descriptors

# Which file a path leads to, however it is written; None for pipes, terminals and devices, which keep nothing.
Identity: TypeAlias = tuple[int, int] | str | None


def streamed(path: str | None) -> str | None:
    """The path; `-` for standard output by one of its other names."""
    return STREAM if path in _STDOUT_PATHS else path


class OutFile:
    """A file, emptied first, or standard output for `-`."""

    def __init__(self, path: str) -> None:
        self.name = STDOUT if path == STREAM else path
        with told(self.name):
            self._file: BinaryIO = sys.stdout.buffer if path == STREAM else open(path, "wb")  # noqa: SIM115

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with told(self.name):
                self._file.flush() if self.name == STDOUT else self._file.close()
        except (ConfigError, BrokenPipeError):
            if error is None:
                raise

    def write(self, data: bytes) -> None:
        with told(self.name):
            self._file.write(data)

    def flush(self) -> None:
        """Hand over what has been written, so that a disk that is full is known before anything rests on it."""
        with told(self.name):
            self._file.flush()


@contextmanager
def told(name: object) -> Iterator[None]:
    """What goes wrong while writing there, as a sentence. A reader that went away is no trouble of ours."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise ConfigError(f"cannot write {name}: {error.strerror or error}") from error


def replace(path: Path, data: bytes) -> None:
    """Put these bytes in the place of a file: whole or not at all, with the mode and the owner that it had.

    Where a link leads to it, the file changes and not the link.
    """
    there = Path(os.path.realpath(path))
    scratch = there.with_name(f".{there.name}.{uuid.uuid4().hex[:8]}")
    with told(path):
        facts = there.stat()
        try:
            with open(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
                with suppress(PermissionError):
                    os.fchown(out.fileno(), facts.st_uid, facts.st_gid)
                os.fchmod(out.fileno(), stat.S_IMODE(facts.st_mode))
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
            os.replace(scratch, there)
        except BaseException:
            scratch.unlink(missing_ok=True)
            raise


def refuse_overwriting(read: Mapping[str, str], written: Mapping[str, str | None]) -> None:
    """ConfigError where an option would write over what is read, or over what another one writes."""
    sources = {_identity(path, _STDIN): what for what, path in read.items()}
    taken: dict[Identity, str] = {}
    for option, path in written.items():
        if path is None or (found := _identity(path, _STDOUT)) is None:
            continue
        if found in sources:
            raise ConfigError(f"{option} {path} would write over the {sources[found]}: name another file")
        if found in taken and not path == STREAM == written[taken[found]]:
            raise ConfigError(f"{taken[found]} and {option} are one file, {path}: name two")
        taken[found] = option


def _identity(path: str, stream: int) -> Identity:
    try:
        facts = os.fstat(stream) if path == STREAM else os.stat(path)
    except OSError:  # not there yet: then where it would be
        return os.path.realpath(path)
    return (facts.st_dev, facts.st_ino) if stat.S_ISREG(facts.st_mode) else None
