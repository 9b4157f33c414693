"""Losses as shares, for detectors.

A loss has no upper bound and any unit, and the detectors' bounds are for values in [0, 1]. They are given

    x = l / (l + m)      l  the loss of the row
                         m  the mean loss of the labelled rows 101 to 200, which are not watched themselves

which grows with the loss and does not change with its unit. m stays as it is: where it followed the losses, x would
rise, long after a learner has become better, though nothing got worse.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from olstream.learners._jit import F64, I64, kernel
from olstream.learners._score import LARGEST

BEGUN: Final = 100  # labelled rows after which losses count for their unit
SETTLED: Final = 200  # and after which they are watched


@kernel
def shares(loss: F64, numbers: I64, unit: F64) -> F64:
    """Of rows with these numbers among labelled ones, from 1. `unit` (1,) is m, kept from batch to batch."""
    found = np.zeros(loss.size)
    for row in range(loss.size):
        if BEGUN < numbers[row] <= SETTLED:
            unit[0] = min(unit[0] + loss[row] / (SETTLED - BEGUN), LARGEST)
        if loss[row] > unit[0]:
            found[row] = 1.0 / (1.0 + unit[0] / loss[row])
        elif unit[0] > 0.0:
            found[row] = loss[row] / unit[0] / (1.0 + loss[row] / unit[0])
    return found
