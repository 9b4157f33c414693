"""What a lesson reports: the row as it was judged before, the step, and the row as it is judged after."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = NDArray[np.float64]
Report: TypeAlias = dict[str, Any]

SMALLEST_NORMAL = 2.2250738585072014e-308
LARGEST = 1.7976931348623157e308


def is_zero(square: float) -> bool:
    """Whether ||x||^2 or x·S x says that there is nothing to learn from: 0, no normal number, or too large."""
    return not SMALLEST_NORMAL <= square <= LARGEST


def report(before: Report, step: float, updated: bool, after: Report) -> Report:
    told = {f"{key}_after": after[key] for key in ("score", "margin", "loss")}
    return before | {"step": step, "updated": updated} | told


class OneVector:
    """A learner with one weight vector. `judge` measures a row, `teach` gives the step and whether it changed."""

    def judge(self, x: Vector, y: float) -> Report:
        raise NotImplementedError

    def teach(self, x: Vector, y: float, h: float, seen: Report) -> tuple[float, bool]:
        raise NotImplementedError

    def learn(self, x: Vector, y: float, h: float = 1.0) -> Report:
        """One round with importance weight h >= 0; with 0 nothing changes, not even a counter."""
        before = self.judge(x, y)
        if h == 0.0:
            return report(before, 0.0, False, before)
        step, updated = self.teach(x, y, h, before)
        return report(before, step, updated, self.judge(x, y))


class ByClass:
    """A learner with a weight vector for each class: row k of W (K, d), which grows when a class appears."""

    def __init__(self, d: int) -> None:
        self.W: Matrix = np.zeros((0, d))

    def grow(self) -> None:
        self.W = np.vstack([self.W, np.zeros(self.W.shape[1])])

    def shrink(self) -> None:
        self.W = self.W[:-1]

    def loss(self, x: Vector, k: int, margin: float) -> float:
        raise NotImplementedError

    def teach(self, x: Vector, k: int, h: float, seen: Report) -> tuple[float, bool]:
        raise NotImplementedError

    def rival(self, x: Vector, k: int) -> int:
        """The best wrong class, the first seen of equals."""
        scores = self.W @ x
        wrong = [q for q in range(len(self.W)) if q != k]
        return max(wrong, key=lambda q: (scores[q], -q))

    def judge(self, x: Vector, k: int) -> Report:
        scores = self.W @ x
        if len(self.W) < 2:
            return {"score": float(scores.max()), "margin": None, "loss": 0.0}
        margin = float(scores[k] - scores[self.rival(x, k)])
        return {"score": float(scores.max()), "margin": margin, "loss": self.loss(x, k, margin)}

    def learn(self, x: Vector, k: int, h: float = 1.0) -> Report:
        """One round; k is the class by order of appearance, so that k = K is a new one.

        The score is the winner's among the classes known before the row. A first class is only registered.
        """
        is_new = k == len(self.W)
        score = float(max(self.W @ x, default=0.0))
        if is_new:
            self.grow()
        before = self.judge(x, k) | {"score": score}
        if h == 0.0:
            if is_new:
                self.shrink()
            return report(before, 0.0, False, before)
        step, updated = self.teach(x, k, h, before) if len(self.W) > 1 else (0.0, False)
        return report(before, step, updated, self.judge(x, k))
