"""`olstream promote CONFIG NAME`: a shadow becomes the champion, in the file."""

from __future__ import annotations

import os
from pathlib import Path

import click

from olstream.errors import ConfigError
from olstream.io.outfile import STREAM, OutFile, replace
from olstream.promote import promoted


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.argument("name")
@click.option("--write", is_flag=True, help="Change the file itself.")
def command(config: Path, name: str, write: bool) -> None:
    """The configuration with the shadow NAME as champion, on standard output; the champion becomes the shadow.

    Comments, order and all else stay as they are. What changes is said on standard error.

    \b
    Example:
      olstream promote config.yaml fraud-next --write && kill -HUP PID
    """
    try:
        text = config.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        why = "is no UTF-8 text" if isinstance(error, UnicodeDecodeError) else error.strerror or error
        raise ConfigError(f"{config}: cannot be read: {why}") from None
    promotion = promoted(text, str(config), name, os.environ)
    if write:
        replace(config, promotion.text.encode())
    else:
        with OutFile(STREAM) as out:
            out.write(promotion.text.encode())
    for change in promotion.changes:
        click.echo(change, err=True)
    if write:
        click.echo(f"{config} is written: workers take it on SIGHUP, or when they start", err=True)
