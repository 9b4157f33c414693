"""The wheel in a clean environment, used by a plain user, far from any source tree."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from olstream import __version__
from olstream.demo.flights import ARCHIVE
from tests.packaging.conftest import ROOT, Installed


def test_it_is_the_wheel_that_runs_and_not_these_sources(installed: Installed) -> None:
    said = installed.run("python", "-c", "import olstream, os; print(olstream.__file__, os.getuid())")

    file, user = said.stdout.split()
    assert Path(file).is_relative_to(installed.home), said.stderr
    assert not Path(file).is_relative_to(ROOT)
    assert user != "0" or not installed.as_user


def test_it_tells_its_version_and_its_learners(installed: Installed) -> None:
    version, learners = installed.run("olstream", "--version"), installed.run("olstream", "learners")

    assert (version.returncode, version.stdout) == (0, f"olstream {__version__}\n")
    assert learners.returncode == 0 and "arow" in learners.stdout, learners.stderr


def test_it_learns_from_a_file(installed: Installed) -> None:
    config, events = installed.home / "config.yaml", installed.home / "events.ndjson"
    config.write_text("learners: {a: {algorithm: pa1}}\n")
    events.write_text('{"features": {"x": 1}, "label": 1}\n{"features": {"x": -1}, "label": 0}\n')

    done = installed.run("olstream", "replay", str(config), str(events), "--json")

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["learners"]["a"]["labelled"] == 2


@pytest.mark.slow
def test_the_demo_runs_to_its_end(installed: Installed) -> None:
    made = "import pathlib; cache = pathlib.Path.home() / '.cache/olstream/demo'; cache.mkdir(parents=True)"
    empty = f"(cache / '{ARCHIVE}').touch()"  # so that no flights are fetched
    assert installed.run("python", "-c", f"{made}; {empty}").returncode == 0

    done = installed.run("olstream", "demo", "--rows", "1000", "--seconds", "1", deadline_s=180)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "A synthetic stream takes their place" in done.stdout
    assert list(installed.home.glob("demo-state/*/state/*/0/*/manifest.json"))
