"""`olstream check --offline`, and what it says without a broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from olstream.__main__ import main
from olstream.properties import RULES

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


@pytest.mark.parametrize("example", [DEPLOY / "example.yaml", DEPLOY / "compose" / "config.yaml"], ids=str)
def test_the_examples_are_accepted(
    example: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLSTREAM_BOOTSTRAP", "localhost:9092")

    assert main(["check", str(example), "--offline"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ok    file: valid")
    assert {line.split()[0] for line in lines} <= {"ok", "note", "warn"}


def test_keys_that_do_nothing_are_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.yaml").write_text("learners: {a: {multiclass: one_vs_rest}}\n")

    assert main(["check", str(tmp_path / "c.yaml"), "--offline"]) == 0
    assert "warn  learners.a.multiclass: the task is binary, so one_vs_rest has no effect" in capsys.readouterr().out


def test_a_state_directory_that_cannot_be_written_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "c.yaml").write_text(f"learners: {{a: }}\ncheckpoint: {{path: {tmp_path}/file/state}}\n")

    assert main(["check", str(tmp_path / "c.yaml"), "--offline"]) == 0
    assert "warn  checkpoint.path: " in capsys.readouterr().out


def test_without_a_broker_in_the_file_there_is_nothing_to_ask(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c.yaml").write_text("learners: {a: }\n")

    assert main(["check", str(tmp_path / "c.yaml")]) == 2
    assert "input.topics is missing" in capsys.readouterr().err


def test_help_lists_the_properties_that_are_refused_with_the_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--help"]) == 0

    shown = " ".join(capsys.readouterr().out.split())
    assert [name for name, rule in RULES.items() if f"{name}: {rule.reason}" not in shown] == []
