"""What the directory of a slot holds, for whoever only looks: nothing is renamed, no lock is taken."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from olstream.checkpoint import Checkpoint, Damaged, from_folder, read_manifest
from olstream.errors import StateError
from olstream.io.disk import PREFIX, REMOVED


@dataclass(frozen=True, slots=True)
class Kept:
    """One checkpoint of a slot, in use or kept aside."""

    folder: Path
    size_bytes: int
    checkpoint: Checkpoint | None
    created: str = ""
    trouble: str = ""  # why it cannot be read
    is_foreign: bool = False  # because its format is not ours

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def is_aside(self) -> bool:
        """Kept for people: no start will load it."""
        return not self.name.startswith(PREFIX)

    @property
    def is_partial(self) -> bool:
        """Only learners that were removed."""
        return self.name.startswith(REMOVED)

    @property
    def state(self) -> str:
        """In a word or two."""
        if self.checkpoint is None:
            return "other format" if self.is_foreign else "damaged"
        if self.is_aside:
            return "kept aside: removed learners" if self.is_partial else "kept aside"
        return "whole"


def kept(directory: Path) -> list[Kept]:
    """All checkpoints of a slot: first the one that reaches farthest into the journal, last those that cannot be read.

    Those that their owner prunes while we look are left out.
    """
    folders = (path for path in directory.iterdir() if path.is_dir() and not path.is_symlink() and path.name[0] != ".")
    found = [one for folder in sorted(folders) if (one := _looked_at(folder)) is not None]
    return sorted(found, key=_age, reverse=True)


def _looked_at(folder: Path) -> Kept | None:
    try:
        size_bytes = sum(file.lstat().st_size for file in folder.iterdir())
        return Kept(folder, size_bytes, from_folder(folder), str(read_manifest(folder)["created"]))
    except (Damaged, StateError) as trouble:
        is_foreign = isinstance(trouble, StateError)
        return Kept(folder, size_bytes, None, "", str(trouble), is_foreign) if folder.exists() else None
    except FileNotFoundError:
        return None


def _age(one: Kept) -> tuple[int, int, str]:
    if one.checkpoint is None:
        return -1, -1, one.name
    position = one.checkpoint.position
    return position.journal_offset, position.seq, one.created
