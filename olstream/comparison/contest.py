"""One stream for several entrants: all of them get the same rows, those that the task can take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from olstream.admit import Admission, Admitted
from olstream.comparison.entrants import Entrant, Shown
from olstream.messages import Example, Reason, Reject
from olstream.vocabulary import Form


@dataclass
class Contest:
    """`entrants` are ranked, `baselines` only stand beside them. `door` decides which rows count."""

    door: Admission
    entrants: Sequence[Entrant]
    baselines: Sequence[Entrant]
    rows: int = 0
    labelled: int = 0
    unmatched: int = 0  # labels without features
    rejected: Counter[Reason] = field(default_factory=Counter)
    details: dict[Reason, str] = field(default_factory=dict)  # of the first row of each
    _form: Form = None

    def take(self, decoded: Sequence[Example | Reject]) -> None:
        """The next rows of the stream, in order."""
        self.rows += len(decoded)
        examples = [row for row in decoded if isinstance(row, Example)]
        self._refuse(row for row in decoded if isinstance(row, Reject))
        with_features = [example for example in examples if example.features is not None]
        self.unmatched += len(examples) - len(with_features)
        admitted = self.door.admit(with_features, self._form, True, None)
        self._form = admitted.form
        self._refuse(admitted.rejects.values())
        if admitted.positions:
            shown = self._shown(with_features, admitted)
            self.labelled += int(np.count_nonzero(shown.measured))
            for entrant in (*self.entrants, *self.baselines):
                entrant.take(shown)

    def _refuse(self, rejects: Iterable[Reject]) -> None:
        for reject in rejects:
            self.rejected[reject.reason] += 1
            self.details.setdefault(reject.reason, reject.detail)

    def _shown(self, examples: Sequence[Example], admitted: Admitted) -> Shown:
        measured = ~np.isnan(admitted.target) & (admitted.weight > 0.0)
        forms = () if self.door.classes is None else self.door.classes.forms
        return Shown([examples[i] for i in admitted.positions], measured, admitted.target, admitted.truth, forms)

    def ranked(self) -> list[tuple[int | None, Entrant]]:
        """The best first; equal errors share a rank. Without a label there is none."""
        by_error = sorted(self.entrants, key=_error)
        return [
            (None if _error(entrant) == _UNKNOWN else 1 + sum(_error(e) < _error(entrant) for e in by_error), entrant)
            for entrant in by_error
        ]

    def no_better_than_a_baseline(self) -> list[str]:
        """The names of those whom somebody who knows nothing of the features equals."""
        best = min(map(_error, self.baselines))
        return [entrant.name for _, entrant in self.ranked() if best <= _error(entrant) < _UNKNOWN]


_UNKNOWN = float("inf")


def _error(entrant: Entrant) -> float:
    mean = entrant.score.error_mean
    return _UNKNOWN if mean is None else mean
