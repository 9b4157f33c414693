"""What somebody made up and put into a state directory: refused in one sentence, nothing executed, nothing opened.

Checksums fit wherever that takes the reader further.
"""

from __future__ import annotations

import json
import os
import resource
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from olstream.__main__ import main
from olstream.api import Learner
from olstream.checkpoint import MANIFEST, MANIFEST_BYTES_MAX, Damaged, from_folder
from olstream.errors import ConfigError, StateError
from olstream.io.disk import Store, newest_first
from tests.security import forged
from tests.security.forged import NAME, Files, whole, with_learner, with_manifest, with_state, written

FILE = f"{NAME}.safetensors"
FOLDER = "checkpoint-000000000005-000000000007-0123abcd"
OLDER = "checkpoint-000000000004-000000000006-0123abcd"


def refused(folder: Path) -> str:
    with pytest.raises(Damaged) as caught:
        from_folder(folder)
    return str(caught.value)


def inspected(folder: Path, capsys: pytest.CaptureFixture[str], code: int = 4) -> str:
    """What `inspect` says, which is one sentence."""
    assert main(["inspect", str(folder)]) == code
    said = capsys.readouterr()
    assert "Traceback" not in said.err and said.out == ""
    assert len(said.err.strip().splitlines()) == 1, said.err
    assert "unexpected" not in said.err
    return said.err


# What is no plain file


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(whole("arow")[FILE])
    folder = written(tmp_path / FOLDER, whole("arow"))
    (folder / FILE).unlink()
    (folder / FILE).symlink_to(secret)

    assert "is a link" in refused(folder)


@pytest.mark.parametrize("file", [FILE, MANIFEST])
def test_a_pipe_is_not_waited_for(tmp_path: Path, file: str) -> None:
    folder = written(tmp_path / FOLDER, whole("arow"))
    (folder / file).unlink()
    os.mkfifo(folder / file)

    assert "is no plain file" in refused(folder)


def test_a_folder_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path / FOLDER, whole("arow"))
    (folder / FILE).unlink()
    (folder / FILE).mkdir()

    assert "is no plain file" in refused(folder)


def test_a_checkpoint_that_is_a_link_is_none_of_ours(tmp_path: Path) -> None:
    elsewhere = written(tmp_path / "elsewhere", whole("arow"))
    (tmp_path / "slot").mkdir()
    (tmp_path / "slot" / FOLDER).symlink_to(elsewhere)

    assert list(newest_first(tmp_path / "slot")) == []
    assert main(["state", "list", str(_config(tmp_path, tmp_path / "slot"))]) in (0, 4)
    assert (tmp_path / "slot" / FOLDER).is_symlink()


@pytest.fixture
def little_memory() -> Iterator[None]:
    """No more than 1 GB above what there is: whoever reads a terabyte fails here, and not the machine."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def test_a_huge_file_of_holes_is_not_read(tmp_path: Path, little_memory: None) -> None:
    folder = written(tmp_path / FOLDER, whole("arow"))
    os.truncate(folder / FILE, 2**40)

    assert "at most were written" in refused(folder)


def test_a_huge_file_that_the_manifest_vouches_for_is_not_read(tmp_path: Path, little_memory: None) -> None:
    folder = written(tmp_path / FOLDER, with_learner(whole("arow"), b"", said_bytes=2**40))
    os.truncate(folder / FILE, 2**40)

    with pytest.raises(StateError, match=r"too many for the .* of this machine's memory"):
        from_folder(folder)


def test_a_small_file_that_should_be_huge_takes_no_memory(tmp_path: Path, little_memory: None) -> None:
    data = whole("arow")[FILE]

    assert "does not match" in refused(written(tmp_path / FOLDER, with_learner(whole("arow"), data, said_bytes=2**53)))


def test_a_huge_manifest_is_not_read(tmp_path: Path, little_memory: None) -> None:
    folder = written(tmp_path / FOLDER, whole("arow"))
    os.truncate(folder / MANIFEST, 2**40)

    assert f"{MANIFEST_BYTES_MAX} at most" in refused(folder)


# The manifest


@pytest.mark.parametrize(
    "text", [b"[" * 100_000, b'{"format":' + b"[" * 900 + b"]" * 900 + b"}", b"[1]", b'"format"', b""]
)
def test_a_manifest_that_is_no_object_or_too_deep_is_damaged(tmp_path: Path, text: bytes) -> None:
    refused(written(tmp_path / FOLDER, {**whole("arow"), MANIFEST: text}))


@pytest.mark.parametrize("name", ["../m", "/etc/passwd", "..", "a/b", "", "m\n", "x" * 65, "é"])
def test_a_learner_whose_name_leads_elsewhere_is_damaged(tmp_path: Path, name: str) -> None:
    def rename(manifest: dict[str, Any]) -> None:
        entry = manifest["learners"].pop(NAME)
        manifest["learners"][name] = {**entry, "file": f"{name}.safetensors"}

    said = refused(written(tmp_path / FOLDER, with_manifest(whole("arow"), rename)))

    assert "is no file of a learner" in said or "No such file" in said  # `..` is a name like any other


@pytest.mark.parametrize("file", ["../secret", "/etc/passwd", "other.safetensors", ""])
def test_a_file_elsewhere_is_damaged(tmp_path: Path, file: str) -> None:
    (tmp_path / "secret").write_bytes(whole("arow")[FILE])

    def point(manifest: dict[str, Any]) -> None:
        manifest["learners"][NAME]["file"] = file

    assert "is no file of a learner" in refused(written(tmp_path / FOLDER, with_manifest(whole("arow"), point)))


@pytest.mark.parametrize(
    "change",
    [
        {"seq": -1}, {"seq": 2**63}, {"seq": "5"}, {"seq": 1.5}, {"journal_offset": None}, {"lineage": 7},
        {"offsets": []}, {"offsets": {"events": {"x": 1}}}, {"offsets": {"events": {"0": -1}}},
        {"offsets": {"events": 5}},
        {"settings": []}, {"facts": 1}, {"learners": []}, {"learners": {"m": {}}}, {"learners": {"m": None}},
        {"facts": {"topic_ids": 5}}, {"facts": {"journal": "x"}}, {"facts": {"settings_since": ["L"]}},
        {"facts": {"run": 1}},
        {"format": "1"}, {"format": None}, {"format": -1}, {"created": 5},
        {"learners": {"m": {"file": "m.safetensors", "bytes": -1, "sha256": "", "digest": ""}}},
    ],
)  # fmt: skip
def test_a_manifest_of_another_shape_is_damaged(tmp_path: Path, change: dict[str, Any]) -> None:
    refused(written(tmp_path / FOLDER, with_manifest(whole("arow"), lambda manifest: manifest.update(change))))


@pytest.mark.parametrize(
    "settings", [{}, {"learners": {}}, {"learners": 1, "monitor": 2}, {"learners": {"m": {"x": 1}}}]
)
def test_settings_that_say_nothing_of_the_learner_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], settings: dict[str, Any]
) -> None:
    files = with_manifest(whole("arow"), lambda manifest: manifest.update(settings=settings))

    said = inspected(written(tmp_path / FOLDER, files), capsys, code=2 if "x" in str(settings) else 4)

    assert "the checkpoint's settings" in said


# The arrays


def _header(entries: dict[str, Any], data: bytes = b"") -> bytes:
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text + data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff" * 7,
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 2**40) + b"{}",
        struct.pack("<Q", 90_000_000) + b"{" + b"[" * 1000,
        _header({"weights": {"dtype": "F64", "shape": [2**32, 2**32], "data_offsets": [0, 0]}}),
        _header({"weights": {"dtype": "F64", "shape": [2**62, 4], "data_offsets": [0, 8]}}, bytes(8)),
        _header({"weights": {"dtype": "F64", "shape": [1], "data_offsets": [8, 0]}}, bytes(8)),
        _header({"weights": {"dtype": "O", "shape": [1], "data_offsets": [0, 8]}}, bytes(8)),
        _header({"weights": {"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]}}, bytes(8)),
        _header({"weights": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}}, bytes(8)),
        _header({"__meta__": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}}, b"[]"),
        _header({"__meta__": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}}, b"{{"),
        _header({"__meta__": {"dtype": "U8", "shape": [4000], "data_offsets": [0, 4000]}}, b"[" * 4000),
    ],
)
def test_a_file_of_arrays_that_is_none_is_damaged(tmp_path: Path, data: bytes, little_memory: None) -> None:
    refused(written(tmp_path / FOLDER, with_learner(whole("arow"), data)))


Change = Callable[[dict[str, Any], dict[str, Any]], None]


def _put(name: str, make: Callable[[Any], Any]) -> Change:
    return lambda meta, arrays: arrays.update({name: make(arrays[name])})


def _say(key: str, value: Any) -> Change:
    def change(meta: dict[str, Any], arrays: dict[str, Any]) -> None:
        *above, last = key.split(".")
        for part in above:
            meta = meta[part]
        meta[last] = value

    return change


def _at(place: Any, value: float) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        changed = array.copy()
        changed[place] = value
        return changed

    return change


def _twice(parts: Any) -> Any:
    """The names x and y, both x."""
    return np.where(parts == ord("y"), ord("x"), parts).astype(np.uint8)


IMPOSSIBLE: dict[str, tuple[str, Change]] = {
    "narrower weights": ("arow", _put("weights", lambda a: a[:, :-1])),
    "a side without end": ("arow", _put("weights", lambda a: np.zeros((2**40, 0)))),
    "single precision": ("arow", _put("weights", lambda a: a.astype(np.float32))),
    "whole weights": ("arow", _put("weights", lambda a: a.astype(np.int64))),
    "a weight that is no number": ("arow", _put("weights", _at((0, 2), np.nan))),
    "an endless variance": ("arow", _put("variances", _at((0, 2), np.inf))),
    "no variances": ("arow", lambda meta, arrays: arrays.pop("variances")),
    "a mean too few": ("arow", _put("scaler.mean", lambda a: a[:-1])),
    "a root that is not square": ("full", _put("roots", lambda a: a[:, :-1])),
    "a kind of name": ("arow", _put("vocabulary.kinds", _at(0, 7))),
    "a name past the end": ("arow", _put("vocabulary.ends", _at(-1, 2**40))),
    "ends that go back": ("arow", _put("vocabulary.ends", lambda a: a[::-1])),
    "a name of half a character": ("arow", _put("vocabulary.parts", _at(0, 0xFF))),
    "two of one name": ("arow", _put("vocabulary.parts", _twice)),
    "names without bound": ("arow", _say("vocabulary.names_max", 2**40)),
    "buckets without bound": ("arow", _say("vocabulary.overflow_buckets", 2**40)),
    "no vocabulary": ("arow", _say("vocabulary", None)),
    "a form": ("arow", _say("vocabulary.form", ["array", "many"])),
    "other classes": ("arow", _say("classes", {"forms": ['"a"', '"b"']})),
    "one class twice": ("several", _say("classes", {"forms": ["1", '"1"', "2"]})),
    "a class that is a list": ("several", _say("classes", {"forms": ["[1]", "2", "3"]})),
    "a class of no JSON": ("several", _say("classes", {"forms": ["{", "2", "3"]})),
    "a class too many": ("several", _say("classes", {"forms": ["1", "2", "3", "4"]})),
    "classes without bound": ("several", _say("classes", {"forms": [str(i) for i in range(5000)]})),
    "counts of another length": ("arow", _put("tally.counts", lambda a: a[:-1])),
    "a count below zero": ("arow", _put("tally.counts", _at(0, -1))),
    "a majority past the end": ("arow", _put("tally.counts", _at(7, 2**40))),
    "more classes counted than known": ("arow", _put("tally.per_class", lambda a: np.ones(9, np.int64))),
    "a window of two lengths": ("arow", _put("tally.recent_errors", lambda a: a[:-1])),
    "a curve too long": ("arow", _put("tally.history.life", lambda a: np.zeros((242, 6)))),
    "a curve at every 0 rows": ("arow", _put("tally.history.every", lambda a: np.zeros(2, np.int64))),
    "an adwin with a full row": ("arow", _put("drift.adwin.error.counts", _at(5, 2**40))),
    "an adwin that uses too many rows": ("arow", _put("drift.adwin.error.counts", _at(4, 60))),
    "an adwin that lost its window": ("arow", _put("drift.adwin.error.counts", _at(1, 1))),
    "a kswin that writes past its end": ("arow", _put("drift.kswin.error.counts", _at(3, 2**40))),
    "a level": ("arow", _put("drift.ddm.error.counts", _at(0, 9))),
    "a window's entry past the end": ("window", _put("window.indices", _at(0, 2**40))),
    "a window's entry below zero": ("window", _put("window.indices", _at(0, -5))),
    "a window's row past the end": ("window", _put("window.indptr", _at(-1, 2**40))),
    "a window of two lengths of rows": ("window", _put("window.targets", lambda a: a[:-1])),
    "more multipliers than classes": ("window", _put("window.lam", lambda a: np.tile(a, (50, 1)))),
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_a_state_that_cannot_be_is_refused_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], little_memory: None, what: str
) -> None:
    kind, change = IMPOSSIBLE[what]

    said = inspected(written(tmp_path / FOLDER, with_state(whole(kind), change)), capsys)

    assert f"learner {NAME}: the saved state does not hold together" in said


@pytest.mark.parametrize("kind", forged.ALGORITHMS)
def test_what_was_not_changed_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    folder = written(tmp_path / FOLDER, with_state(whole(kind), lambda meta, arrays: None))

    assert main(["inspect", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["learners"][NAME]["seen"] == 66


# Whoever reads state


def _config(tmp_path: Path, slot: Path | None = None, more: str = "") -> Path:
    path = tmp_path / "config.yaml"
    root = tmp_path / "state"
    if slot is not None:
        (root / "g").mkdir(parents=True, exist_ok=True)
        (root / "g" / "0").symlink_to(slot)
    path.write_text(f"{forged.text_of('arow')}checkpoint: {{path: {root}}}\n{more}")
    return path


def _hostile() -> Files:
    return with_state(whole("arow"), IMPOSSIBLE["a majority past the end"][1])


def test_a_store_keeps_a_hostile_one_aside_and_uses_the_older(tmp_path: Path) -> None:
    store = Store(tmp_path / "slot")
    store.open()
    written(store.directory / OLDER, with_manifest(whole("arow"), lambda manifest: manifest.update(seq=4)))
    written(store.directory / FOLDER, whole("arow"))
    (store.directory / FOLDER / FILE).unlink()
    os.mkfifo(store.directory / FOLDER / FILE)

    found = store.load()

    assert found is not None and found.position.seq == 4
    assert (store.directory / f"damaged-{FOLDER}").exists()


def test_replay_and_start_from_refuse_it_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slot = tmp_path / "forged"
    written(slot / FOLDER, _hostile())
    events = tmp_path / "events.ndjson"
    events.write_text('{"features": {"x": 1}, "label": 1}\n')
    begins = tmp_path / "begins.yaml"
    begins.write_text(forged.text_of("arow").replace("scale:", f"start_from: '{slot}#{NAME}', scale:"))

    resumed = tmp_path / "resumed"
    config = str(_config(tmp_path))
    assert main(["replay", config, str(events), "--state", str(resumed)]) == 0
    (own,) = resumed.rglob("checkpoint-*")
    files = {path.name: path.read_bytes() for path in own.iterdir()}
    written(own, with_state(files, IMPOSSIBLE["a majority past the end"][1]))
    capsys.readouterr()

    codes = [
        main(["replay", config, str(events), "--state", str(resumed)]),
        main(["replay", str(begins), str(events)]),
    ]

    said = capsys.readouterr().err
    assert codes == [4, 4], said
    assert said.count("does not hold together") == 2 and "Traceback" not in said


def test_a_lone_learner_without_a_configuration_is_refused_in_a_sentence(tmp_path: Path) -> None:
    Learner("arow").save(tmp_path / "saved")
    files = {path.name: path.read_bytes() for path in (tmp_path / "saved").iterdir()}

    for said in ([1], "x", {"algorithm": "none"}, {"params": 5}):
        made = with_manifest(files, lambda manifest, said=said: manifest["settings"].update(learner=said))  # type: ignore[misc]
        with pytest.raises((StateError, ConfigError)):
            Learner.load(written(tmp_path / "saved", made))


def test_a_lone_learner_is_refused_in_a_sentence(tmp_path: Path) -> None:
    m = Learner("arow")
    m.learn({"x": 1.0}, 1)
    m.save(tmp_path / "saved")
    files = {path.name: path.read_bytes() for path in (tmp_path / "saved").iterdir()}
    (learner,) = (name.removesuffix(".safetensors") for name in files if name != MANIFEST)

    (tmp_path / "saved" / f"{learner}.safetensors").unlink()
    os.mkfifo(tmp_path / "saved" / f"{learner}.safetensors")

    with pytest.raises(StateError, match="is no plain file"):
        Learner.load(tmp_path / "saved")
