"""What the decorator of kernels adds to plain functions."""

from __future__ import annotations

import sys

import numpy as np

from olstream.learners._jit import F64, kernel, lent
from olstream.learners._state import Anatomy, Arrays, LinearState


@kernel
def _doubled_rows(a: Arrays, x: F64) -> float:
    a, x = lent((a, x))
    total = 0.0
    for k in range(a.weights.shape[0]):
        row = a.weights[k]
        for j in range(row.size):
            row[j] += 2.0 * x[j]
            total += row[j]
    return total


def test_what_is_lent_is_the_same_array_and_stays_its_owners() -> None:
    arrays, x = LinearState(Anatomy(prior=1.0)).use(2, 16), np.arange(16.0)
    counts = [sys.getrefcount(array) for array in (*arrays, x)]

    total = sum(_doubled_rows(arrays, x) for _ in range(3))

    assert total == 2 * sum(x) * 2 * (1 + 2 + 3)
    assert arrays.weights.tolist() == [(6.0 * x).tolist()] * 2
    assert [sys.getrefcount(array) for array in (*arrays, x)] == counts
