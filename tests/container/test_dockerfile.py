"""What stands in the Dockerfile and beside it; nothing is built."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.container.images import BASE, IMAGE, ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_linter_has_no_complaint() -> None:
    hadolint = shutil.which("hadolint", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if hadolint is None and os.environ.get("CI", "").lower() != "true":
        pytest.skip("hadolint is not installed")
    assert hadolint is not None

    done = subprocess.run([hadolint, ROOT / "Dockerfile"], capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (0, "")


def test_it_names_no_host_of_packages() -> None:
    hosts = set(re.findall(r"(?:https?://|@)([\w.-]+\.\w+)", DOCKERFILE))

    assert hosts == {"github.com"}  # where the source is
    steps = re.split(r"&&|^[A-Z]+ ", DOCKERFILE.replace("\\\n", " "), flags=re.MULTILINE)
    options = {word for step in steps if "bin/pip" in step for word in step.split() if word.startswith("-")}
    assert options == {
        *("--quiet", "--no-compile", "--require-hashes", "-r", "--python", "--only-binary", "--no-deps", "--no-index"),
        *("--no-build-isolation", "--wheel-dir"),
    }
    assert set(re.findall(r"PIP_\w+|pip\.conf", DOCKERFILE)) == {
        *("PIP_DISABLE_PIP_VERSION_CHECK", "PIP_NO_CACHE_DIR", "PIP_ROOT_USER_ACTION")
    }


def test_all_that_is_installed_has_a_hash() -> None:
    steps = re.split(r"&&|^RUN", DOCKERFILE.replace("\\\n", " "), flags=re.MULTILINE)
    installs = [step for step in steps if re.search(r"\bpip\b.* install ", step)]
    locked = [step for step in installs if "--require-hashes" in step and "-r requirements" in step]

    assert len(locked) == 2
    assert [step for step in installs if "--no-index" not in step] == locked


def test_what_builds_the_wheel_is_what_developers_have() -> None:
    developers = _pins("requirements-dev.lock")

    found = _pins("requirements-build.lock")

    assert "hatchling" in found
    assert found.items() <= developers.items()


def _pins(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / lock).read_text(), re.MULTILINE))


def test_it_tells_the_version_and_licence_of_the_project() -> None:
    labels = dict(re.findall(r'org\.opencontainers\.image\.(\w+)="([^"]*)"', DOCKERFILE))

    assert labels["version"] == PROJECT["version"] == IMAGE.rpartition(":")[2]
    assert labels["licenses"] == PROJECT["license"]
    assert labels["title"] == PROJECT["name"]


def test_the_base_that_tests_make_is_the_one_that_it_names() -> None:
    assert f"ARG BASE={BASE}\n" in DOCKERFILE


def test_every_command_that_runs_is_a_list() -> None:
    commands = re.findall(r"^(?:HEALTHCHECK.* )?(?:CMD|ENTRYPOINT) (.)", DOCKERFILE, re.MULTILINE)

    assert commands == ["["] * 3


def test_the_build_sees_only_what_it_is_told_to() -> None:
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    shown = {line[1:] for line in lines if line.startswith("!")}
    copied = {word for line in re.findall(r"^COPY ([^-].*)$", DOCKERFILE, re.MULTILINE) for word in line.split()[:-1]}

    assert lines[0] == "*"
    assert shown == copied
