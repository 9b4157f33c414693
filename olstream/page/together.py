"""Several learners in one picture: a champion and the shadows that learn from the same records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from olstream.page import curves
from olstream.page.html import Html, element, name
from olstream.page.view import Curve, Learner, items, mapping, text

_POINTS: Final = 120


def of_routes(learners: Sequence[Learner], config: Mapping[str, Any]) -> list[Html]:
    """One picture for each champion whose shadows see what it sees, and nothing else."""
    by_name = {learner.name: learner for learner in learners}
    routes = [mapping(route) for route in items(config.get("routes"))]
    groups = dict.fromkeys(
        (text(route.get("learner")), *map(text, items(route.get("shadows"))))
        for route in routes
        if items(route.get("shadows"))
    )
    times = Counter(member for group in groups for member in group)
    alone = [group for group in groups if all(times[member] == 1 and member in by_name for member in group)]
    pictures = [[by_name[member] for member in group if by_name[member].recent] for group in alone]
    return [
        _of_route(group) for group in pictures if len(group) > 1 and len({each.is_regression for each in group}) == 1
    ]


def _of_route(group: Sequence[Learner]) -> Html:
    """Over rows before now, for a shadow that began later has counted fewer."""
    lines = [_line(learner, i, learner.recent, learner.labelled) for i, learner in enumerate(group)]
    return _picture(group, lines, "Champion and shadows", "recent error over the same rows, counted back from now")


def _line(learner: Learner, i: int, curve: Curve, now: int) -> curves.Line:
    look, dash = curves.look_of(i)
    coarser = curve.coarser(_POINTS)
    return curves.Line(learner.name, look, [n - now for n in coarser.labelled], coarser.error, dash)


def _picture(group: Sequence[Learner], lines: Sequence[curves.Line], title: str, beside: str) -> Html:
    ends = "; ".join(f"{learner.name[:100]} {learner.shown(learner.now)}" for learner in group)
    figure = element(
        "figure",
        element("figcaption", element("b", title), f"  {beside}"),
        _legend(group, lines),
        curves.chart(lines, not group[0].is_regression, f"{title}, error now: {ends}"),
    )
    return element("section", figure, class_="card")


def of_lives(learners: Sequence[Learner]) -> Html | None:
    """Learners of one kind from the beginning, over the rows that each has counted."""
    shown = [learner for learner in learners if learner.life]
    if len(shown) < 2:
        return None
    lines = [_line(learner, i, learner.life, 0) for i, learner in enumerate(shown)]
    return _picture(shown, lines, "Learners compared", "error over the labelled rows of each")


def _legend(group: Sequence[Learner], lines: Sequence[curves.Line]) -> Html:
    keys = [
        curves.key(line.look, line.dash, name(line.name), f" {learner.shown(learner.now)} {learner.role}".rstrip())
        for learner, line in zip(group, lines, strict=True)
    ]
    return element("p", *keys, class_="legend")
