"""`olstream run CONFIG`: the service."""

from __future__ import annotations

import logging
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
    signal.signal(signal.SIGHUP, lambda _number, _frame: asked.put(None))
    from olstream.app import App  # here, so that a mistake in the file is told without loading the compiler

    App(settings, lambda: load(config)).run(stop, asked)
    log.info("stopped")
