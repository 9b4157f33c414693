"""A shadow against a champion by the definitions, over lists of everything that came.

Gama, Sebastiao, Rodrigues. On Evaluating Stream Learning Algorithms. Machine Learning 90, 2013.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Versus:
    """Of each row the error of both (0 or 1, or how far off) and the loss of both; `a` is the fading factor."""

    a: float
    mine: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)
    mine_losses: list[float] = field(default_factory=list)
    theirs_losses: list[float] = field(default_factory=list)

    def sum(self, values: Sequence[float]) -> float:
        return math.fsum(self.a ** (len(values) - 1 - i) * value for i, value in enumerate(values))

    def difference(self) -> float:
        ones = [1.0] * len(self.mine)
        return self.sum(self.mine) / self.sum(ones) - self.sum(self.theirs) / self.sum(ones)

    def q(self) -> float:
        return math.log(self.sum(self.theirs_losses) / self.sum(self.mine_losses))

    def mcnemar(self) -> float:
        pairs = list(zip(self.mine, self.theirs, strict=True))
        n01 = self.sum([float(mine == 1 and theirs == 0) for mine, theirs in pairs])
        n10 = self.sum([float(mine == 0 and theirs == 1) for mine, theirs in pairs])
        return math.copysign((n01 - n10) ** 2 / (n01 + n10), n10 - n01)

    def paired(self) -> float:
        differences = [theirs - mine for mine, theirs in zip(self.mine, self.theirs, strict=True)]
        total = self.sum(differences)
        return math.copysign(total**2 / self.sum([d * d for d in differences]), total)
