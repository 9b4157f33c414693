"""What `olstream replay` writes, and what it must never write over."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from olstream.checkpoint import Checkpoint, Position
from olstream.commands.replay import State
from olstream.config import load
from olstream.errors import ConfigError
from olstream.io.disk import Store
from tests.commands.replayed import BINARY, Replayed

EVENT = '{"features":{"x":1},"label":"a"}\n'


@pytest.mark.parametrize("option", ["--out", "--dead-letters"])
@pytest.mark.parametrize("name", ["e.ndjson", "./sub/../e.ndjson", "hard.ndjson", "soft.ndjson", "c.yaml"])
def test_a_file_that_is_read_is_never_written_over(replay: Replayed, option: str, name: str) -> None:
    config, events = replay.write("c.yaml", BINARY), replay.write("e.ndjson", EVENT)
    (replay.directory / "sub").mkdir()
    os.link(events, replay.path("hard.ndjson"))
    os.symlink(events, replay.path("soft.ndjson"))

    said = replay.run(config, events, option, replay.path(name), code=2)

    assert option in said and "write over" in said and said.count("\n") == 1
    assert Path(events).read_text() == EVENT
    assert Path(config).read_text() == BINARY


@pytest.mark.parametrize("name", ["o", "./sub/../o", "soft", "there", "hard"])
def test_predictions_and_dead_letters_are_two_files(replay: Replayed, name: str) -> None:
    config, events = replay.write("c.yaml", BINARY), replay.write("e.ndjson", EVENT)
    (replay.directory / "sub").mkdir()
    out = replay.write("there", "kept") if name in ("there", "hard") else replay.path("o")
    os.symlink(out, replay.path("soft"))
    if name == "hard":
        os.link(out, replay.path("hard"))

    said = replay.run(config, events, "--out", out, "--dead-letters", replay.path(name), code=2)

    assert "--out and --dead-letters" in said and said.count("\n") == 1
    assert not Path(replay.path("o")).exists()
    assert name not in ("there", "hard") or Path(out).read_text() == "kept"


def test_standard_input_and_output_that_are_one_file_are_refused(replay: Replayed) -> None:
    config, events = replay.write("c.yaml", BINARY), replay.write("e.ndjson", EVENT)
    command = [sys.executable, "-m", "olstream", "replay", config]

    with open(events, "rb") as given, open(events, "ab") as taken:
        appended = subprocess.run([*command, events, "--out", "-"], stdout=taken, stderr=subprocess.PIPE, text=True)
        written = subprocess.run([*command, "-", "--out", events], stdin=given, capture_output=True, text=True)

    assert (appended.returncode, written.returncode) == (2, 2)
    assert "write over" in appended.stderr and "write over" in written.stderr
    assert Path(events).read_text() == EVENT


def test_what_is_no_file_may_be_written_to_twice(replay: Replayed) -> None:
    config, events = replay.write("c.yaml", BINARY), replay.write("e.ndjson", EVENT)

    replay.run(config, events, "--out", os.devnull, "--dead-letters", os.devnull)
    replay.run(config, events, "--out", "-", "--dead-letters", "-")
    told = subprocess.run(
        [sys.executable, "-m", "olstream", "replay", config, events, "--out", "/dev/stdout", "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert '"prediction":null' in told.stdout
    assert '"rows":1' in told.stderr


def test_what_stands_in_the_file_of_standard_output_stays_there(replay: Replayed) -> None:
    config, events = replay.write("c.yaml", BINARY), replay.write("e.ndjson", EVENT)
    command = [sys.executable, "-m", "olstream", "replay", config, events, "--out", "/dev/stdout"]

    with open(replay.path("o"), "ab") as out:
        out.write(b"before\n")
        out.flush()
        subprocess.run([*command, "--dead-letters", "/dev/stdout"], stdout=out, check=True)

    before, record = Path(replay.path("o")).read_text().splitlines()
    assert before == "before" and '"prediction":null' in record


@pytest.mark.parametrize("option", ["--out", "--dead-letters"])
def test_a_disk_that_is_full_is_told_by_the_name_of_the_file(replay: Replayed, option: str) -> None:
    config, events = replay.write("c.yaml", BINARY), replay.write("e.ndjson", EVENT + "{\n")

    said = replay.run(config, events, option, "/dev/full", "--state", replay.path("s"), code=2)

    assert said == "olstream: cannot write /dev/full: No space left on device\n"
    assert not list(Path(replay.path("s")).glob("checkpoint-*"))  # nothing is learnt whose prediction is lost


@pytest.mark.parametrize(("arguments", "what"), [(["--out", "-"], "standard output"), (["--json"], "the output")])
def test_a_standard_output_that_is_full_is_one_sentence_too(replay: Replayed, arguments: list[str], what: str) -> None:
    config, events = replay.write("c.yaml", BINARY), replay.write("e.ndjson", EVENT)
    command = [sys.executable, "-m", "olstream", "replay", config, events, *arguments]

    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)

    assert done.returncode == 2
    assert done.stderr == f"olstream: cannot write {what}: No space left on device\n"


class FullStore(Store):
    """A directory on a disk without room."""

    def save(self, checkpoint: Checkpoint) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_state_that_finds_no_room_is_told_by_the_name_of_the_directory(replay: Replayed) -> None:
    config = load(replay.write("c.yaml", BINARY))
    state = State(FullStore(replay.directory / "s"), config)

    with pytest.raises(ConfigError, match=r"cannot write .*/s: No space left on device"):
        state.save("e.ndjson", 1, 1)


@pytest.mark.parametrize("above", ["st", "st/group"])
@pytest.mark.parametrize("written", [True, False])
def test_a_directory_of_workers_is_no_place_for_a_replay(replay: Replayed, above: str, written: bool) -> None:
    config, events = replay.write("c.yaml", BINARY), replay.write("e.ndjson", EVENT)
    worker = Store(replay.directory / "st" / "group" / "0")
    worker.open()
    if written:
        worker.save(Checkpoint({}, {}, Position("0123")))
    worker.close()

    said = replay.run(config, events, "--state", replay.path(above), code=4)

    assert "group/0" in said and "directory of its own" in said and said.count("\n") == 1
    assert not (replay.directory / above / "lock").exists()


def test_a_file_is_no_place_for_a_state(replay: Replayed) -> None:
    config, events = replay.write("c.yaml", BINARY), replay.write("e.ndjson", EVENT)

    assert "is a file" in replay.run(config, events, "--state", config, code=2)


def test_one_checkpoint_by_itself_is_no_place_for_a_replay(replay: Replayed) -> None:
    config, events = replay.write("c.yaml", BINARY), replay.write("e.ndjson", EVENT)
    replay.run(config, events, "--state", replay.path("s"))
    (folder,) = Path(replay.path("s")).glob("checkpoint-*")

    assert "directory of its own" in replay.run(config, events, "--state", str(folder), code=4)


def test_a_route_that_no_line_of_a_file_can_take_is_warned_of(replay: Replayed) -> None:
    routes = "routes:\n  - {when: {topic: cards}, learner: m}\n  - {when: {topic: [e.ndjson, cards]}, learner: m}\n"
    config, events = replay.write("c.yaml", BINARY + routes), replay.write("e.ndjson", EVENT)
    headers = replay.write("h.yaml", BINARY + "routes: [{when: {header.kind: card}, learner: m}]\n")

    assert main_says(replay, config, events) == [
        "routes.0 matches nothing here: in a replay the topic is the file's name, e.ndjson"
    ]
    assert main_says(replay, headers, events) == ["routes.0 matches nothing here: lines of a file have no headers"]


def main_says(replay: Replayed, *arguments: str) -> list[str]:
    """What a replay warns of."""
    from olstream.__main__ import main

    assert main(["replay", *arguments]) == 0
    return [line.split(": ", 1)[1] for line in replay.capsys.readouterr().err.splitlines() if "routes" in line]


def test_drift_that_was_met_is_told_below_the_table(replay: Replayed) -> None:
    rows = [{"features": {"x": 1 - 2 * (i % 2)}, "label": (i + (i >= 300)) % 2} for i in range(600)]
    config = replay.write("c.yaml", "learners: {a: {algorithm: arow}}")

    told = replay.run(config, replay.write("f.ndjson", "\n".join(map(json.dumps, rows))))

    assert re.search(r"a: adwin said drift in the error (once|\d+ times, last) at labelled row 3\d\d", told)
