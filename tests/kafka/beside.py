"""Something that goes on in a thread while a test does its own, until the block ends."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self


class Beside:
    def __init__(self) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name=type(self).__name__.lower(), daemon=True)

    def _work(self) -> None:
        """To go on until `_ended` is set."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()
