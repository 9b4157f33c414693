"""State that we write: its owner's alone, and never code."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import pytest

from olstream.api import Learner
from olstream.checkpoint import MANIFEST, Checkpoint, Position
from olstream.errors import ConfigError
from olstream.io import disk
from olstream.io.disk import Store


@pytest.mark.parametrize("umask", [0o000, 0o077, 0o277, 0o777])
def test_state_is_its_owners_alone_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        store = Store(tmp_path / "state" / "group" / "0")
        store.open()
        store.save(Checkpoint({"m": ({}, {"w": np.zeros(2)})}, {"m": "d"}, Position("L")))
        Learner("pa").save(tmp_path / "saved" / "one")
    finally:
        os.umask(before)

    modes = {
        path: stat.S_IMODE(path.lstat().st_mode) for root in ("state", "saved") for path in _below(tmp_path / root)
    }
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
    assert any(path.name == MANIFEST for path in modes)


def _below(path: Path) -> list[Path]:
    return [path, *path.rglob("*")]


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "slot").mkdir()
    (tmp_path / "slot" / "lock").symlink_to(tmp_path / "victim")

    with pytest.raises(ConfigError):
        Store(tmp_path / "slot").open()

    assert not (tmp_path / "victim").exists()


def test_nothing_of_ours_unpickles() -> None:
    root = Path(disk.__file__).parents[1]
    words = (
        "import pickle",
        "import marshal",
        "import shelve",
        "import dill",
        "import joblib",
        "allow_pickle=True",
        "yaml.load(",
    )

    found = [(path.name, word) for path in root.rglob("*.py") for word in words if word in path.read_text()]

    assert found == []
