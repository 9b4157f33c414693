"""Competitors are programs that print a line; what they say, or why they say nothing, is in the table."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from olstream.bench import rivals
from olstream.bench.part import Bench, Part


def interpreter(directory: Path, script: str) -> str:
    """Something to run a program with, that does `script` instead."""
    path = directory / "python"
    path.write_text(f"#!/bin/sh\ncd {directory}\n{script}\n")
    path.chmod(0o700)
    return str(path)


def compared(python: str, repetitions: int = 1) -> Part:
    part = Part("learner")
    bench = Bench(kafka={}, prefix="", records=0, repetitions=repetitions, rivals=python, say=lambda _: None)
    rivals.compare(part, bench, "River", "river_models", ["rows.npz"], against_us=1.0)
    return part


def test_what_a_program_measures_is_the_median_of_its_runs(tmp_path: Path) -> None:
    line = r'[{"what": "River PA-I", "records": 9, "us": %s, "wrong": 0.25}]'
    script = f"echo >> runs\nset -- 8 2 4\nshift $(($(wc -l < runs) - 1))\nprintf '{line}\\n' $1"

    part = compared(interpreter(tmp_path, script), repetitions=3)

    assert part.rows == [("River PA-I", "4.00 us, 250,000/s", "0.25", "25.0 %")]
    assert part.numbers["rivals"] == [{"what": "River PA-I", "records": 9, "us": 4.0, "wrong": 0.25}]


def test_a_program_gets_its_arguments(tmp_path: Path) -> None:
    compared(interpreter(tmp_path, 'echo "$@" > given; echo "[]"'))

    program, rows = (tmp_path / "given").read_text().split()
    assert Path(program) == Path(rivals.__file__).with_name("river_models.py")
    assert rows == "rows.npz"


def test_a_program_that_cannot_run_is_left_out_with_its_reason(tmp_path: Path) -> None:
    part = compared(
        interpreter(tmp_path, "echo Traceback >&2; echo \"ModuleNotFoundError: No module 'river'\" >&2; exit 1")
    )

    assert part.rows == [("River", "left out: ModuleNotFoundError: No module 'river'", "", "")]
    assert part.numbers["rivals"] == []


@pytest.mark.parametrize("program", ["liblinear", "quix", "river_models", "scikit", "vowpal"])
def test_the_programs_need_nothing_of_ours(program: str) -> None:
    path = Path(rivals.__file__).with_name(f"{program}.py")

    assert "olstream" not in path.read_text()
    compile(path.read_text(), str(path), "exec")
    assert path.stem not in sys.stdlib_module_names
