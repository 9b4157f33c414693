"""Models and their place in the journal, as files: safetensors and one manifest.

A checkpoint is a folder: `manifest.json` and one `<learner>.safetensors` each. Nothing in it
is executed when it is read; every file is under a SHA-256 that the manifest holds, and the
manifest is under its own. Which folder is written where is the business of `io.disk`.

Checksums tell what is damaged. What somebody made up on purpose is refused too: nothing but plain files of
the folder itself is opened, and no more is read than the manifest says and this machine's memory takes.
"""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import msgspec
import numpy as np
import orjson
import safetensors
import safetensors.numpy

from olstream.errors import StateError

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
META: Final = "__meta__"  # the learner's JSON part travels as one more tensor of bytes
MANIFEST_BYTES_MAX: Final = 64 * 1024**2  # most of it are the settings, and they stood in a file
COPIES: Final = 3  # of a learner's arrays, while they are read
_NAME: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")

Array: TypeAlias = np.ndarray[Any, Any]
State: TypeAlias = tuple[Mapping[str, Any], Mapping[str, Array]]
Partition: TypeAlias = tuple[str, int]


Whole: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=2**62)]


class Damaged(Exception):
    """These files are not what was written."""


class _File(msgspec.Struct):
    """What a manifest says of one learner."""

    file: str
    bytes: Whole
    sha256: str
    digest: str


class _Journal(msgspec.Struct):
    """Where a slot's lines were."""

    topic: str
    partitions: Whole


class _Facts(msgspec.Struct):
    """What may stand in a manifest for checks, and is known to them by these names."""

    group: str | None = None
    slot: int | None = None
    run: str | None = None
    journal: _Journal | None = None
    partitions: dict[str, Whole] = {}  # msgspec makes a new one each time
    topic_ids: dict[str, str | None] = {}
    settings_since: tuple[str, Whole] | None = None
    lost: Any = None


class _Manifest(msgspec.Struct):
    """What stands in every manifest."""

    format: Whole
    created: str
    lineage: str
    seq: Whole
    journal_offset: Whole
    offsets: dict[str, dict[Annotated[str, msgspec.Meta(pattern="^[0-9]{1,10}$")], Whole]]
    settings: dict[str, Any]
    facts: dict[str, Any]
    learners: dict[str, _File]


@dataclass(frozen=True, slots=True)
class Position:
    """Up to where the models have learnt, in this slot's own order.

    `offsets` holds, for each partition this slot ever learnt from in this lineage, the next
    offset it has not learnt. `journal_offset` is where to go on reading the journal.
    """

    lineage: str
    seq: int = 0
    journal_offset: int = 0
    offsets: Mapping[Partition, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything a slot needs to go on: the models, where they stand, and under which settings."""

    states: Mapping[str, State]
    digests: Mapping[str, str | Callable[[], str]]
    position: Position
    settings: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)  # group, slot, topic ids: for checks and for people


def to_files(checkpoint: Checkpoint, version: str, created: str) -> dict[str, bytes]:
    """The checkpoint as {file name: bytes}, the manifest last."""
    files: dict[str, bytes] = {}
    learners = {}
    for name, (meta, arrays) in checkpoint.states.items():
        tensors = {key: np.asarray(array, order="C") for key, array in arrays.items()}
        tensors[META] = np.frombuffer(orjson.dumps(meta), dtype=np.uint8)
        data = safetensors.numpy.save(tensors)
        digest = checkpoint.digests[name]
        files[f"{name}.safetensors"] = data
        learners[name] = {
            "file": f"{name}.safetensors",
            "bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
            "digest": digest if isinstance(digest, str) else digest(),
        }
    position = checkpoint.position
    manifest = {
        "format": FORMAT,
        "olstream": version,
        "created": created,
        "host": {"machine": platform.machine(), "python": platform.python_version(), "numpy": np.__version__},
        "lineage": position.lineage,
        "seq": position.seq,
        "journal_offset": position.journal_offset,
        "offsets": offsets_to_json(position.offsets),
        "settings": checkpoint.settings,
        "facts": checkpoint.facts,
        "learners": learners,
    }
    manifest["sha256"] = _own_checksum(manifest)
    files[MANIFEST] = orjson.dumps(manifest, option=orjson.OPT_INDENT_2)
    return files


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a checkpoint folder; Damaged where it is not whole, StateError where it is newer than us."""
    data = _read(folder / MANIFEST, MANIFEST_BYTES_MAX)
    try:
        manifest = orjson.loads(data)
        number = manifest["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise Damaged(f"{folder / MANIFEST}: {error}") from error
    if isinstance(number, int) and number > FORMAT:
        raise StateError(
            f"{folder} has checkpoint format {number}, this olstream knows formats up to {FORMAT}: "
            "upgrade olstream, or move that folder away"
        )
    expected = manifest.pop("sha256", None)
    try:
        if expected != _own_checksum(manifest):
            raise Damaged(f"{folder / MANIFEST}: checksum does not match")
        said = msgspec.convert(manifest, _Manifest)
        msgspec.convert(said.facts, _Facts)
    except (TypeError, ValueError) as error:  # too deep for a checksum; of another shape
        raise Damaged(f"{folder / MANIFEST}: {error}") from error
    for name, entry in said.learners.items():
        if not _NAME.fullmatch(name) or entry.file != f"{name}.safetensors":
            raise Damaged(f"{folder / MANIFEST}: {entry.file!r} is no file of a learner {name!r}")
    return dict(manifest)


def from_folder(folder: Path) -> Checkpoint:
    """Read a whole checkpoint back, every checksum verified."""
    manifest = read_manifest(folder)
    states: dict[str, State] = {}
    for name, entry in manifest["learners"].items():
        path = folder / entry["file"]
        data = _read(path, entry["bytes"])
        if len(data) != entry["bytes"] or hashlib.sha256(data).hexdigest() != entry["sha256"]:
            raise Damaged(f"{path}: checksum does not match")
        states[name] = _state(path, data)
    return Checkpoint(
        states=states,
        digests={name: entry["digest"] for name, entry in manifest["learners"].items()},
        position=Position(
            lineage=manifest["lineage"],
            seq=manifest["seq"],
            journal_offset=manifest["journal_offset"],
            offsets=offsets_from_json(manifest["offsets"]),
        ),
        settings=manifest["settings"],
        facts=manifest["facts"],
    )


def _state(path: Path, data: bytes) -> State:
    try:
        arrays = {key: array.copy() for key, array in safetensors.numpy.load(data).items()}  # writable
        meta = orjson.loads(arrays.pop(META).tobytes())
    except (safetensors.SafetensorError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise Damaged(f"{path}: {error}") from error
    if not isinstance(meta, dict):
        raise Damaged(f"{path}: {META} is no JSON object")
    return meta, arrays


def _read(path: Path, bytes_max: int) -> bytes:
    """All of a plain file, or Damaged; what may be whole but is not for us to read is a PermissionError.

    A link may lead anywhere, and a pipe has no end: neither is written by us.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except PermissionError:
        raise
    except OSError as error:
        why = "is a link" if error.errno == errno.ELOOP else error.strerror
        raise Damaged(f"{path}: {why}") from error
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode):
        os.close(handle)
        raise Damaged(f"{path}: is no plain file")
    with os.fdopen(handle, "rb") as file:
        if found.st_size > bytes_max:
            raise Damaged(f"{path}: has {found.st_size} bytes, {bytes_max} at most were written")
        if COPIES * found.st_size > (memory := _memory_bytes()):
            raise StateError(
                f"{path} has {found.st_size:,} bytes, too many for the {memory:,} of this machine's memory"
            )
        try:
            return file.read(found.st_size + 1)  # not what the manifest says: so much memory is taken at once
        except OSError as error:
            raise Damaged(f"{path}: {error.strerror}") from error


def _memory_bytes() -> int:
    """Of the machine, or of the container that we are in."""
    found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text("ascii").strip()
    except (OSError, ValueError):  # no control groups here
        return found
    return min(found, int(limit)) if limit.isdigit() else found


def offsets_to_json(offsets: Mapping[Partition, int]) -> dict[str, dict[str, int]]:
    """{(topic, 0): 5} as {"topic": {"0": 5}}, sorted."""
    nested: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        nested.setdefault(topic, {})[str(partition)] = offset
    return nested


def offsets_from_json(nested: Mapping[str, Mapping[str, int]]) -> dict[Partition, int]:
    return {(topic, int(p)): offset for topic, parts in nested.items() for p, offset in parts.items()}


def _own_checksum(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(orjson.dumps(manifest, option=orjson.OPT_SORT_KEYS)).hexdigest()
