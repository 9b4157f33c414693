"""`olstream COMMAND`: runs a command; turns what it raises into one sentence and an exit code."""

from __future__ import annotations

import errno
import io
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Final

import click

from olstream import __version__
from olstream.commands import Commands
from olstream.errors import ConfigError, OlstreamError
from olstream.hidden import hide

_DEBUG: Final = "--debug"
_SIGNALLED: Final = 128  # as shells count: plus the signal's number
_SIGINT, _SIGPIPE = 2, 13
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=False)
@click.version_option(__version__, message="olstream %(version)s")
@click.option(_DEBUG, is_flag=True, help="Show where an error comes from; may stand anywhere on the line.")
def root(debug: bool) -> None:
    """Learn from streams of events, one record at a time, on Kafka.

    \b
    Example:
      olstream demo
      olstream run config.yaml
    """


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; its exit code."""
    logging.getLogger("olstream").addHandler(logging.NullHandler())  # `run` logs; other commands speak for themselves
    arguments = list(sys.argv[1:] if argv is None else argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without φ is told of formulas all the same
    try:
        result = root.main([a for a in arguments if a != _DEBUG], prog_name="olstream", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except BrokenPipeError:
        _flushed()
        return _SIGNALLED + _SIGPIPE
    except Exception as error:
        if _DEBUG in arguments:
            print(hide(traceback.format_exc()), end="", file=sys.stderr)
        sentence, code = _explained(_flushed() or error)
        print(f"olstream: {hide(sentence)}", file=sys.stderr)
        return code
    except KeyboardInterrupt:
        return _interrupted()


def _flushed() -> ConfigError | None:
    """Why standard output takes no more. It is let go of then: the last flush would complain once more."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ConfigError(f"cannot write standard output: {error.strerror}")
    return None


def _explained(error: Exception) -> tuple[str, int]:
    if isinstance(error, OlstreamError):
        return str(error), error.exit_code
    if isinstance(error, click.Abort):
        return "interrupted", _SIGNALLED + _SIGINT
    if isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx else "olstream"
        message = error.format_message().rstrip(".")
        return f"{message[:1].lower()}{message[1:]} (see {path} --help)", ConfigError.exit_code
    if isinstance(error, click.ClickException):
        return error.format_message(), ConfigError.exit_code
    if isinstance(error, PermissionError | FileNotFoundError | IsADirectoryError | NotADirectoryError):
        return f"{error.filename}: {error.strerror}", ConfigError.exit_code
    if isinstance(error, OSError) and error.filename is None and error.errno in _FULL:
        return f"cannot write the output: {error.strerror}", ConfigError.exit_code
    return f"unexpected {type(error).__name__}: {error} (run again with --debug to see where)", OlstreamError.exit_code


def _interrupted() -> int:
    print("olstream: interrupted", file=sys.stderr)
    return _SIGNALLED + _SIGINT


if __name__ == "__main__":
    sys.exit(main())
