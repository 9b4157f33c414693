"""Several learners in one picture: a champion and the shadows that learn from the same records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
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
        _picture(group) for group in pictures if len(group) > 1 and len({each.is_regression for each in group}) == 1
    ]


def _picture(group: Sequence[Learner]) -> Html:
    """Over rows before now, for a shadow that began later has counted fewer."""
    lines = []
    for i, learner in enumerate(group):
        look, dash = curves.look_of(i)
        curve = learner.recent.coarser(_POINTS)
        edges = [n - learner.labelled for n in curve.labelled]
        lines.append(curves.Line(learner.name, look, edges, curve.error, dash))
    title = element(
        "figcaption", element("b", "Champion and shadows"), "  recent error over the same rows, counted back from now"
    )
    return element(
        "section", element("figure", title, legend(group, lines), picture(group, lines, "rows")), class_="card"
    )


def of_curves(learners: Sequence[Learner], curve: Callable[[Learner], Curve], caption: str) -> Html | None:
    """All of them over the rows that each has counted."""
    shown = [learner for learner in learners if curve(learner)]
    if len(shown) < 2:
        return None
    lines = []
    for i, learner in enumerate(shown):
        look, dash = curves.look_of(i)
        coarser = curve(learner).coarser(_POINTS)
        lines.append(curves.Line(learner.name, look, coarser.labelled, coarser.error, dash))
    title = element("figcaption", element("b", "Learners compared"), f"  {caption}")
    return element(
        "section", element("figure", title, legend(shown, lines), picture(shown, lines, "rows")), class_="card"
    )


def legend(group: Sequence[Learner], lines: Sequence[curves.Line]) -> Html:
    keys = [
        curves.key(line.look, line.dash, name(line.name), f" {learner.shown(learner.now)} {learner.role}".rstrip())
        for learner, line in zip(group, lines, strict=True)
    ]
    return element("p", *keys, class_="legend")


def picture(group: Sequence[Learner], lines: Sequence[curves.Line], rows: str) -> Html:
    ends = "; ".join(f"{learner.name[:100]} {learner.shown(learner.now)}" for learner in group)
    return curves.chart(lines, group[0].at_axis, f"errors at the end: {ends}", rows=rows)
