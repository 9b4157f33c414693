"""The state directory: whole or not at all, damaged ones kept aside, one process at a time."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest

from olstream.checkpoint import FORMAT, Checkpoint, Position, from_folder
from olstream.errors import ConfigError, FencedError, StateError
from olstream.io.disk import Store, newest_first, slot_directories


def checkpoint(seq: int, journal_offset: int = 3, lineage: str = "L") -> Checkpoint:
    weights = np.arange(6, dtype=np.float64).reshape(2, 3) + seq
    state = {"seen": seq, "names": ["a", "ü"]}, {"weights": weights, "empty": np.empty(0), "steps": np.array(seq)}
    offsets = {("events", 0): 10 * seq, ("events", 11): 7}
    return Checkpoint(
        {"fraud": state}, {"fraud": f"digest-{seq}"}, Position(lineage, seq, journal_offset, offsets), {"bias": True}
    )


def opened(tmp_path: Path, keep: int = 3) -> Store:
    store = Store(tmp_path / "group" / "0", keep)
    store.open()
    return store


def folders(store: Store) -> list[str]:
    return sorted(p.name for p in store.directory.iterdir() if p.name != "lock")


def test_what_is_saved_is_loaded_bit_for_bit(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.save(checkpoint(5))

    loaded = store.load()

    assert loaded is not None
    meta, arrays = loaded.states["fraud"]
    assert meta == {"seen": 5, "names": ["a", "ü"]}
    assert arrays["weights"].tobytes() == (np.arange(6, dtype=np.float64) + 5).tobytes()
    assert arrays["weights"].shape == (2, 3)
    assert arrays["empty"].shape == (0,)
    assert arrays["steps"].shape == ()
    assert loaded.position == checkpoint(5).position
    assert loaded.settings == {"bias": True}


def test_the_newest_of_several_is_loaded_and_only_so_many_are_kept(tmp_path: Path) -> None:
    store = opened(tmp_path, keep=2)
    for seq in (8, 9, 10, 11):
        store.save(checkpoint(seq))

    loaded = store.load()

    assert loaded is not None and loaded.position.seq == 11
    assert len(folders(store)) == 2


def test_a_state_written_again_does_not_push_out_the_older_ones(tmp_path: Path) -> None:
    store = opened(tmp_path, keep=2)
    for seq in (8, 9, 9, 9):
        store.save(checkpoint(seq))

    assert [name.split("-")[1] for name in folders(store)] == ["000000000008", "000000000009"]


def test_each_change_of_settings_stays_though_nothing_was_learnt_between_them(tmp_path: Path) -> None:
    store = opened(tmp_path, keep=4)
    for offset, (seq, settings) in enumerate([(8, "a"), (9, "a"), (9, "a"), (9, "b"), (9, "b"), (9, "a")]):
        store.save(replace(checkpoint(seq, journal_offset=offset), settings={"as": settings}))

    found = [from_folder(folder) for folder in newest_first(store.directory)]

    assert [(of.position.seq, of.settings["as"]) for of in found] == [(9, "a"), (9, "b"), (9, "a"), (8, "a")]


def test_the_one_that_reaches_farthest_into_the_journal_is_the_newest_whatever_the_clock_said(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.save(checkpoint(8, journal_offset=20))
    (earlier,) = store.directory.glob("checkpoint-*")
    an_hour_ahead = earlier.stat().st_mtime + 3600
    os.utime(earlier, (an_hour_ahead, an_hour_ahead))

    store.save(checkpoint(8, journal_offset=21))

    loaded = store.load()
    assert loaded is not None and loaded.position.journal_offset == 21
    assert not earlier.exists()


def test_where_a_lineage_begins_those_of_others_are_kept_aside_and_none_is_lost(tmp_path: Path) -> None:
    store = opened(tmp_path, keep=2)
    for seq in (8, 9):
        store.save(checkpoint(seq))

    store.begin(checkpoint(8, journal_offset=20, lineage="M"))
    for seq in (9, 10, 11):
        store.save(checkpoint(seq, journal_offset=12 + seq, lineage="M"))

    assert [name.split("-")[:3] for name in folders(store)] == [
        ["checkpoint", "000000000010", "000000000022"],
        ["checkpoint", "000000000011", "000000000023"],
        ["earlier", "checkpoint", "000000000008"],
        ["earlier", "checkpoint", "000000000009"],
    ]


def test_until_the_others_are_aside_the_later_lineage_is_loaded(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.save(checkpoint(9))
    store.save(checkpoint(2, journal_offset=20, lineage="M"))

    loaded = store.load()

    assert loaded is not None and loaded.position.lineage == "M"


def test_what_cannot_be_read_is_not_called_another_lineage(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.save(checkpoint(1))
    (manifest,) = store.directory.rglob("manifest.json")
    manifest.write_bytes(b"{")
    before = folders(store)

    store.set_others_aside("M")

    assert folders(store) == before


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.save(checkpoint(1))

    files = [path for path in store.directory.rglob("*") if path.is_file()]

    assert files and all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in files)


@pytest.mark.parametrize("damage", ["cut", "empty", "flipped", "gone", "manifest cut", "manifest flipped"])
def test_a_damaged_checkpoint_is_kept_aside_and_the_older_one_used(tmp_path: Path, damage: str) -> None:
    store = opened(tmp_path)
    store.save(checkpoint(1))
    store.save(checkpoint(2))
    newest = max(store.directory.glob("checkpoint-*"))
    path = newest / ("manifest.json" if "manifest" in damage else "fraud.safetensors")
    data = bytearray(path.read_bytes())
    if "cut" in damage:
        path.write_bytes(data[:-7])
    elif "flipped" in damage:
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        path.unlink()

    loaded = store.load()

    assert loaded is not None and loaded.position.seq == 1
    assert (store.directory / f"damaged-{newest.name}").exists()
    assert store.skipped == 1
    assert store.has_damaged()


def test_when_all_are_damaged_there_is_none(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.save(checkpoint(1))
    for path in store.directory.rglob("manifest.json"):
        path.write_bytes(b"{}")

    assert store.load() is None
    assert store.has_damaged()


def test_a_newer_format_is_refused_naming_both_numbers_and_left_alone(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.save(checkpoint(1))
    (manifest,) = store.directory.rglob("manifest.json")
    fields = orjson.loads(manifest.read_bytes())
    manifest.write_bytes(orjson.dumps(fields | {"format": FORMAT + 1}))
    before = manifest.read_bytes()

    with pytest.raises(StateError, match=f"format {FORMAT + 1}.* up to {FORMAT}"):
        store.load()

    assert manifest.read_bytes() == before


def test_a_file_name_in_the_manifest_cannot_lead_outside(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.save(checkpoint(1))
    (manifest,) = store.directory.rglob("manifest.json")
    text = manifest.read_bytes().replace(b"fraud.safetensors", b"../../../etc/pwd.st")
    manifest.write_bytes(text)

    assert store.load() is None


def test_what_a_dead_process_left_half_written_is_swept_at_the_next_start(tmp_path: Path) -> None:
    store = opened(tmp_path)
    (store.directory / ".writing-abc").mkdir()
    (store.directory / ".writing-abc" / "fraud.safetensors").write_bytes(b"half")
    store.close()

    opened(tmp_path)

    assert folders(store) == []


def test_a_write_that_fails_leaves_nothing_behind_and_the_older_one_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(tmp_path)
    store.save(checkpoint(1))

    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        store.save(checkpoint(2))
    monkeypatch.undo()

    loaded = store.load()
    assert loaded is not None and loaded.position.seq == 1
    assert len(folders(store)) == 1


def test_a_held_lock_means_another_worker_and_is_released_by_closing(tmp_path: Path) -> None:
    store = opened(tmp_path)

    with pytest.raises(FencedError, match="another process holds"):
        opened(tmp_path)
    store.close()

    opened(tmp_path)


def test_a_file_in_the_way_is_told(tmp_path: Path) -> None:
    blocked = tmp_path / "group"
    blocked.write_text("a file where a directory should be")

    with pytest.raises(ConfigError, match=r"a file stands in its way .*group"):
        opened(tmp_path)


def test_a_directory_that_cannot_be_written_is_told_with_user_and_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", refuse)

    with pytest.raises(ConfigError, match=rf"{tmp_path}.*uid {os.getuid()}.*fsGroup"):
        opened(tmp_path)


def test_slots_are_found_from_any_level_of_the_path(tmp_path: Path) -> None:
    for slot in ("0", "1"):
        store = Store(tmp_path / "group" / slot)
        store.open()
        store.save(checkpoint(int(slot) + 1))

    (tmp_path / "checkpoint-group" / "0").mkdir(parents=True)  # a group may have such a name

    for root in (tmp_path, tmp_path / "group"):
        assert [p.name for p in slot_directories(root)] == ["0", "1"]
    assert slot_directories(tmp_path / "group" / "1") == [tmp_path / "group" / "1"]
    found = from_folder(next(newest_first(tmp_path / "group" / "1")))
    assert found.position.seq == 2


def test_what_others_put_there_is_neither_loaded_nor_removed_nor_counted(tmp_path: Path) -> None:
    store = opened(tmp_path, keep=2)
    store.save(checkpoint(1))
    whole = next(newest_first(store.directory))
    foreign = ["checkpoint-backup", f"{whole.name}.bak", "checkpoint-old", "lost+found"]
    for name in foreign:
        (store.directory / name).mkdir()
    (store.directory / "checkpoint-999999999999.tar.gz").write_bytes(b"x")
    store.close()

    again = opened(tmp_path, keep=2)
    loaded = again.load()
    for seq in (2, 3, 4):
        again.save(checkpoint(seq))

    assert loaded is not None and loaded.position.seq == 1
    assert not again.has_damaged()
    assert {*foreign, "checkpoint-999999999999.tar.gz"} < set(folders(again))
    assert len(list(newest_first(again.directory))) == 2


def test_a_checkpoint_that_we_may_not_read_is_not_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(tmp_path)
    store.save(checkpoint(1))
    before = folders(store)

    def refuse(path: Path, *_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(ConfigError, match=rf"cannot read .*manifest.json as uid {os.getuid()}"):
        store.load()

    assert folders(store) == before


@pytest.mark.parametrize(
    ("code", "told"),
    [(errno.ENOSPC, "no room for a checkpoint"), (errno.EROFS, "mount it for writing"), (errno.EACCES, "fsGroup")],
)
def test_a_disk_that_takes_nothing_is_told_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, told: str
) -> None:
    opened(tmp_path).close()

    def refuse(_handle: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(ConfigError, match=told):
        opened(tmp_path)

    assert [p.name for p in (tmp_path / "group" / "0").iterdir()] == ["lock"]
