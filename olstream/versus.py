"""Whether a shadow does better than a champion on the same records: two errors beside each other, and two statistics.

Gama, Sebastiao, Rodrigues. On Evaluating Stream Learning Algorithms. Machine Learning 90, 2013, section 5.

    S = L + a S                            faded sum of a loss (A the champion's, B the shadow's); a = 1 is the total
    Q = log(S_A / S_B)                     defined where both are above 0
    M = sign(n10 - n01) (n01 - n10)² / (n01 + n10)
                                           McNemar; n01: only the champion was right, n10: only the shadow was

Both are above 0 where the shadow is better. |M| is above 6.635 once in a hundred where neither is; of faded counts
more rarely, so that they err towards no difference. M is (Σ d)² / Σ d² of the differences d of two errors that are
0 or 1: in regression the same of absolute errors, which is no McNemar, decides instead.
Row by row in constant memory, so that batches of any size give the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from olstream import intact
from olstream.learners._jit import F64, U8, kernel
from olstream.learners._score import LARGEST, clamp

I8: TypeAlias = NDArray[np.int8]
Span: TypeAlias = Literal["total", "fading"]
Verdict: TypeAlias = Literal["better", "worse", "no difference"]

SPANS: Final[tuple[Span, Span]] = ("total", "fading")
SIGNIFICANT: Final = 6.635  # chi squared with one degree of freedom exceeds it once in a hundred
N, ERROR_MINE, ERROR_THEIRS, LOSS_MINE, LOSS_THEIRS, ONLY_MINE, ONLY_THEIRS, SQUARES, AHEAD = range(9)
_ROWS_MAX: Final = 2**53  # up to here a float counts


class Versus:
    """A shadow against one champion, over the rows that both measured. `mine` is the shadow's.

    An error is 0 or 1; in regression (`classify` is false) how far off the prediction was.
    """

    def __init__(self, classify: bool, fading: float) -> None:
        self.classify = classify
        self.fading = fading
        self.sums = np.zeros((len(SPANS), 9))

    def add(
        self, measured: U8, mine_correct: I8, mine_loss: F64, theirs_correct: I8, theirs_loss: F64,
        mine_absolute: F64, theirs_absolute: F64,
    ) -> None:  # fmt: skip
        """Rows in order, (n,) each; only measured ones count, and only 1 is correct.

        The absolute errors may be empty in classification.
        """
        _add(
            self.classify, self.fading, self.sums, measured, mine_correct, mine_loss, theirs_correct, theirs_loss,
            mine_absolute, theirs_absolute,
        )  # fmt: skip

    @staticmethod
    def warm_up() -> None:
        """Compile what the first batch would wait for."""
        none, nobody = np.zeros(0), np.zeros(0, np.int8)
        Versus(True, 1.0).add(np.zeros(0, np.uint8), nobody, none, nobody, none, none, none)

    @property
    def rows(self) -> int:
        return int(self.sums[0, N])

    def errors(self, span: Span = "total") -> tuple[float, float] | None:
        """The mean error of the shadow and of the champion; None before the first row."""
        sums = self._of(span)
        return (float(sums[ERROR_MINE] / sums[N]), float(sums[ERROR_THEIRS] / sums[N])) if self.rows else None

    def difference(self, span: Span = "total") -> float | None:
        """The shadow's mean error less the champion's: below 0 where the shadow is better."""
        sums = self._of(span)
        return 0.0 - float(sums[AHEAD] / sums[N]) if self.rows else None

    def q(self, span: Span = "total") -> float | None:
        """log of the champion's loss over the shadow's; None where one of them has had no loss."""
        mine, theirs = self._of(span)[[LOSS_MINE, LOSS_THEIRS]].tolist()
        return math.log(theirs) - math.log(mine) if mine > 0.0 and theirs > 0.0 else None

    def mcnemar(self, span: Span = "total") -> float | None:
        """None in regression, and while both were right and wrong on the same rows."""
        only_mine, only_theirs = self._of(span)[[ONLY_MINE, ONLY_THEIRS]].tolist()
        return _signed(only_mine - only_theirs, only_mine + only_theirs) if self.classify else None

    def paired(self, span: Span = "total") -> float | None:
        """What stands for McNemar in regression; None in classification, and while both were equally far off."""
        sums = self._of(span)
        return None if self.classify else _signed(float(sums[AHEAD]), float(sums[SQUARES]))

    @property
    def verdict(self) -> Verdict | None:
        """How the shadow does of late; None before the first row."""
        if not self.rows:
            return None
        evidence = (self.mcnemar("fading") if self.classify else self.paired("fading")) or 0.0
        if abs(evidence) <= SIGNIFICANT:
            return "no difference"
        return "better" if evidence > 0.0 else "worse"

    def _of(self, span: Span) -> F64:
        return np.asarray(self.sums[SPANS.index(span)])

    def state(self) -> dict[str, NDArray[Any]]:
        """A copy."""
        return {"sums": self.sums.copy()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from `state`; ValueError where it is none."""
        sums = intact.array(arrays, "sums", np.float64, self.sums.shape)
        total, fading = sums[:, :AHEAD]
        if not (np.all(fading >= 0.0) and np.all(fading <= total)):
            raise ValueError("sums holds a faded sum that is below 0 or above its total")
        if not (total[N] < _ROWS_MAX and total[N] == np.floor(total[N])):
            raise ValueError("sums counts no whole number of rows")
        if total[N] == 0.0 and sums.any():
            raise ValueError("sums are of no rows")
        if np.any(sums[:, AHEAD] > sums[:, ERROR_THEIRS]) or np.any(-sums[:, AHEAD] > sums[:, ERROR_MINE]):
            raise ValueError("sums holds a difference above both of its errors")
        mine, theirs = total[ERROR_MINE], total[ERROR_THEIRS]
        if self.classify and not (total[ONLY_THEIRS] <= mine <= total[N] and total[ONLY_MINE] <= theirs <= total[N]):
            raise ValueError("sums counts more errors than rows")
        self.sums = sums.copy()


def _signed(difference: float, squares: float) -> float | None:
    """sign(d) d² / s, also where d² is no finite number."""
    return abs(difference) * (difference / squares) if squares > 0.0 else None


@kernel
def _add(
    classify: bool, fading: float, sums: F64, measured: U8, mine_correct: I8, mine_loss: F64, theirs_correct: I8,
    theirs_loss: F64, mine_absolute: F64, theirs_absolute: F64,
) -> None:  # fmt: skip
    for row in range(measured.size):
        if measured[row] == 0:
            continue
        if classify:
            mine = 0.0 if mine_correct[row] == 1 else 1.0
            theirs = 0.0 if theirs_correct[row] == 1 else 1.0
        else:
            mine, theirs = mine_absolute[row], theirs_absolute[row]
        for span in range(2):
            a = 1.0 if span == 0 else fading
            s = sums[span]
            s[N] = 1.0 + a * s[N]
            s[ERROR_MINE] = min(mine + a * s[ERROR_MINE], LARGEST)
            s[ERROR_THEIRS] = min(theirs + a * s[ERROR_THEIRS], LARGEST)
            s[LOSS_MINE] = min(mine_loss[row] + a * s[LOSS_MINE], LARGEST)
            s[LOSS_THEIRS] = min(theirs_loss[row] + a * s[LOSS_THEIRS], LARGEST)
            if classify:
                s[ONLY_MINE] = max(theirs - mine, 0.0) + a * s[ONLY_MINE]
                s[ONLY_THEIRS] = max(mine - theirs, 0.0) + a * s[ONLY_THEIRS]
            s[SQUARES] = min((mine - theirs) * (mine - theirs) + a * s[SQUARES], LARGEST)
            s[AHEAD] = clamp(theirs - mine + a * s[AHEAD])  # not of the two sums: theirs may be large and alike
