"""A directory in which files are written and replayed, for tests of `olstream replay`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from olstream.__main__ import main
from olstream.checkpoint import from_folder
from olstream.io.disk import newest_first

BINARY: Final = "learners:\n  m: {algorithm: pa1, task: binary, bias: false}\n"


class Replayed:
    """A directory in which files are written and replayed."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.directory = directory
        self.capsys = capsys

    def write(self, name: str, data: bytes | str) -> str:
        path = self.directory / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return str(path)

    def path(self, name: str) -> str:
        return str(self.directory / name)

    def lines(self, name: str) -> list[Any]:
        return [json.loads(line) for line in (self.directory / name).read_text().splitlines()]

    def run(self, *arguments: str, code: int = 0) -> str:
        """Standard output, or standard error where the code is not 0."""
        assert main(["replay", *arguments]) == code
        captured = self.capsys.readouterr()
        return captured.err if code else captured.out

    def digests(self, state: str) -> dict[str, Any]:
        checkpoint = from_folder(next(newest_first(self.directory / state)))
        return dict(checkpoint.digests)
