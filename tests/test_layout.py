"""The shape of the code: what may touch the world, which way imports run, how long a thing may be."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from olstream.config import parse
from olstream.health import Health
from olstream.metrics import Metrics


def module(path: Path) -> str:
    dotted = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return dotted.removesuffix(".__init__")


ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "olstream").rglob("*.py"))
OWN = {module(path) for path in SOURCES}
ALL = [*SOURCES, *sorted((ROOT / "tests").rglob("*.py"))]

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 50

OUTSIDE = {
    "asyncio",
    "confluent_kafka",
    "http",
    "requests",
    "select",
    "socket",
    "socketserver",
    "ssl",
    "subprocess",
    "urllib",
}
# The layers that may touch the world, and import `io`; `api` saves and loads.
OUTER = ("olstream.io", "olstream.app", "olstream.commands", "olstream.demo", "olstream.bench")
TOP = ("olstream.app", "olstream.commands", "olstream.__main__")
METRICS = {"metrics.py", "families.py", "series.py"}


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), str(path))


def imports(path: Path, lazy: bool = True) -> Iterator[str]:
    """The modules that a file imports, those only for type checking left out."""
    nodes = list(ast.walk(tree(path))) if lazy else list(tree(path).body)
    for_types = {
        id(inner)
        for node in nodes
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for inner in ast.walk(node)
    }
    for node in nodes:
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own_imports(path: Path, lazy: bool = True) -> set[str]:
    return {name for name in imports(path, lazy) if name in OWN} - {"olstream", module(path)}


def _outside(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imports(path)} & OUTSIDE


def _starting(path: Path, with_: tuple[str, ...]) -> set[str]:
    return {name for name in own_imports(path) if name.startswith(with_)}


def test_only_the_outer_layers_touch_the_world() -> None:
    inner = [path for path in SOURCES if not module(path).startswith(OUTER)]

    assert {module(path): found for path in inner if (found := _outside(path))} == {}


def test_the_outer_layers_are_imported_by_outer_layers_only() -> None:
    free = ("olstream.api", "olstream.__main__", *OUTER)
    inner = [path for path in SOURCES if not module(path).startswith(free)]

    assert {module(path): found for path in inner if (found := _starting(path, OUTER))} == {}


def test_nothing_below_imports_the_top() -> None:
    below = [path for path in SOURCES if not module(path).startswith((*TOP, "olstream.demo", "olstream.bench"))]

    assert {module(path): found for path in below if (found := _starting(path, TOP))} == {}


def test_imports_run_one_way() -> None:
    graph = {module(path): own_imports(path) for path in SOURCES}

    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a circle of imports: {' -> '.join(error.args[1])}")


def test_the_library_and_the_command_line_load_no_kafka_client() -> None:
    loaded, waiting = set(), ["olstream", "olstream.__main__", "olstream.config", "olstream.learners.pa"]
    files = {module(path): path for path in SOURCES}
    while waiting:
        name = waiting.pop()
        if name not in loaded:
            loaded.add(name)
            waiting += own_imports(files[name], lazy=False)
            assert "confluent_kafka" not in {part.split(".")[0] for part in imports(files[name], lazy=False)}, name

    assert {name for name in loaded if name.startswith("olstream.io.kafka")} == set()


def test_a_file_has_one_subject_and_says_which() -> None:
    lines = {module(path): len(path.read_text("utf-8").splitlines()) for path in ALL}

    assert {name: count for name, count in lines.items() if count > FILE_LINES_MAX} == {}
    assert [module(path) for path in ALL if lines[module(path)] and not ast.get_docstring(tree(path))] == []


def test_a_function_fits_on_a_screen() -> None:
    long = {
        f"{module(path)}.{node.name}": node.end_lineno - node.lineno + 1
        for path in ALL
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= FUNCTION_LINES_MAX
    }

    assert long == {}


def test_no_file_is_a_drawer_for_everything() -> None:
    drawers = {"utils", "util", "common", "core", "helpers", "helper", "misc"}

    assert [path for path in ALL if drawers & {path.stem, path.parent.name}] == []


def test_only_the_metrics_spell_their_names() -> None:
    metrics = Metrics(parse("learners: {a: }", "c.yaml", {}), Health())
    names = {family.name for family in metrics.registry.collect() if family.name.startswith("olstream_")}

    spelt = {
        module(path): node.value
        for path in SOURCES
        if path.name not in METRICS
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if any(name in node.value for name in names)
    }

    assert names
    assert spelt == {}


def test_lock_files_name_no_host() -> None:
    for lock in sorted(ROOT.glob("*.lock")):
        text = lock.read_text()
        assert "://" not in text
        assert not re.search(r"^-", text, re.MULTILINE)
        assert "--hash=sha256:" in text
