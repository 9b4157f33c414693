"""What a linear learner has learnt: a row of weights for each class, or one row in all."""

from __future__ import annotations

from typing import Final

import numpy as np

from olstream.learners._jit import F64

COLUMNS_MIN: Final = 16


class LinearState:
    """`weights` (rows, columns) from 0; `variances` the same from the prior, or no columns at all.

    Both are larger than what is in use and grow by doubling; what lies past the end is as new.
    """

    def __init__(self, prior: float | None) -> None:
        self.prior = prior
        self.weights: F64 = np.zeros((1, COLUMNS_MIN))
        self.variances: F64 = _new(1, COLUMNS_MIN, prior)

    def make_room(self, rows: int, columns: int) -> None:
        have_rows, have_columns = self.weights.shape
        if rows <= have_rows and columns <= have_columns:
            return
        rows = have_rows if rows <= have_rows else max(rows, 2 * have_rows)
        columns = have_columns if columns <= have_columns else max(columns, 2 * have_columns)
        weights, variances = np.zeros((rows, columns)), _new(rows, columns, self.prior)
        weights[:have_rows, :have_columns] = self.weights
        if self.prior is not None:
            variances[:have_rows, :have_columns] = self.variances
        self.weights, self.variances = weights, variances

    def take(self, weights: F64, variances: F64 | None) -> None:
        """Go on from saved arrays."""
        self.make_room(*weights.shape)
        self.weights[: weights.shape[0], : weights.shape[1]] = weights
        if variances is not None:
            self.variances[: variances.shape[0], : variances.shape[1]] = variances


def _new(rows: int, columns: int, prior: float | None) -> F64:
    return np.zeros((rows, 0)) if prior is None else np.full((rows, columns), prior)
