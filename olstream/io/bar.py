"""The bar that shows how far a file has been read, on standard error where that is a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from olstream.io.files import Input


@contextmanager
def bar(source: Input) -> Iterator[Callable[[int], None]]:
    """The function moves it: it takes how many rows there have been."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _rows: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rows]:,} rows"),
    )
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task(source.name, total=source.size_bytes, rows=0)

        def moved(rows: int) -> None:
            progress.update(task, completed=source.position() if source.size_bytes is not None else 0, rows=rows)

        yield moved
