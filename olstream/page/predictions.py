"""The report of a file of predictions: what its learners did, row by row as they were published."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from olstream.config import MonitorConfig
from olstream.page import figures, shell, together
from olstream.page.html import Html, element, name
from olstream.page.learners import cards, overview
from olstream.page.records import Followed, Record
from olstream.page.view import Learner

_LEARNERS_MAX: Final = 1000  # a file with more names has something else under `learner`


@dataclass
class Predictions:
    """All learners of a file. A line that is no prediction is left out and counted."""

    monitor: MonitorConfig
    followed: dict[str, Followed] = field(default_factory=dict)
    rows: int = 0
    skipped: int = 0
    first_skipped: str | None = None  # which line, and why
    _decode: Callable[[bytes], Record] = field(default=msgspec.json.Decoder(Record).decode)

    def add(self, data: bytes, line: int) -> None:
        """One line, its number from 1. An empty one is nothing."""
        if not data.strip():
            return
        try:
            self._follow(self._decode(data))
            self.rows += 1
        except (msgspec.MsgspecError, ValueError) as error:
            self.skipped += 1
            if self.first_skipped is None:
                self.first_skipped = f"line {line}: {str(error).rstrip('.')}"

    def _follow(self, record: Record) -> None:
        followed = self.followed.get(record.learner)
        if followed is None:
            if len(self.followed) == _LEARNERS_MAX:
                raise ValueError(f"there are more than {_LEARNERS_MAX} learners")
            followed = Followed(record.learner, self.monitor)
        followed.add(record)
        self.followed[record.learner] = followed

    def learners(self) -> list[Learner]:
        """Champions first, each as it first appeared."""
        return sorted((each.learner() for each in self.followed.values()), key=lambda learner: learner.role == "shadow")


def told_in_short(predictions: Predictions) -> str:
    rows, learners = predictions.rows, len(predictions.followed)
    return f"{figures.plural(rows, 'prediction')} of {figures.plural(learners, 'learner')}"


def page(file: str, predictions: Predictions, version: str) -> shell.Page:
    learners = predictions.learners()
    kinds = [[each for each in learners if each.is_regression is is_regression] for is_regression in (False, True)]
    main = element(
        "main",
        _header(file, predictions, learners, version),
        element("h2", "Learners"),
        overview(learners, "Errors as they came, each prediction made before its row was learnt"),
        *(together.of_lives(kind) for kind in kinds),
        *cards(learners),
    )
    return shell.still(f"Report: {file} · olstream", main)


def _header(file: str, predictions: Predictions, learners: Sequence[Learner], version: str) -> Html:
    detector = next((watcher.detector for each in learners for watcher in each.drift.detectors), None)
    skipped = figures.plural(predictions.skipped, "line")
    said = [
        element("li", told_in_short(predictions)),
        element("li", f"drift by {detector}: errors that rise") if detector else None,
        element("li", f"olstream {version}"),
    ]
    told = f"{skipped} left out, for no prediction stands there; the first is {predictions.first_skipped}."
    return element(
        "header",
        element("h1", element("span", "Predictions in ", class_="soft"), name(file)),
        element("ul", *said, class_="state"),
        element("p", told, class_="alarm flag") if predictions.skipped else None,
    )
