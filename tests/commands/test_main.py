"""The command line as a whole: exit codes, one sentence on stderr, nothing loaded that is not used."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable

import click
import pytest

from olstream import __version__, errors
from olstream.__main__ import main, root
from olstream.commands import COMMANDS

Broken = Callable[[BaseException], None]


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Broken:
    """Makes `olstream learners` raise."""

    def make(error: BaseException) -> None:
        @click.command()
        def command() -> None:
            raise error

        monkeypatch.setattr("olstream.commands.learners.command", command)

    return make


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (errors.ConfigError("a.b: is wrong"), 2, "olstream: a.b: is wrong"),
        (errors.KafkaError("no broker"), 3, "olstream: no broker"),
        (errors.StateError("decide"), 4, "olstream: decide"),
        (errors.FencedError("another worker"), 5, "olstream: another worker"),
        (PermissionError(13, "Permission denied", "out.ndjson"), 2, "olstream: out.ndjson: Permission denied"),
        (ValueError("odd"), 1, "olstream: unexpected ValueError: odd (run again with --debug to see where)"),
        (KeyboardInterrupt(), 130, "olstream: interrupted"),
    ],
)
def test_an_error_is_one_sentence_and_its_exit_code(
    error: BaseException, code: int, said: str, broken: Broken, capsys: pytest.CaptureFixture[str]
) -> None:
    broken(error)

    assert main(["learners"]) == code
    assert capsys.readouterr().err.strip() == said


@pytest.mark.parametrize("arguments", [["--debug", "learners"], ["learners", "--debug"]])
def test_a_traceback_is_shown_with_debug_only(
    arguments: list[str], broken: Broken, capsys: pytest.CaptureFixture[str]
) -> None:
    broken(errors.ConfigError("a.b: is wrong"))

    assert main(arguments) == 2
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "olstream: missing command (see olstream --help)"),
        (["lerners"], "olstream: no command 'lerners'; did you mean 'learners'? (see olstream --help)"),
        (["learners", "--hlep"], "olstream: no such option '--hlep'"),
        (["check"], "olstream: missing argument 'CONFIG' (see olstream check --help)"),
        (["learners", "aro"], "olstream: algorithm 'aro' is not known (nearest: arow)"),
        (["check", "nowhere.yaml"], "olstream: nowhere.yaml: cannot be read: No such file or directory"),
    ],
)
def test_a_wrong_command_line_is_one_sentence_and_exit_code_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2

    told = capsys.readouterr().err.lower()
    assert told.startswith(said.lower())
    assert told.count("\n") == 1


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"olstream {__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0

    shown = capsys.readouterr().out
    assert re.search(rf"Example:\s+olstream {name}\b", shown), shown


def test_every_command_has_its_sentence_in_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0

    shown = capsys.readouterr().out
    assert [name for name in COMMANDS if f"  {name} " not in shown] == []
    assert isinstance(root, click.Group)


def test_help_loads_no_command_no_compiler_and_no_kafka_client() -> None:
    probe = (
        "import sys; from olstream.__main__ import main; main(['--help']); "
        "print([m for m in ('numba', 'confluent_kafka', 'pydantic', 'olstream.commands.run') if m in sys.modules])"
    )

    out = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout

    assert out.splitlines()[-1] == "[]"


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = f"{sys.executable} -m olstream config-schema | head -1"

    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)

    assert done.stdout == "{\n"
    assert done.stderr == ""
