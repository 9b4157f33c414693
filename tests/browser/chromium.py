"""A real browser without a window: what it makes of an address, what it complains of, and what that looks like."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zlib
from dataclasses import dataclass
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
DARK = "--blink-settings=preferredColorScheme=0"
PATIENCE_S = 120.0


def find() -> str:
    """Where it is. Without one the test is skipped, and in CI it fails."""
    found = [os.environ.get("OLSTREAM_CHROMIUM"), *(shutil.which(name) for name in NAMES)]
    program = next((path for path in found if path), None)
    if program:
        return program
    reason = f"no browser: install Debian's chromium, or say in OLSTREAM_CHROMIUM where one is ({', '.join(NAMES)})"
    if os.environ.get("CI") == "true":
        raise AssertionError(reason)
    pytest.skip(reason)


@dataclass(frozen=True)
class Seen:
    """`dom` as HTML once the time was over; `complaints`: all that the page's console said."""

    dom: str
    complaints: list[str]

    @property
    def title(self) -> str:
        return str(re.findall(r"<title>(.*?)</title>", self.dom)[0])


class Chromium:
    """One browser with a profile of its own, begun anew for each look."""

    def __init__(self, program: str, directory: Path) -> None:
        self._program = program
        self._directory = directory

    def look(self, url: str, after_s: float = 1.0, width: int = 1280, height: int = 900, *flags: str) -> Seen:
        """The page after some seconds of its own time, which runs as fast as the network lets it."""
        return self._run(url, after_s, width, height, ["--dump-dom", *flags])

    def screenshot(self, url: str, path: Path, width: int, height: int, *flags: str) -> bytes:
        """A PNG, also written to the path."""
        self._run(url, 1.0, width, height, [f"--screenshot={path}", "--hide-scrollbars", *flags])
        return path.read_bytes()

    def _run(self, url: str, after_s: float, width: int, height: int, flags: list[str]) -> Seen:
        command = [
            self._program, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--enable-logging=stderr", "--no-proxy-server", "--disable-background-networking",
            f"--user-data-dir={self._directory}",
            f"--virtual-time-budget={int(1000 * after_s)}", f"--window-size={width},{height}", *flags, url,
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stderr
        return Seen(done.stdout, re.findall(r"CONSOLE.*", done.stderr))


def background(png: bytes) -> tuple[int, ...]:
    """Red, green, blue of the first pixel. What is before it is nothing, so no filter changes it."""
    data, at = b"", 8
    while at < len(png):
        size, kind = int.from_bytes(png[at : at + 4]), png[at + 4 : at + 8]
        data += png[at + 8 : at + 8 + size] if kind == b"IDAT" else b""
        at += size + 12
    return tuple(zlib.decompress(data)[1:4])
