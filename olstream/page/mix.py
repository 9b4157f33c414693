"""Which labels came and which were predicted: the errors of guessing, the table of both, and the probabilities."""

from __future__ import annotations

from collections import Counter
from typing import Final

from olstream.page.view import Bin, Confusion

_CLASSES_MAX: Final = 20  # in the table
_BINS: Final = 10  # of the probabilities
_OTHERS: Final = "(all others)"


class Mix:
    """Classes are told apart by their text; None is "nothing was predicted"."""

    def __init__(self) -> None:
        self._labels: Counter[str] = Counter()
        self._order: dict[str, int] = {}
        self._pairs: Counter[tuple[str, str]] = Counter()
        self._majority = self._last = ""
        self._bins = [[0, 0.0, 0] for _ in range(_BINS)]  # rows, sum of probabilities, right ones

    @property
    def classes(self) -> int:
        return len(self._labels)

    def add(self, label: str, predicted: str | None) -> tuple[float, float]:
        """The errors, at this row, of the commonest label so far and of the last one."""
        is_first = not self._labels
        wrong = float(is_first or self._majority != label), float(is_first or self._last != label)
        self._labels[label] += 1
        self._order.setdefault(label, len(self._order))
        if predicted is not None:
            self._pairs[label, predicted] += 1
        if self._before(label, self._majority):
            self._majority = label
        self._last = label
        return wrong

    def _before(self, label: str, majority: str) -> bool:
        """Commoner, or as common and known for longer: as a service counts."""
        own, best = self._labels[label], self._labels[majority]
        return own > best or (own == best and self._order[label] < self._order[majority])

    def said(self, probability: float, was_right: bool) -> None:
        place = self._bins[min(int(min(max(probability, 0.0), 1.0) * _BINS), _BINS - 1)]
        place[0] += 1
        place[1] += probability
        place[2] += was_right

    def calibration(self) -> tuple[Bin, ...]:
        return tuple(Bin(int(rows), total / rows, right / rows) for rows, total, right in self._bins if rows)

    def confusion(self) -> Confusion | None:
        """The commonest classes, and all others together."""
        if not self._pairs:
            return None
        often = Counter(self._labels)
        for (_, predicted), n in self._pairs.items():
            often[predicted] += n
        names = sorted((label for label, _ in often.most_common(_CLASSES_MAX)), key=_in_order)
        if len(often) > len(names):
            names.append(_OTHERS)
        place = {each: i for i, each in enumerate(names)}
        rest = len(names) - 1
        counts = [[0] * len(names) for _ in names]
        for (label, predicted), n in self._pairs.items():
            counts[place.get(label, rest)][place.get(predicted, rest)] += n
        return Confusion(tuple(names), tuple(map(tuple, counts)))


def _in_order(label: str) -> tuple[bool, float, str]:
    """Numbers by their size, then texts."""
    try:
        return False, float(label), label
    except ValueError:
        return True, 0.0, label
