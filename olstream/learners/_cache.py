"""Compiled kernels kept in the user's cache directory, so that a start does not wait for the compiler.

numba's own cache looks at one file only; kernels here are built from several, and from constants
of others. So a directory belongs to one state of all files that bear on kernels, and an edit in any starts another.
Kernels may also come with an installation, as in the container image: a directory that is only read, looked into first.
Optional: where no directory can be had, or what is in it is damaged, kernels are compiled.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import llvmlite
import numba
import numpy as np
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, UserProvidedCacheLocator

KEPT: Final = 4  # directories: one for each state of the sources that was in use lately
COMPILED: Final = "OLSTREAM_KERNELS"  # names where the kernels that came with an installation are


def keep(dispatcher: Any, function: Callable[..., Any]) -> None:
    """Have a kernel of this package loaded from, and saved to, the cache; nothing where there is none."""
    # a kernel of another package is built from files that the key does not cover
    if function.__module__.startswith("olstream.") and directory() is not None:
        with suppress(RuntimeError, OSError):
            dispatcher._cache = _KernelCache(function)


def directory() -> Path | None:
    """Where kernels of this state of the sources are; None where nothing can be kept, and nothing came with us."""
    return compiled() or own()


@cache
def own() -> Path | None:
    """Where kernels are saved; None where nothing can be."""
    try:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "olstream"
        found = root / f"kernels-{_key()}"
        found.mkdir(mode=0o700, parents=True, exist_ok=True)
        # what lies there is executed: it has to be ours
        if found.stat().st_uid != os.getuid() or _others_write(found) or not os.access(found, os.W_OK):
            return None
        os.utime(found)
        _prune(root)
    except (OSError, RuntimeError):
        return None
    return found


@cache
def compiled() -> Path | None:
    """Where the kernels are that came with this installation; None where none did, or others may have changed them."""
    if not os.environ.get(COMPILED):
        return None
    try:
        found = Path(os.environ[COMPILED]).resolve() / f"kernels-{_key()}"
        return None if any(map(_others_write, (found, *found.parents, *found.iterdir()))) else found
    except OSError:
        return None


def _others_write(path: Path) -> bool:
    """Whether anybody but root and us could put something else there."""
    about = path.lstat()
    open_to_all = about.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not about.st_mode & stat.S_ISVTX
    return stat.S_ISLNK(about.st_mode) or about.st_uid not in (0, os.getuid()) or bool(open_to_all)


def _key() -> str:
    """Of everything that a compiled kernel depends on; numba itself looks at the processor."""
    digest = hashlib.sha256(f"{sys.version} {numba.__version__} {llvmlite.__version__} {np.__version__}".encode())
    for name, source in sorted(_sources(Path(__file__).parents[1]).items()):
        digest.update(name.encode() + source)
    return digest.hexdigest()[:16]


def _sources(package: Path) -> dict[str, bytes]:
    """The files that have kernels, and whatever of ours they import, and those again."""
    every = {path.relative_to(package).as_posix(): path.read_bytes() for path in package.rglob("*.py")}
    found: dict[str, bytes] = {}
    waiting = [name for name, source in every.items() if _KERNELS.search(source)]
    while waiting:
        name = waiting.pop()
        if name in every and name not in found:
            found[name] = every[name]
            for module, names in _IMPORTS.findall(every[name]):
                folder = module.decode().replace(".", "/").strip("/")
                if folder:  # the package itself only passes on what its files have
                    waiting += [f"{folder}.py", f"{folder}/__init__.py"]
                waiting += [f"{folder}/{word.decode()}.py".lstrip("/") for word in re.findall(rb"\w+", names)]
    return found


# As files import: `from olstream.a import b, c`, in brackets over lines or not
_IMPORTS: Final = re.compile(rb"^ *from olstream((?:\.\w+)*) import (\([^)]*\)|.*)$", re.MULTILINE)
_KERNELS: Final = re.compile(rb"^from olstream\.learners\._jit import (?:.*|\([^)]*)\b(?:kernel|bound)\b", re.MULTILINE)


def _prune(root: Path) -> None:
    newest_first = sorted(root.glob("kernels-*"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in newest_first[KEPT:]:
        shutil.rmtree(path, ignore_errors=True)


class _Locator(UserProvidedCacheLocator):
    def __init__(self, py_func: Any, py_file: str) -> None:
        self._py_file = py_file
        self._lineno = py_func.__code__.co_firstlineno
        self._cache_path = str(own() or os.devnull)  # beneath which there is nothing, and nothing can be made

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _Locator | None:
        return cls(py_func, py_file) if os.path.exists(py_file) else None


class _CacheImpl(CompileResultCacheImpl):
    _locator_classes = [_Locator]  # noqa: RUF012  numba's own form


class _KernelCache(FunctionCache):
    _impl_class = _CacheImpl

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        stamp = self._impl.locator.get_source_stamp()
        path = compiled()
        self._compiled = None if path is None else IndexDataCacheFile(str(path), self._impl.filename_base, stamp)  # type: ignore[no-untyped-call]

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        if self._compiled is not None:
            key = self._index_key(sig, target_context.codegen())  # type: ignore[no-untyped-call]
            found = self._compiled.load(key)  # type: ignore[no-untyped-call]
            if found is not None:
                return self._impl.rebuild(target_context, found)
        return super()._load_overload(sig, target_context)  # type: ignore[no-untyped-call]

    @contextmanager
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:
        # a full disk or a damaged file costs a compilation, never the service
        with suppress(Exception):
            yield
