"""Shadows against their champions: over the rows that both measured, who is better, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from olstream.page import figures
from olstream.page.html import Html, element, name
from olstream.page.tables import Cell, Column, table
from olstream.page.view import Compared, Learner

_COLUMNS: Final = [
    Column("shadow", False),
    Column("champion", False),
    Column("rows", told="that both measured"),
    Column("difference, faded", told="the shadow's error less the champion's, of late: below 0 the shadow is better"),
    Column("difference, total", told="the same over all these rows"),
    Column("McNemar, faded", told="of late: above 6.635 the shadow is better, below -6.635 worse; in a regression "
           "the same of absolute errors"),
    Column("McNemar, total", told="the same over all these rows"),
    Column("Q, faded", told="log of the champion's loss over the shadow's, of late: above 0 the shadow is better"),
    Column("the shadow is", False, told="of late, where chance alone would say so once in a hundred"),
]  # fmt: skip


def comparison(learners: Sequence[Learner]) -> Html | None:
    """A row for each pair."""
    rows = [_row(learner, i, each) for i, learner in enumerate(learners) for each in learner.versus]
    return element("div", table(_COLUMNS, rows, "Shadows against champions"), class_="card") if rows else None


def _row(learner: Learner, i: int, of: Compared) -> list[Cell]:
    difference, evidence = of.difference, of.evidence
    return [
        element("a", name(learner.name), href=f"#learner-{i}"),
        name(of.champion),
        figures.count(of.rows),
        learner.shown_difference(difference.get("fading")),
        learner.shown_difference(difference.get("total")),
        figures.signed(evidence.get("fading")),
        figures.signed(evidence.get("total")),
        figures.signed(of.q.get("fading")),
        of.verdict or figures.ABSENT,
    ]
