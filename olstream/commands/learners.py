"""`olstream learners [NAME]`: the algorithms, and all about one of them."""

from __future__ import annotations

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from olstream.learners import base

_WIDTH = 250  # where the output is no terminal: a line for each


@click.command()
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the algorithms, or show the formulas, parameters and paper of one.

    \b
    Example:
      olstream learners arow
    """
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH)
    if name is None:
        console.print(_all())
        console.print("\nolstream learners NAME shows formulas, parameters with their ranges, and the paper.")
    else:
        _show(console, base.algorithm(name))


def _all() -> Table:
    table = Table("name", "algorithm", "tasks", "parameters and their defaults", box=None, header_style="bold")
    for algorithm in base.algorithms().values():
        given = ", ".join(f"{param.name} {_default(param)}" for param in algorithm.params)
        table.add_row(*map(Text, (algorithm.name, algorithm.title, ", ".join(algorithm.told_tasks), given or "-")))
    return table


def _show(console: Console, algorithm: base.Algorithm) -> None:
    console.print(Text(f"{algorithm.name}: {algorithm.title}", style="bold"))
    console.print(Text(f"{algorithm.formulas.strip()}\n"), soft_wrap=True)
    table = Table("parameter", "default", "range", "tasks", "meaning", box=None, header_style="bold")
    for param in algorithm.params:
        tasks = ", ".join(task for task in param.tasks if task in algorithm.tasks)
        table.add_row(*map(Text, (param.name, _default(param), param.range, tasks, param.meaning)))
    console.print(table if algorithm.params else "It has no parameters.")
    console.print(Text(f"\nPaper: {algorithm.paper}"), soft_wrap=True)


def _default(param: base.Param) -> str:
    if param.default is None:
        return "-"
    return f"{param.default:g}" if isinstance(param.default, float) else str(param.default).lower()
