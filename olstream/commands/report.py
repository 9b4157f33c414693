"""`olstream report FILE_OR_URL`: one HTML page to keep, of a file of predictions or of a running service."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

import click

from olstream import __version__
from olstream.commands.status import fetch
from olstream.errors import ConfigError
from olstream.io.bar import bar
from olstream.io.files import reading
from olstream.io.outfile import OutFile, refuse_overwriting, streamed
from olstream.page import figures, service, shell

if TYPE_CHECKING:
    from olstream.page.predictions import Predictions

_NONE: Final = "none"
_ADDRESS: Final = re.compile(r"[\w.-]+:\d+/?|localhost/?|\[[0-9a-fA-F:.]+\](:\d+)?/?")
_TOGETHER: Final = 2000  # lines between two moves of the bar


@click.command()
@click.argument("source", metavar="FILE_OR_URL")
@click.option("--out", metavar="FILE", required=True, help="Where the page goes; `-`: standard output.")
@click.option("--drift", metavar="NAME", default="adwin", show_default=True, help="Detector for a file; `none`: no.")
def command(source: str, out: str, drift: str) -> None:
    """Draw error curves with their baselines and drift, learners compared, on one page that needs nothing else.

    FILE holds predictions as NDJSON, as `replay --out` writes them and the predictions topic carries them
    (`-`: standard input; may be gzip'd). Lines that are none are left out, counted, and the first is told.
    URL is where a running service's http: section listens; its token goes into OLSTREAM_HTTP_TOKEN.

    \b
    Example:
      olstream report predictions.ndjson --out report.html
    """
    out = streamed(out) or out
    if _is_url(source):
        page, told = service.report(fetch(source), source), ""
    else:
        refuse_overwriting({"input": source}, {"--out": out})
        page, told = _of_file(source, drift)
    with OutFile(out) as file:
        file.write(page.encode())
    click.echo(f"{file.name}: {told or source}", err=True)


def _is_url(source: str) -> bool:
    return "://" in source or (not os.path.exists(source) and _ADDRESS.fullmatch(source) is not None)


def _of_file(path: str, drift: str) -> tuple[shell.Page, str]:
    """The page, and one sentence about it."""
    from olstream.config import MonitorConfig  # here, because it loads the compiler
    from olstream.drift import check
    from olstream.page.predictions import Predictions, page

    if drift != _NONE:
        check(drift, {})
    predictions = Predictions(MonitorConfig(drift=[] if drift == _NONE else [drift]))  # type: ignore[arg-type]
    with reading(path, "ndjson") as source, bar(source) as moved:
        for line in source.lines:
            predictions.add(line.data, line.offset + 1)
            if line.offset % _TOGETHER == 0:
                moved(predictions.rows)
    if not predictions.rows:
        why = predictions.first_skipped or "it is empty"
        raise ConfigError(f"{source.name} has no prediction ({why}): give what `olstream replay --out` writes")
    return page(source.name, predictions, __version__), _told(source.name, predictions)


def _told(name: str, predictions: Predictions) -> str:
    from olstream.page.predictions import told_in_short

    told = f"{told_in_short(predictions)} in {name}"
    if predictions.skipped:
        told += f"; {figures.plural(predictions.skipped, 'line')} left out, the first is {predictions.first_skipped}"
    return told
