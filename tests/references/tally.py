"""Prequential measures by their definitions.

Gama, Sebastiao, Rodrigues. On Evaluating Stream Learning Algorithms. Machine Learning 90, 2013.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Tally:
    """Over lists of everything that came."""

    errors: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    majority_errors: int = 0
    no_change_errors: int = 0

    def add(self, truth: int, predicted: int, loss: float) -> None:
        counts = {k: self.labels.count(k) for k in sorted(set(self.labels))}
        majority = max(counts, key=lambda k: (counts[k], -k)) if counts else None
        self.majority_errors += majority != truth
        self.no_change_errors += not self.labels or self.labels[-1] != truth
        self.labels.append(truth)
        self.errors.append(int(predicted != truth))
        self.losses.append(loss)

    @staticmethod
    def sliding(values: list[Any], window: int) -> float:
        last = values[-window:]
        return float(sum(last) / len(last))

    @staticmethod
    def fading(values: list[Any], a: float) -> float:
        powers = [a ** (len(values) - 1 - i) for i in range(len(values))]
        return float(np.dot(powers, values) / sum(powers))
