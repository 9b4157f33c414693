"""`olstream state` as far as it needs no Kafka: what there is, and what cannot be done."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from olstream.__main__ import main
from olstream.checkpoint import FORMAT, Checkpoint, Position
from olstream.config import Config, parse
from olstream.io.disk import Store, newest_first
from olstream.messages import Example
from olstream.model import Model
from olstream.recover import checkpoint_of

CONFIG = """
group: flights
input: {topics: [flights]}
checkpoint: {path: PATH}
learners:
  late: {algorithm: arow, classes: [no, yes]}
"""


class Slot:
    """A state directory, and the command line that looks at it."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys
        self.file = directory / "config.yaml"
        self.file.write_text(CONFIG.replace("PATH", str(directory / "state")))
        self.config: Config = parse(self.file.read_text(), "config.yaml", {})
        self.store = Store(directory / "state" / "flights" / "0")

    def opened(self) -> Store:
        self.store.open()
        return self.store

    def checkpoint(self, seq: int, lineage: str = "aaaaaaaaaa", journal_offset: int = 0) -> Checkpoint:
        model = Model("late", self.config.learners["late"], self.config.monitor)
        model.predict_then_update([Example(features={"wind": 1.0}, label="yes")] * seq)
        position = Position(lineage, seq, journal_offset or seq, {("flights", 0): seq})
        return checkpoint_of(self.config, {"late": model}, position, {"slot": 0, "group": "flights"})

    def state(self, verb: str, *options: object, code: int = 0) -> str:
        """Standard output, or standard error where the code is not 0."""
        assert main(["state", verb, *map(str, options or [self.file])]) == code
        captured = self.capsys.readouterr()
        return captured.err if code else captured.out

    def listed(self, *options: object) -> list[dict[str, Any]]:
        found: dict[str, Any] = json.loads(self.state("list", *(options or [self.file]), "--json"))
        assert found["directory"] == str(self.store.directory)
        return list(found["checkpoints"])


@pytest.fixture
def slot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Slot:
    return Slot(tmp_path, capsys)


def test_checkpoints_are_listed_newest_first_with_what_their_learners_have_seen(slot: Slot) -> None:
    with_two = slot.opened()
    for seq in (3, 5):
        with_two.save(slot.checkpoint(seq))

    newest, older = slot.listed()

    assert (newest["seq"], older["seq"]) == (5, 3)
    assert newest["learners"]["late"]["seen"] == 5
    assert 0 < newest["learners"]["late"]["updates"] <= 5
    assert (newest["state"], newest["lineage"]) == ("whole", "aaaaaaaaaa")
    assert newest["bytes"] == sum(file.stat().st_size for file in (slot.store.directory / newest["name"]).iterdir())


def test_the_directory_will_do_in_place_of_the_configuration(slot: Slot) -> None:
    slot.opened().save(slot.checkpoint(3))

    assert slot.listed(slot.store.directory) == slot.listed(slot.config.checkpoint.path) == slot.listed()


def test_several_slots_are_listed_one_by_one(slot: Slot) -> None:
    for number in (0, 1):
        other = Store(slot.store.directory.with_name(str(number)))
        other.open()
        other.save(slot.checkpoint(number + 1))

    found = json.loads(slot.state("list", slot.config.checkpoint.path, "--json"))["slots"]

    assert [each["checkpoints"][0]["seq"] for each in found] == [1, 2]


def test_what_no_start_can_use_is_listed_with_the_reason(slot: Slot) -> None:
    store = slot.opened()
    for seq in (1, 2):
        store.save(slot.checkpoint(seq))
    foreign, damaged = newest_first(store.directory)
    (damaged / "late.safetensors").write_bytes(b"")
    manifest = foreign / "manifest.json"
    manifest.write_bytes(orjson.dumps(orjson.loads(manifest.read_bytes()) | {"format": FORMAT + 1}))
    store.keep_removed(slot.checkpoint(3))
    store.begin(slot.checkpoint(4, "bbbbbbbbbb", 99))

    found = {one["name"]: one for one in slot.listed()}

    earlier = found.pop(f"earlier-{damaged.name}")
    assert earlier["state"] == "damaged" and "checksum" in earlier["trouble"]
    assert found.pop(foreign.name)["state"] == "other format"
    assert [one["state"] for one in found.values()] == ["whole", "kept aside: removed learners"]


def test_the_table_says_the_same_in_a_line_each(slot: Slot) -> None:
    store = slot.opened()
    store.save(slot.checkpoint(3))
    store.begin(slot.checkpoint(4, "bbbbbbbbbb", 99))

    directory, heading, *rows = slot.state("list").splitlines()

    assert directory == str(store.directory)
    assert heading.split() == ["seq", "lineage", "written", "learners", "size"]
    assert [(row.split()[:2], "late: " in row, row.strip().split("  ")[-1]) for row in rows] == [
        (["4", "bbbbbbbb"], True, "whole"),
        (["3", "aaaaaaaa"], True, "kept aside"),
    ]


def test_listing_changes_nothing_and_takes_no_lock(slot: Slot) -> None:
    store = slot.opened()
    store.save(slot.checkpoint(1))
    (damaged,) = newest_first(store.directory)
    (damaged / "manifest.json").write_bytes(b"")

    slot.state("list")

    assert list(newest_first(store.directory)) == [damaged]


def test_a_slot_that_never_ran_is_told(slot: Slot) -> None:
    for verb in ("list", "verify"):
        assert "slot 0 of group flights never ran" in slot.state(verb, code=2)


def test_nothing_can_be_verified_where_all_is_damaged(slot: Slot) -> None:
    slot.opened().save(slot.checkpoint(1))
    (only,) = newest_first(slot.store.directory)
    (only / "manifest.json").write_bytes(b"{")

    assert "no whole checkpoint" in slot.state("verify", code=4)


def test_a_rollback_is_refused_while_the_directory_is_held(slot: Slot) -> None:
    slot.opened().save(slot.checkpoint(1))

    assert "another process holds" in slot.state("rollback", slot.file, "--to", 1, code=5)


@pytest.mark.parametrize("to", ["7", "3@cc", "3@aaaaaaaab", "", "checkpoint-3", "Empty"])
def test_a_rollback_to_what_is_not_there_names_the_choices(slot: Slot, to: str) -> None:
    store = slot.opened()
    store.save(slot.checkpoint(3))
    store.begin(slot.checkpoint(3, "bbbbbbbbbb", 99))
    store.keep_removed(slot.checkpoint(7))
    store.close()

    said = slot.state("rollback", slot.file, "--to", to, code=2)

    assert f"--to {to}: there is no such checkpoint; there are 3@bbbbbbbb, 3@aaaaaaaa, and `empty`" in said


@pytest.mark.parametrize("to", ["3", "3@aaaa", "empty"])
def test_a_rollback_to_what_is_there_needs_a_broker_next(slot: Slot, to: str) -> None:
    store = slot.opened()
    store.save(slot.checkpoint(3))
    store.close()

    assert "bootstrap.servers is missing" in slot.state("rollback", slot.file, "--to", to, code=2)


def test_without_a_command_the_help_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["state"]) == 2
    assert "missing command (see olstream state --help)" in capsys.readouterr().err
