"""Several learners in one picture: a champion and the shadows that learn from the same records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from olstream.page import curves, figures
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
    return [_picture([by_name[member] for member in group]) for group in alone if any(by_name[m].recent for m in group)]


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
    shown = _shown(group)
    keys = [
        curves.key(
            line.look,
            line.dash,
            name(line.name),
            f" {shown(_now(learner))}",
            f" ({learner.role})" if learner.role else None,
        )
        for learner, line in zip(group, lines, strict=True)
    ]
    return element("p", *keys, class_="legend")


def _now(learner: Learner) -> float | None:
    curve, sliding = learner.recent or learner.life, learner.error.get("sliding")
    return curve.last(curve.error) if sliding is None else sliding


def picture(group: Sequence[Learner], lines: Sequence[curves.Line], rows: str) -> Html:
    shown = _shown(group)
    ends = "; ".join(f"{learner.name[:100]} {shown(_now(learner))}" for learner in group)
    axis = figures.short if group[0].is_regression else lambda value: f"{100 * (value or 0.0):.3g}%"
    return curves.chart(lines, axis, f"errors at the end: {ends}", rows=rows)


def _shown(group: Sequence[Learner]) -> Callable[[float | None], str]:
    return figures.number if group[0].is_regression else figures.percent
