"""Wheel and sdist as `make dist` builds them, and an installation of the wheel that no source tree helps."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534
SOURCES = ("olstream", "tests", "deploy", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "ARCHITECTURE.md")
MORE = ("Makefile", ".gitignore", *(path.name for path in ROOT.glob("requirements*.lock")))


def built(source: Path, into: Path, target: str) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(into)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (archive,) = into.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return archive


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources as they are just now."""
    copy = tmp_path_factory.mktemp("tree")
    for name in (*SOURCES, *MORE):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name)
        elif (ROOT / name).exists():
            shutil.copy2(ROOT / name, copy / name)
    return copy


@pytest.fixture(scope="session")
def other_tree(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as somebody else would have them: other dates, and rubbish of our tools."""
    copy = tmp_path_factory.mktemp("other") / "tree"
    shutil.copytree(tree, copy)
    for path in copy.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    (copy / "olstream" / "__pycache__").mkdir(exist_ok=True)
    (copy / "olstream" / "__pycache__" / "rubbish.cpython-311.pyc").write_bytes(b"rubbish")
    return copy


@pytest.fixture(scope="session")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tree, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="session")
def sdist(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tree, tmp_path_factory.mktemp("sdist"), "sdist")


@dataclass(frozen=True)
class Installed:
    """A virtual environment in a directory of its own, used by somebody without rights where we can become them."""

    home: Path
    as_user: tuple[str, ...]

    def run(self, *command: str, deadline_s: float = 120.0) -> subprocess.CompletedProcess[str]:
        program, *arguments = command
        environment = {"HOME": str(self.home), "PATH": "/usr/bin:/bin", "COLUMNS": "120", "LC_ALL": "C.UTF-8"}
        full = [*self.as_user, str(self.home / "venv" / "bin" / program), *arguments]
        return subprocess.run(
            full, cwd=self.home, env=environment, capture_output=True, text=True, timeout=deadline_s, umask=0o022
        )


def _user() -> tuple[str, tuple[str, ...]]:
    """An interpreter like ours, and the head of commands that run it as a plain user: none where we are one already.

    Ours may lie in a home that nobody else can look into.
    """
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    own, setpriv = str(Path(sys.base_prefix, "bin", version)), shutil.which("setpriv")
    if os.getuid() != 0 or setpriv is None:
        return own, ()
    user = (setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all", "--no-new-privs")
    for python in (own, f"/usr/bin/{version}"):
        look = [*user, python, "-c", f"import ensurepip, os, venv; os.stat({python!r})"]
        if Path(python).exists() and subprocess.run(look, capture_output=True).returncode == 0:
            return python, user
    return own, ()


@pytest.fixture(scope="session")
def installed(wheel: Path) -> Iterator[Installed]:
    """The wheel from its file, into a new environment; what it needs is lent by ours, read only."""
    home = Path(tempfile.mkdtemp(prefix="olstream-installed-"))  # pytest's own directories are for its user alone
    python, user = _user()
    shutil.copy(wheel, home / wheel.name)
    (home / wheel.name).chmod(0o644)
    if user:
        os.chown(home, NOBODY, NOBODY)
    made = subprocess.run([*user, python, "-m", "venv", str(home / "venv")], cwd=home, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    installed = Installed(home, user)
    done = installed.run("python", "-m", "pip", "install", "--no-deps", "--no-index", "--quiet", str(home / wheel.name))
    assert done.returncode == 0, done.stderr
    found = installed.run("python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip()
    Path(found, "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    yield installed
    shutil.rmtree(home, ignore_errors=True)
