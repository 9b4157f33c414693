"""Probabilities against what came: of the predictions said to be right with 0.8, are four in five?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from olstream.page import figures
from olstream.page.html import Html, element, joined
from olstream.page.tables import Cell, Column, table
from olstream.page.view import Bin

_BAR: Final = 140  # pixels


def calibration(bins: Sequence[Bin]) -> Html | None:
    if not bins:
        return None
    columns = [Column("said, mean", False), Column("right"), Column("", False), Column("predictions")]
    rows: list[list[Cell]] = [
        [figures.percent(each.probability), figures.percent(each.correct), _bars(each), figures.count(each.rows)]
        for each in bins
    ]
    return table(columns, rows, f"Probabilities: said (grey) and right (blue); {_gap(bins)} apart on average", "tight")


def _gap(bins: Sequence[Bin]) -> str:
    """The expected calibration error."""
    total = sum(each.rows for each in bins)
    return figures.percent(sum(abs(each.probability - each.correct) * each.rows / total for each in bins))


def _bars(of: Bin) -> Html:
    drawn = joined(
        element("rect", x="0", y="2", width=f"{_BAR * min(of.probability, 1.0):.1f}", height="5", class_="bar other"),
        element("rect", x="0", y="9", width=f"{_BAR * of.correct:.1f}", height="5", class_="bar"),
    )
    return element("svg", drawn, width=_BAR, height="16", aria_hidden="true")
