"""What wheel and sdist hold, and that anybody who builds them gets the same bytes."""

from __future__ import annotations

import hashlib
import re
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

from olstream import __version__
from tests.packaging.conftest import ROOT, built


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_wheel_holds_the_package_and_nothing_else(tree: Path, wheel: Path) -> None:
    info = f"olstream-{__version__}.dist-info"
    package = {path.relative_to(tree).as_posix() for path in (tree / "olstream").rglob("*") if path.is_file()}
    package = {name for name in package if "__pycache__" not in name}

    found = names(wheel)

    assert {name for name in found if not name.startswith(info)} == package
    assert {f"{info}/licenses/LICENSE", f"{info}/entry_points.txt", "olstream/py.typed"} <= found


def test_the_wheel_says_what_it_is_and_needs(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        info = f"olstream-{__version__}.dist-info"
        said = Parser().parsestr(archive.read(f"{info}/METADATA").decode())
        points = archive.read(f"{info}/entry_points.txt").decode()

    assert (said["Name"], said["Version"], said["License-Expression"]) == ("olstream", __version__, "Apache-2.0")
    assert said["Requires-Python"] == ">=3.11"
    assert "olstream = olstream.__main__:main" in points
    locked = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    needed = [line for line in said.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert {re.split(r"[><=!~ ;\[]", line)[0].lower() for line in needed} <= locked


def test_the_sdist_holds_what_it_takes_to_build_and_test(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        found = {name.partition("/")[2] for name in archive.getnames()}
        owners = {(member.uid, member.gid) for member in archive}

    top = {"README.md", "LICENSE", "CHANGELOG.md", "ARCHITECTURE.md", "Makefile", "pyproject.toml", "requirements.lock"}
    assert top <= found
    assert {"olstream/py.typed", "tests/test_layout.py", "tests/kafka/pom.xml"} <= found
    assert [name for name in found if re.search(r"__pycache__|\.pyc$|(^|/)\.venv|^state/|\.git/", name)] == []
    assert owners == {(0, 0)}


def test_the_same_sources_give_the_same_bytes(wheel: Path, other_tree: Path, tmp_path: Path) -> None:
    again = built(other_tree, tmp_path, "wheel")

    assert digest(again) == digest(wheel)


def test_the_sdist_gives_the_same_wheel(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (source,) = (tmp_path / "unpacked").iterdir()

    again = built(source, tmp_path / "built", "wheel")

    assert digest(again) == digest(wheel)
