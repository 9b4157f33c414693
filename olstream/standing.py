"""How a learner stands: the numbers that people watch, as of one moment between two batches.

Whoever looks asks the board, and the loop answers at its next turn, so a live model is never
read from another thread, and nothing is computed while nobody looks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING

from olstream.margins import AFTER, BEFORE
from olstream.versus import SPANS, Span, Verdict, Versus

if TYPE_CHECKING:
    from olstream.alarms import Reading
    from olstream.history import Curve
    from olstream.model import Model


@dataclass(frozen=True, slots=True)
class Compared:
    """How a shadow stands against one champion, over the rows that both measured, as `versus` has it."""

    rows: int
    verdict: Verdict | None
    difference: Mapping[Span, float | None]
    q: Mapping[Span, float | None]
    mcnemar: Mapping[Span, float | None]
    paired: Mapping[Span, float | None]

    @staticmethod
    def of(versus: Versus) -> Compared:
        difference, q, mcnemar, paired = (
            {span: figure(span) for span in SPANS}
            for figure in (versus.difference, versus.q, versus.mcnemar, versus.paired)
        )
        return Compared(versus.rows, versus.verdict, difference, q, mcnemar, paired)


@dataclass(frozen=True, slots=True)
class Standing:
    """None is "not known": no label yet, or no such number for this task or learner."""

    seen: int = 0
    labelled: int = 0
    updates: int = 0
    error_total: float | None = None
    error_sliding: float | None = None
    error_fading: float | None = None
    loss_total: float | None = None
    loss_sliding: float | None = None
    loss_fading: float | None = None
    baseline_majority: float | None = None
    baseline_no_change: float | None = None
    features: int | None = None
    classes: int | None = None
    weights_norm: float | None = None
    weight_abs_max: float | None = None
    variance_mean: float | None = None
    size_bytes: int | None = None
    absolute_total: float | None = None
    absolute_sliding: float | None = None
    absolute_fading: float | None = None
    updated_share: float | None = None  # of the labelled rows
    margin_before: float | None = None  # means
    margin_after: float | None = None
    margins: Sequence[Sequence[int]] = ()  # counts, before and after, by the upper bounds `margins.EDGES`
    detectors: Sequence[Reading] = ()
    history: Mapping[str, Curve] = field(default_factory=dict)
    confusion: Sequence[Sequence[int]] = ()  # [label][predicted], of declared classes
    versus: Mapping[str, Compared] = field(default_factory=dict)  # of a shadow, by champion
    pending: int | None = None  # predictions that wait for their label, and labels for their row

    @staticmethod
    def of(model: Model) -> Standing:
        tally = model.tally
        return Standing(
            seen=tally.seen,
            labelled=tally.labelled,
            updates=tally.updates,
            error_total=tally.error_rate("total"),
            error_sliding=tally.error_rate("sliding"),
            error_fading=tally.error_rate("fading"),
            loss_total=tally.loss_mean("total"),
            loss_sliding=tally.loss_mean("sliding"),
            loss_fading=tally.loss_mean("fading"),
            baseline_majority=tally.baseline("majority"),
            baseline_no_change=tally.baseline("no_change"),
            features=model.n_features,
            classes=model.classes.known if model.classes is not None else None,
            weights_norm=model.weights_norm(),
            weight_abs_max=model.weight_abs_max(),
            variance_mean=model.variance_mean(),
            size_bytes=model.nbytes,
            absolute_total=tally.mean_absolute_error("total"),
            absolute_sliding=tally.mean_absolute_error("sliding"),
            absolute_fading=tally.mean_absolute_error("fading"),
            updated_share=tally.updates / tally.labelled if tally.labelled else None,
            margin_before=tally.margins.mean(BEFORE),
            margin_after=tally.margins.mean(AFTER),
            margins=tally.margins.counts.tolist(),
            detectors=model.alarms.readings(),
            history=tally.history.curves(tally.classify),
            confusion=tally.confusion.tolist(),
            versus={champion: Compared.of(versus) for champion, versus in model.versus.items()},
            pending=len(model.waiting),
        )


class Board:
    """The last standing of each learner."""

    def __init__(self) -> None:
        self.standings: dict[str, Standing] = {}
        self._wanted = True
        self._answered = Event()

    def ask(self, patience_s: float) -> None:
        """Have the standings renewed; where the loop does not come round in time, they stay as they are."""
        self._answered.clear()
        self._wanted = True
        self._answered.wait(patience_s)

    def answer(self, models: Iterable[Model]) -> None:
        """The loop came round: renew the standings if anybody asked."""
        if self._wanted:
            self._wanted = False
            self.standings = {**self.standings, **{model.name: Standing.of(model) for model in models}}
            self._answered.set()

    def forget_all_but(self, learners: Collection[str]) -> None:
        self.standings = {name: standing for name, standing in self.standings.items() if name in learners}

    def read(self, *fields: str) -> dict[tuple[str, ...], float | None]:
        """{(learner,): value} of one field; of several, {(learner, what follows the first _): value}."""
        return {
            (name, *([field.partition("_")[2]] if len(fields) > 1 else [])): getattr(standing, field)
            for name, standing in self.standings.items()
            for field in fields
        }

    def read_detectors(self, number: str) -> dict[tuple[str, ...], float | None]:
        """{(learner, detector, signal): value} of one number of each."""
        return {
            (name, reading.detector, reading.signal): getattr(reading, number)
            for name, standing in self.standings.items()
            for reading in standing.detectors
        }

    def read_versus(self, figure: str) -> dict[tuple[str, ...], float | None]:
        """{(learner, champion, window): value} of one figure of each shadow."""
        return {
            (name, champion, span): value
            for name, standing in self.standings.items()
            for champion, compared in standing.versus.items()
            for span, value in getattr(compared, figure).items()
        }
