"""Models and their place in the journal, as files: safetensors and one manifest.

A checkpoint is a folder: `manifest.json` and one `<learner>.safetensors` each. Nothing in it
is executed when it is read; every file is under a SHA-256 that the manifest holds, and the
manifest is under its own. Which folder is written where is the business of `io.disk`.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import orjson
import safetensors
import safetensors.numpy

from olstream.errors import StateError

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
META: Final = "__meta__"  # the learner's JSON part travels as one more tensor of bytes

Array: TypeAlias = np.ndarray[Any, Any]
State: TypeAlias = tuple[Mapping[str, Any], Mapping[str, Array]]
Partition: TypeAlias = tuple[str, int]


class Damaged(Exception):
    """These files are not what was written."""


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
    data = _read(folder / MANIFEST)
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
    if expected != _own_checksum(manifest):
        raise Damaged(f"{folder / MANIFEST}: checksum does not match")
    return dict(manifest)


def from_folder(folder: Path) -> Checkpoint:
    """Read a whole checkpoint back, every checksum verified."""
    manifest = read_manifest(folder)
    states: dict[str, State] = {}
    for name, entry in manifest["learners"].items():
        path = folder / Path(str(entry["file"])).name  # never outside the folder
        data = _read(path)
        if len(data) != entry["bytes"] or hashlib.sha256(data).hexdigest() != entry["sha256"]:
            raise Damaged(f"{path}: checksum does not match")
        try:
            arrays = {key: array.copy() for key, array in safetensors.numpy.load(data).items()}  # writable
        except safetensors.SafetensorError as error:
            raise Damaged(f"{path}: {error}") from error
        states[name] = orjson.loads(arrays.pop(META).tobytes()), arrays
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


def _read(path: Path) -> bytes:
    """All of it, or Damaged; what may be whole but is not for us to read is a PermissionError."""
    try:
        return path.read_bytes()
    except PermissionError:
        raise
    except OSError as error:
        raise Damaged(f"{path}: {error}") from error


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
