"""The options of `olstream bench`, and what its help explains."""

from __future__ import annotations

from click.testing import CliRunner

from olstream.bench import NEED_NO_KAFKA, PARTS
from olstream.commands.bench import command


def test_help_says_what_the_rows_of_every_part_mean() -> None:
    told = " ".join(CliRunner().invoke(command, ["--help"]).output.split())

    assert all(f"{name} {text}" in told for name, text in PARTS.items())


def test_a_part_that_is_none_is_refused_with_those_that_are() -> None:
    done = CliRunner().invoke(command, ["--only", "loop,speed"])

    assert done.exit_code == 2
    assert "'speed' is no part: loop, learner" in done.output


def test_without_a_kafka_the_parts_that_need_none_are_named() -> None:
    done = CliRunner().invoke(command, ["--only", "memory,loop"])

    assert done.exit_code == 2
    assert f"--only {','.join(sorted(NEED_NO_KAFKA))}" in done.output


def test_parts_are_measured_without_a_kafka_and_told_as_json() -> None:
    done = CliRunner().invoke(command, ["--only", "learner", "--records", "10000", "--repetitions", "1", "--json"])

    assert done.exit_code == 0, done.output
    assert '"learner": {"records": 10000' in done.stdout
    assert "loop" not in done.stdout
