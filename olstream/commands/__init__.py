"""The commands, one file each; a file is only loaded when its command is used.

The sentences stand here and not beside the commands, so that `olstream --help` loads none of them.
"""

from __future__ import annotations

import importlib
from typing import Final

import click

COMMANDS: Final = {
    "demo": "See it all: an embedded broker, a real data stream, about a minute.",
    "run": "The service: read, predict, update, publish, commit.",
    "check": "Is the configuration right, and is Kafka as it needs to be?",
    "replay": "The same over a file, without Kafka.",
    "compare": "One pass over a file, several learners side by side.",
    "send": "Load a file into the input topic.",
    "inspect": "What a state directory holds: learners, weights by name, offsets.",
    "state": "The checkpoints of a slot: list them, verify them, go back to one.",
    "status": "The running service in one screen.",
    "report": "One page to keep: error curves with baselines and drift, of a file of predictions or a service.",
    "promote": "A shadow becomes the champion, in the configuration.",
    "health": "Exit 0 where the service is well, 1 where not; for container probes.",
    "learners": "The algorithms, their hyperparameters, ranges and papers.",
    "config-schema": "The JSON Schema of the configuration.",
    "bench": "The table of speeds.",
}


class Commands(click.Group):
    """A group that loads a command's file when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"olstream.commands.{name.replace('-', '_')}")
        command: click.Command = module.command
        command.name = name
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from olstream.mistakes import nearest  # here: only a mistyped command needs it

        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            ctx.fail(f"no command {args[0]!r}{nearest(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)
