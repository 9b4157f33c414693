"""The learners on the page: the table of all, and one card for each with its curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from olstream.page import curves, figures
from olstream.page.calibration import calibration
from olstream.page.confusion import confusion
from olstream.page.html import Child, Html, element, joined, name
from olstream.page.tables import Cell, Column, facts, table
from olstream.page.view import Curve, Learner, Watcher

_UNFOLDED: Final = 6  # learners; of more the cards are folded
_POINTS, _SPARK_POINTS = 80, 36  # of a curve: more are noise to the eye
_COLUMNS: Final = [
    Column("learner", False),
    Column("rows seen"),
    Column("labelled"),
    Column("error now", told="over the sliding window; in a regression the mean absolute error of the last rows"),
    Column("error total", told="since the learner began"),
    Column("majority", told="the total error of always guessing the commonest class so far"),
    Column("last label", told="the total error of always guessing the last label"),
    Column("loss now", told="the learner's own loss, over the sliding window"),
    Column("updates", told="the share of labelled rows that changed the model"),
    Column("drift", False),
    Column("last drift", told="labelled rows since the last detection"),
    Column("regret", told="mean loss less that of the best fixed linear model of the window"),
    Column("recent error", False),
]


def overview(learners: Sequence[Learner], caption: str) -> Html:
    """All of them in one table; a column that nobody has a number for is left out."""
    rows = [_row(learner, i) for i, learner in enumerate(learners)]
    kept = [i for i in range(len(_COLUMNS)) if any(_has_value(row[i]) for row in rows) or i < 5]
    columns = [_COLUMNS[i] for i in kept]
    return element("div", table(columns, [[row[i] for i in kept] for row in rows], caption), class_="card")


def _has_value(cell: Cell) -> bool:
    inside = cell[0] if isinstance(cell, tuple) else cell
    return bool(inside) and inside != figures.ABSENT


def _row(learner: Learner, i: int) -> list[Cell]:
    shown = learner.shown
    total = shown(learner.error.get("total"))
    return [
        joined(element("a", name(learner.name), href=f"#learner-{i}"), element("small", _kind(learner))),
        figures.count(learner.seen),
        figures.count(learner.labelled),
        shown(learner.now),
        (total, "alarm") if learner.is_behind else total,
        figures.percent(learner.majority),
        figures.percent(learner.no_change),
        figures.number(learner.loss.get("sliding")),
        figures.percent(learner.updated_share),
        _state(learner),
        _last_drift(learner),
        figures.signed(learner.regret),
        _spark(learner) if learner.recent.error else None,
    ]


def _spark(learner: Learner) -> Html:
    curve = learner.recent.coarser(_SPARK_POINTS)
    return curves.sparkline(curve.error, _trend(learner, curve))


def _kind(learner: Learner) -> str:
    return " · ".join(filter(None, (learner.algorithm, learner.task, learner.role)))


def _state(learner: Learner) -> Html | None:
    return None if learner.drift.state is None else _level(learner.drift.level or 0)


def _level(level: int) -> Html:
    if level == 0:
        return element("span", "stable", class_="soft")
    return element("span", "warning" if level == 1 else "drift", class_="alarm flag")


def _last_drift(learner: Learner) -> Cell:
    if learner.drift.state is None:
        return None
    ago = learner.drift_ago
    told = "none" if ago is None else f"{ago:,} rows ago"
    return (told, "alarm") if learner.has_drifted else told


def _trend(learner: Learner, curve: Curve) -> str:
    shown = learner.shown
    rows = f"rows {curve.labelled[0]:,} to {curve.labelled[-1]:,}"
    return f"error of {learner.name[:100]} over {rows}: from {shown(curve.error[0])} to {shown(curve.error[-1])}"


def cards(learners: Sequence[Learner]) -> list[Html]:
    """One below the other. Of many, only those are unfolded that want attention."""
    is_open = len(learners) <= _UNFOLDED
    return [
        _card(learner, i, is_open or bool(learner.drift.level) or learner.has_drifted)
        for i, learner in enumerate(learners)
    ]


def _card(learner: Learner, i: int, is_open: bool) -> Html:
    shown = learner.shown
    state = _state(learner)
    now = f"error {shown(learner.now)}" if learner.labelled else None
    summary = element(
        "summary",
        element("h3", name(learner.name)),
        element("span", _kind(learner), class_="soft"),
        element("span", now, " " if now else None, state, class_="right"),
        id=f"summary-{i}",
    )
    inside = element("div", *_inside(learner, i), id=f"learner-{i}")
    return element("details", summary, inside, class_="card", id=f"card-{i}", open=is_open)


def _inside(learner: Learner, i: int) -> list[Html | None]:
    if not learner.labelled:
        seen = f"{figures.plural(learner.seen, 'row')} predicted. " if learner.seen else ""
        waiting = f"{seen}No label yet: errors are measured where a record carries its label."
        return [element("p", waiting, class_="soft"), _facts(replace(learner, updates=None))]
    behind = "No better than always guessing: see majority and last label." if learner.is_behind else None
    return [
        element("p", behind, class_="alarm flag") if behind else None,
        _legend(learner) if learner.life or learner.recent else None,
        element("div", *_figures(learner), class_="columns"),
        _facts(learner),
        _detectors(learner.drift.detectors),
        confusion(learner.confusion, f"mix-{i}"),
        calibration(learner.calibration),
    ]


def _figures(learner: Learner) -> list[Html]:
    """Two side by side; one alone where the recent rows are all there were."""
    recent, life = learner.recent, learner.life
    if recent and life and recent.labelled[0] > life.labelled[0]:
        kept = {"Recent": recent.coarser(_POINTS), "From the beginning": life.coarser(_POINTS)}
    else:
        one = (recent or life).coarser(2 * _POINTS)
        kept = {"Recent" if one and one.labelled[0] else "From the beginning": one}
    return [_figure(learner, title, curve) for title, curve in kept.items() if curve]


def _figure(learner: Learner, title: str, curve: Curve) -> Html:
    what = "mean absolute error" if learner.is_regression else "error"
    steps = f"{what}, by {figures.plural(curve.every, 'labelled row')}" if curve.every else what
    lines = curves.of_learner(learner, curve)
    marks = [mark for mark in learner.marks if curve.labelled[0] <= mark.labelled <= curve.labelled[-1]]
    ends = [f"{line.name} {learner.shown(line.values[-1])}" for line in lines if line.is_baseline]
    told = "; ".join([_trend(learner, curve), *ends, figures.plural(len(marks), "drift mark")])
    picture = curves.chart(lines, not learner.is_regression, told, marks)
    return element("figure", element("figcaption", element("b", title), f"  {steps}"), picture)


def _legend(learner: Learner) -> Html:
    """What each line is, and how it stood over the last rows."""
    shown, curve = learner.shown, learner.recent or learner.life
    keys = [
        curves.key(line.look, line.dash, line.name if line.is_baseline else "error", " ", shown(_now(learner, line)))
        for line in reversed(curves.of_learner(learner, curve))
    ]
    if learner.marks:
        flag = element("span", "▼", class_="flagged", aria_hidden="true")
        n = max(len(learner.marks), learner.drift.detections)
        only = f", the last {len(learner.marks)} shown" if n > len(learner.marks) else ""
        keys.append(element("span", flag, f"drift, {figures.plural(n, 'detection')}{only}", class_="entry"))
    return element("p", *keys, class_="legend")


def _now(learner: Learner, line: curves.Line) -> float | None:
    return (learner.recent or learner.life).last(line.values) if line.is_baseline else learner.now


def _facts(learner: Learner) -> Html:
    shown, loss = learner.shown, learner.loss
    updates = None if learner.updates is None else figures.count(learner.updates)
    if updates and learner.updated_share is not None:
        updates += f" ({figures.percent(learner.updated_share)})"
    pairs: list[tuple[str, float | None, Callable[[float | None], str]]] = [
        ("error, faded", learner.error.get("fading"), shown),
        ("error, total", learner.error.get("total"), shown),
        ("loss now", loss.get("sliding"), figures.number),
        ("loss, total", loss.get("total"), figures.number),
        ("margin, mean", learner.margin_before, figures.signed),
        ("margin after updates", learner.margin_after, figures.signed),
        ("best loss in hindsight", learner.hindsight_loss, figures.number),
        ("regret", learner.regret, figures.signed),
        ("regret is of", learner.regret_rows, lambda n: figures.plural(int(n or 0), "row")),
        ("and rows came since", learner.regret_ago, figures.count),
        ("features", learner.features, figures.count),
        ("classes", learner.classes, figures.count),
        ("norm of the weights", learner.weights_norm, figures.number),
        ("mean variance", learner.variance_mean, figures.number),
        ("in memory", learner.size_bytes, figures.size),
        ("wait for their label", learner.pending or None, figures.count),
    ]
    known: list[tuple[str, Child]] = [(what, told(value)) for what, value, told in pairs if value is not None]
    recent = learner.recent.coarser(_SPARK_POINTS)
    trends = [
        (f"{what}, recent", curves.sparkline(values, f"from {told(values[0])} to {told(values[-1])}"))
        for what, values, told in (
            ("loss", recent.loss, figures.number), ("updates", recent.updated, figures.percent),
        )
        if values
    ]  # fmt: skip
    return facts([*known, ("updates", updates), *trends])


def _detectors(watchers: Sequence[Watcher]) -> Html | None:
    if not watchers:
        return None
    columns = [
        Column("detector", False), Column("watches", False), Column("now", False),
        Column("statistic"), Column("threshold"), Column("window, rows"), Column("detections"), Column("warnings"),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            name(each.detector), name(each.signal), _level(each.level),
            figures.number(each.statistic), figures.number(each.threshold), figures.count(each.window_events),
            figures.count(each.detections), figures.count(each.warnings),
        ]
        for each in watchers
    ]  # fmt: skip
    return table(columns, rows, "Drift detectors", "tight")
