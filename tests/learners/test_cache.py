"""Which edits start another cache of compiled kernels, and whose kernels are loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from olstream.learners import _cache

PACKAGE = Path(_cache.__file__).parents[1]


def test_what_kernels_are_built_from_is_in_the_key() -> None:
    found = _cache._sources(PACKAGE)

    assert {f"learners/{name}.py" for name in ("_jit", "_linear", "arow", "pa", "base")} <= found.keys()
    assert {"evaluate.py", "confidence.py", "scale.py", "vocabulary.py"} <= found.keys()


def test_what_has_no_part_in_them_is_not() -> None:
    assert not [name for name in _cache._sources(PACKAGE) if name.startswith(("io/", "commands/", "app", "loop"))]


def test_a_constant_of_another_file_is(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "kernels.py").write_text(
        "from olstream.learners._jit import (\n    F64,\n    kernel,\n)\nfrom olstream.a import (\n    b,\n)\n"
    )
    (tmp_path / "a" / "b.py").write_text("    from olstream.constants import ONE\n")
    (tmp_path / "constants.py").write_text("ONE = 1\n")
    (tmp_path / "apart.py").write_text("from olstream.constants import ONE\n")

    assert sorted(_cache._sources(tmp_path)) == ["a/b.py", "constants.py", "kernels.py"]


COMPILE = """
from numba.core.event import install_recorder
with install_recorder("numba:compile") as compiled:
    from olstream.learners import _cache
    from olstream.drift import Detector
    Detector("page_hinkley").update(1.0)
print(len(compiled.buffer), _cache.compiled() is not None, _cache.own() is not None)
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the kernels of one detector, as an installation would bring it."""
    cache = tmp_path_factory.mktemp("cache")
    compiled, _, kept = _compiled(XDG_CACHE_HOME=str(cache))
    assert int(compiled) > 0
    assert kept == "True"
    (found,) = (cache / "olstream").glob("kernels-*")
    found.chmod(0o755)
    return cache / "olstream"


def _compiled(**environment: str) -> list[str]:
    """How many kernels had to be compiled, whether some came with the installation, whether they can be saved."""
    others = {k: v for k, v in os.environ.items() if k not in ("NUMBA_DISABLE_JIT", _cache.COMPILED)}
    done = subprocess.run(
        [sys.executable, "-c", COMPILE], capture_output=True, text=True, check=True, env=others | environment
    )
    return done.stdout.split()


def test_kernels_that_came_with_us_are_loaded_where_nothing_can_be_saved(kernels: Path) -> None:
    assert _compiled(OLSTREAM_KERNELS=str(kernels), XDG_CACHE_HOME=os.devnull) == ["0", "True", "False"]


def test_they_are_only_read(kernels: Path, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in kernels.rglob("*")}

    compiled, *_ = _compiled(OLSTREAM_KERNELS=str(kernels), XDG_CACHE_HOME=str(tmp_path), NUMBA_CPU_NAME="generic")

    assert int(compiled) > 0  # for another processor
    assert {path: path.stat().st_mtime_ns for path in kernels.rglob("*")} == before
    assert _compiled(OLSTREAM_KERNELS=str(kernels), XDG_CACHE_HOME=str(tmp_path), NUMBA_CPU_NAME="generic")[0] == "0"


def _open_directory(kernels: Path) -> None:
    kernels.chmod(0o777)


def _open_file(kernels: Path) -> None:
    next(kernels.iterdir()).chmod(0o666)


def _link(kernels: Path) -> None:
    (kernels / "link").symlink_to("/etc/hostname")


def _anothers(kernels: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root gives files away")
    os.chown(next(kernels.iterdir()), 12345, -1)


@pytest.mark.parametrize("spoil", [_open_directory, _open_file, _link, _anothers])
def test_what_others_may_have_changed_is_not_executed(
    spoil: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = tmp_path / f"kernels-{_cache._key()}"
    kernels.mkdir(mode=0o755)
    for name in ("a.nbi", "a.1.nbc"):
        (kernels / name).touch(mode=0o644)
    monkeypatch.setenv(_cache.COMPILED, str(tmp_path))
    assert _cache.compiled.__wrapped__() == kernels

    spoil(kernels)

    assert _cache.compiled.__wrapped__() is None


def test_our_own_directory_that_others_can_write_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = _cache.own.__wrapped__()
    assert found is not None

    found.chmod(0o777)

    assert _cache.own.__wrapped__() is None
