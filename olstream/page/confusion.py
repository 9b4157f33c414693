"""Labels against predictions: the table of both, and how often each class comes in either."""

from __future__ import annotations

from typing import Final

from olstream.page import figures
from olstream.page.html import Html, element, joined, name
from olstream.page.tables import Cell, Column, table
from olstream.page.view import Confusion

_CLASSES_MAX: Final = 20  # shown; the others are one
_FOLDED: Final = 4  # classes; more are unfolded when asked
_STEPS: Final = (0.02, 0.15, 0.4, 0.7)  # of a row, where the next deeper colour begins
_BAR: Final = 90  # pixels


def confusion(counted: Confusion | None, key: str) -> Html | None:
    if counted is None or not any(counted.labels):
        return None
    counted = _capped(counted)
    title = f"Labels and predictions, {len(counted.classes)} classes"
    inside = element("div", _table(counted), _mix(counted), class_="columns")
    return element(
        "details", element("summary", title, id=f"of-{key}"), inside, id=key, open=len(counted.classes) <= _FOLDED
    )


def _capped(counted: Confusion) -> Confusion:
    """The commonest classes, and all others together."""
    if len(counted.classes) <= _CLASSES_MAX:
        return counted
    labels = counted.labels
    kept = sorted(sorted(range(len(labels)), key=lambda i: -labels[i])[:_CLASSES_MAX])
    place = {old: new for new, old in enumerate(kept)}
    sums = [[0] * (_CLASSES_MAX + 1) for _ in range(_CLASSES_MAX + 1)]
    for i, row in enumerate(counted.counts):
        for j, n in enumerate(row):
            sums[place.get(i, _CLASSES_MAX)][place.get(j, _CLASSES_MAX)] += n
    names = (*(counted.classes[i] for i in kept), "(all others)")
    return Confusion(names, tuple(tuple(row) for row in sums))


def _table(counted: Confusion) -> Html:
    columns = [Column("label ↓  predicted →", False), *(Column(_short(each)) for each in counted.classes)]
    rows: list[list[Cell]] = [
        [name(label), *(_cell(n, sum(row), i == j) for j, n in enumerate(row))]
        for i, (label, row) in enumerate(zip(counted.classes, counted.counts, strict=True))
    ]
    return table(columns, rows, "Rows by label and prediction", "tight heat")


def _cell(n: int, of: int, is_right: bool) -> Cell:
    depth = sum(n >= step * of for step in _STEPS) if n and of else 0
    return figures.count(n), f"{f'h{depth}' if depth else ''} {'right-one' if is_right else ''}".strip()


def _short(text: str) -> str:
    return text if len(text) <= 16 else f"{text[:15]}…"


def _mix(counted: Confusion) -> Html:
    columns = [
        Column("class", False), Column("of labels"), Column("of predictions"), Column("", False),
        Column("precision", told="of those predicted so, the share that are"),
        Column("recall", told="of those that are so, the share predicted"),
    ]  # fmt: skip
    labels, predictions = counted.labels, counted.predictions
    n, m = sum(labels), sum(predictions)
    rows: list[list[Cell]] = []
    for i, label in enumerate(counted.classes):
        right, share, predicted = counted.counts[i][i], _ratio(labels[i], n), _ratio(predictions[i], m)
        rows.append([
            name(label), figures.percent(share), figures.percent(predicted), _bars(share, predicted),
            figures.percent(_ratio(right, predictions[i])), figures.percent(_ratio(right, labels[i])),
        ])  # fmt: skip
    return table(columns, rows, "Mix of labels (grey) and of predictions (blue)", "tight")


def _ratio(part: int, of: int) -> float | None:
    return part / of if of else None


def _bars(share: float | None, predicted: float | None) -> Html:
    above, below = ((value or 0.0) * _BAR for value in (share, predicted))
    drawn = joined(
        element("rect", x="0", y="2", width=f"{above:.1f}", height="5", class_="bar other"),
        element("rect", x="0", y="9", width=f"{below:.1f}", height="5", class_="bar"),
    )
    return element("svg", drawn, width=_BAR, height="16", aria_hidden="true")
