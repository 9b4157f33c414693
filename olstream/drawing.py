"""What all our pictures are drawn with: colours that most people tell apart, dashes, round ticks, how high to go."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

# Told apart by most people who see colours differently (Okabe and Ito), then the same with dashes.
COLORS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
DASHES: Final = ("", "7 3", "2 2")
# Of an average the very beginning is the fate of single rows.
SETTLED: Final = 0.02
_OUT_OF_SIGHT: Final = 2.0  # times the baselines
_SMALLEST, _LARGEST = 1e-300, 1e308


def ticks(top: float, most: int = 7) -> list[float]:
    """Round numbers from 0 up to the top, that number of steps at most."""
    step = 10.0 ** math.floor(math.log10(top / most))
    step *= next(factor for factor in (1, 2, 5, 10, 20) if top / (factor * step) <= most)
    return [i * step for i in range(int(top / step) + 1)]


def highest(ours: Iterable[float], baselines: Iterable[float]) -> float:
    """Where a picture ends above. What is far above the baselines goes out of it."""
    known = max(baselines, default=0.0)
    top = min(1.05 * max(max(ours, default=0.0), known), _OUT_OF_SIGHT * known or _LARGEST, _LARGEST)
    return top if top > _SMALLEST else 1.0
