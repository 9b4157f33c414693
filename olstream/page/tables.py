"""Tables: a heading for each column, numbers to the right, wide ones scroll by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from olstream.page.html import Child, Html, element

Cell = Child | tuple[Child, str]  # what is in it; with a class


@dataclass(frozen=True, slots=True)
class Column:
    heading: str
    is_number: bool = True
    told: str | None = None  # what it means, for who wonders


def table(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], caption: str, look: str | None = None) -> Html:
    """The first cell of each row is its heading."""
    head = [
        element("th", column.heading, scope="col", class_="num" if column.is_number else None, title=column.told)
        for column in columns
    ]
    body = [
        element("tr", *(_cell(cell, column, i == 0) for i, (cell, column) in enumerate(zip(row, columns, strict=True))))
        for row in rows
    ]
    shown = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *head)),
        element("tbody", *body),
        class_=look,
    )
    return element("div", shown, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _cell(cell: Cell, column: Column, is_first: bool) -> Html:
    inside, look = cell if isinstance(cell, tuple) else (cell, "")
    looks = f"{'num' if column.is_number else ''} {look}".strip() or None
    return element("th", inside, scope="row", class_=looks) if is_first else element("td", inside, class_=looks)


def facts(pairs: Sequence[tuple[str, Child]]) -> Html:
    """Names and values, where there is a value."""
    shown = [element("div", element("dt", name), element("dd", value)) for name, value in pairs if value]
    return element("dl", *shown, class_="facts")
