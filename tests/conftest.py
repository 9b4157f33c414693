"""Fixtures that tests in several folders share."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Real data sets that stand outside the repository; tests on them are skipped where it is alone."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    directory = Path(os.environ.get("OLSTREAM_DATA", default))
    if not (directory / "a9a.libsvm.gz").is_file():
        pytest.skip(f"no data sets in {directory}: set OLSTREAM_DATA to a directory that has them")
    return directory


@pytest.fixture(autouse=True)
def log_as_before() -> Iterator[None]:
    """A command that sets the log up in this process does so for its own test only."""
    log = logging.getLogger("olstream")
    handlers, level, propagate = log.handlers[:], log.level, log.propagate
    yield
    log.handlers[:], log.level, log.propagate = handlers, level, propagate
