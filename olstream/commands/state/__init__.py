"""`olstream state list|verify|rollback`: the checkpoints of a slot, whether they are right, and going back to one."""

from __future__ import annotations

import click

from olstream.commands.state.list import command as list_
from olstream.commands.state.rollback import command as rollback
from olstream.commands.state.verify import command as verify


@click.group(no_args_is_help=False)
def command() -> None:
    """The checkpoints of a slot: which there are, whether they are right, and going back to one.

    \b
    Example:
      olstream state list config.yaml
    """


command.add_command(list_, "list")
command.add_command(verify, "verify")
command.add_command(rollback, "rollback")
