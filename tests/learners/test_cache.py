"""Which edits start another cache of compiled kernels."""

from __future__ import annotations

from pathlib import Path

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
