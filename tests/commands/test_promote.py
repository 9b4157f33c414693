"""`olstream promote`: the new text on standard output, or in the file, and what changes on standard error."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from olstream.__main__ import main

TEXT = """\
learners: {now: , next: {algorithm: pa1}}   # two
routes:
  - {learner: now, shadows: [next]}
"""
PROMOTED = TEXT.replace("learner: now, shadows: [next]", "learner: next, shadows: [now]")
TOLD = "routes.0 (every record): next predicts now, now becomes its shadow"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(TEXT)
    return path


def test_the_new_text_goes_to_standard_output_and_the_file_stays(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["promote", str(config), "next"]) == 0

    said = capsys.readouterr()
    assert said.out == PROMOTED
    assert said.err.splitlines() == [TOLD]
    assert config.read_text() == TEXT


def test_in_place_the_file_changes_and_keeps_its_mode(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config.chmod(0o640)

    assert main(["promote", str(config), "next", "--write"]) == 0

    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines()[0] == TOLD and "SIGHUP" in said.err
    assert config.read_text() == PROMOTED
    assert config.stat().st_mode & 0o777 == 0o640
    assert os.listdir(config.parent) == ["config.yaml"]


def test_in_place_a_link_stays_a_link(config: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.yaml"
    link.symlink_to(config)

    assert main(["promote", str(link), "next", "--write"]) == 0

    assert link.is_symlink()
    assert config.read_text() == PROMOTED


@pytest.mark.parametrize("write", [[], ["--write"]])
def test_what_cannot_be_promoted_changes_nothing(
    config: Path, write: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = config.stat()

    assert main(["promote", str(config), "now", *write]) == 2

    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "olstream: now is the shadow of no other learner in any route; there are next\n"
    assert config.stat() == before


def test_a_file_that_cannot_be_replaced_is_named(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)

    assert main(["promote", str(config), "next", "--write"]) == 2

    assert f"cannot write {config}: No space left on device" in capsys.readouterr().err
    assert config.read_text() == TEXT
    assert os.listdir(config.parent) == ["config.yaml"]


def test_a_file_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["promote", str(tmp_path / "none.yaml"), "next"]) == 2
    assert "none.yaml: cannot be read: No such file" in capsys.readouterr().err
