"""Which class a row gets, and how sure that is.

    probit    Φ(f / √(1 + v))      learners with a variance v: a probability
    logistic  1 / (1 + exp(-f))    the others: rises with the score, but is not calibrated
    softmax   exp(z_k) / Σ_r exp(z_r)      for several classes: z_k = s_k, or with variances v_k
                                           z_k = s_k / √(1 + π v_k / 8) (MacKay, Neural Computation 4, 1992)

The probability is that of the predicted class, whatever the threshold; 1 where no other class is known.
"""

from __future__ import annotations

import math

import numpy as np

from olstream.learners._jit import F64, I64, kernel


@kernel
def side_probability(f: float, v: float) -> float:
    """Of the side that f is signed toward. v is nan for learners without a variance."""
    if not math.isnan(v):
        return 0.5 * math.erfc(-f / math.sqrt(2.0 * (1.0 + v)))
    if f >= 0.0:
        return 1.0 / (1.0 + math.exp(-f))
    e = math.exp(f)
    return e / (1.0 + e)


@kernel
def decide_binary(score: F64, variance: F64, known: I64, threshold: float, predicted: I64, probability: F64) -> None:
    """`known`: 1 for the negative class + 2 for the positive; the only known class wins always."""
    for row in range(score.size):
        f = score[row]
        if known[row] == 3:
            predicted[row] = 1 if f >= threshold else 0
            probability[row] = side_probability(f if predicted[row] == 1 else -f, variance[row])
        else:
            predicted[row] = known[row] - 1
            probability[row] = 1.0 if known[row] > 0 else math.nan


@kernel
def decide_multiclass(scores: F64, spreads: F64, known: I64, winner: I64, probability: F64) -> None:
    """The probability of the winner by softmax; `spreads` (n, K), or (0, 0) for learners without a variance."""
    for row in range(known.size):
        probability[row] = math.nan
        if winner[row] < 0:
            continue
        own = moderated(scores, spreads, row, winner[row])
        top = own
        for k in range(known[row]):
            top = max(top, moderated(scores, spreads, row, k))
        total = 0.0
        for k in range(known[row]):
            total += math.exp(moderated(scores, spreads, row, k) - top)
        probability[row] = math.exp(own - top) / total


@kernel
def moderated(scores: F64, spreads: F64, row: int, k: int) -> float:
    """A score drawn toward 0 by its variance."""
    s = scores[row, k]
    return float(s) if spreads.size == 0 else float(s / math.sqrt(1.0 + math.pi / 8.0 * spreads[row, k]))


def probabilities(scores: F64, spreads: F64, row: int, known: int) -> F64:
    """Of each known class of a row; they sum to 1."""
    drawn = np.array([moderated(scores, spreads, row, k) for k in range(known)])
    with np.errstate(over="ignore", under="ignore"):  # a difference of -inf is a probability of 0
        parts = np.exp(drawn - np.max(drawn))
    total: F64 = parts / np.sum(parts)
    return total
