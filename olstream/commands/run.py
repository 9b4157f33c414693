"""`olstream run CONFIG`: the service."""

from __future__ import annotations

import logging
import os
import signal
from pathlib import Path
from queue import SimpleQueue
from threading import Event
from types import FrameType

import click

from olstream import crash, logs
from olstream.config import load
from olstream.inert import inert

log = logging.getLogger("olstream.run")


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
def command(config: Path) -> None:
    """Read records from Kafka, predict, then update, publish, commit; until SIGTERM or SIGINT.

    On SIGHUP the configuration is read again: other routes, shadows, learners, monitor, join or log are taken
    without losing anything; where the file is wrong, or more has changed, all stays as it was, and the log says why.

    \b
    Example:
      olstream run config.yaml
    """
    settings = load(config)
    logs.setup(settings.log)
    crash.arm()
    for sentence in inert(settings):
        log.warning(sentence)
    stop = Event()

    def told_to_stop(number: int, _frame: FrameType | None) -> None:
        log.info("%s: committing, writing a checkpoint, leaving", signal.Signals(number).name)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, told_to_stop)
    asked: SimpleQueue[None] = SimpleQueue()
    ends_with_terminal = _has_terminal() and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN  # as of nohup

    def hung_up(number: int, frame: FrameType | None) -> None:
        """A terminal that was closed ends us; whoever sends the signal by hand wants the file to be read again."""
        if ends_with_terminal and not _has_terminal():
            told_to_stop(number, frame)
        else:
            asked.put(None)

    signal.signal(signal.SIGHUP, hung_up)
    from olstream.app import App  # here, so that a mistake in the file is told without loading the compiler

    App(settings, lambda: load(config), asked).run(stop)
    log.info("stopped")


def _has_terminal() -> bool:
    """Whether a terminal controls this process, and is still there."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True
