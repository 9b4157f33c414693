"""`olstream run` and SIGHUP: sent by hand it is a question for the file, from a terminal that closed it is the end."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

CONFIG = """\
kafka: {{bootstrap.servers: "127.0.0.1:1"}}
kafka_wait: 10m
input: {{topics: [events]}}
learners: {{a: }}
checkpoint: {{path: {state}}}
http: {{port: 0}}
"""


class Terminal:
    """A worker that waits for its broker, in a terminal of its own."""

    def __init__(self, config: Path) -> None:
        self.screen, self._tty = pty.openpty()
        command = [sys.executable, "-m", "olstream", "run", str(config)]
        self.worker = subprocess.Popen(
            command,
            stdin=self._tty,
            stdout=self._tty,
            stderr=self._tty,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(self._tty)

    def until_said(self, what: bytes) -> None:
        said = b""
        while what not in said:
            said += os.read(self.screen, 65536)  # raises where the worker has ended

    def close(self) -> None:
        os.close(self.screen)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    (tmp_path / "config.yaml").write_text(CONFIG.format(state=tmp_path / "state"))
    made = Terminal(tmp_path / "config.yaml")
    yield made
    made.worker.kill()
    made.worker.wait()


def test_a_terminal_that_is_closed_ends_the_worker_in_good_order(terminal: Terminal) -> None:
    terminal.until_said(b"waiting: ")

    terminal.close()

    assert terminal.worker.wait(30) == 0


def test_the_signal_by_hand_ends_nothing(terminal: Terminal) -> None:
    terminal.until_said(b"waiting: ")

    terminal.worker.send_signal(signal.SIGHUP)
    terminal.until_said(b"waiting: ")

    assert terminal.worker.poll() is None
    terminal.worker.send_signal(signal.SIGTERM)
    assert terminal.worker.wait(30) == 0
    terminal.close()
