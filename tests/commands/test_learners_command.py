"""`olstream learners`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from olstream.__main__ import main
from olstream.learners import base


def test_every_algorithm_is_listed_with_its_tasks_and_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learners"]) == 0

    shown = capsys.readouterr().out
    for algorithm in base.algorithms().values():
        line = next(line for line in shown.splitlines() if line.split()[:1] == [algorithm.name])
        assert algorithm.title in line
        assert all(task in line for task in algorithm.told_tasks)
        assert all(param.name in line for param in algorithm.params)


@pytest.mark.parametrize("name", base.algorithms())
def test_one_algorithm_is_shown_with_formulas_ranges_and_paper(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learners", name]) == 0

    shown = capsys.readouterr().out
    algorithm = base.algorithm(name)
    assert algorithm.formulas.strip().splitlines()[-1] in shown
    assert all(f"{param.name} " in shown and param.range in shown for param in algorithm.params)
    assert f"Paper: {algorithm.paper}" in shown


def test_a_terminal_without_greek_is_told_too() -> None:
    environ = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "olstream", "learners", "cw"]

    done = subprocess.run(command, env=environ, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")
    assert "Confidence-Weighted" in done.stdout
