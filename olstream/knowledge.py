"""What a model has learnt, for people: weights and variances by the names of their features."""

from __future__ import annotations

from typing import Any

import numpy as np

from olstream.classes import Classes
from olstream.learners import base
from olstream.learners._jit import F64
from olstream.learners._state import BIAS, Arrays, LinearState
from olstream.scale import Scaler
from olstream.vocabulary import FIRST_NAMED, Vocabulary


class Knowledge:
    """The part of a `Model` that only reads. Several classes: by class text, then by name."""

    task: base.Task
    classes: Classes | None
    vocabulary: Vocabulary
    scaler: Scaler | None
    _learning: base.Learning
    _state: LinearState

    def weights(self) -> dict[str, Any]:
        return self._by_name(self._weights())

    def bias(self) -> float | dict[str, float]:
        return self._of_bias(self._weights())

    def variances(self) -> dict[str, Any] | None:
        """None for first-order learners; of a covariance the diagonal."""
        found = self._variances()
        return None if found is None else self._by_name(found)

    def bias_variance(self) -> float | dict[str, float] | None:
        """None for first-order learners, and where there is no bias."""
        found = self._variances() if self.vocabulary.bias else None
        return None if found is None else self._of_bias(found)

    def covariance(self) -> dict[str | None, tuple[list[str], F64]] | None:
        """(features, matrix) of each class; of None where there is one in all. None where there is no such matrix."""
        anatomy, used = self._learning.anatomy, self.vocabulary.n_columns
        if not anatomy.is_full:
            return None
        by_class = self.task == "multiclass" and not anatomy.is_shared
        texts = self.classes.texts if by_class and self.classes is not None else [None]
        roots = self._arrays().spread[: len(texts), FIRST_NAMED:used]  # without the bias
        return {text: (self.vocabulary.exported(), root @ root.T) for text, root in zip(texts, roots, strict=True)}

    def _weights(self) -> F64:
        return self._used(self._learning.weights_of(self._arrays()))

    def _variances(self) -> F64 | None:
        anatomy, spread = self._learning.anatomy, self._arrays().spread
        if anatomy.prior is None:
            return None
        if not anatomy.is_full:
            return self._used(spread)
        diagonals = np.sum(spread * spread, axis=2)[:, : self.vocabulary.n_columns]
        return np.broadcast_to(diagonals, (self._n_vectors, diagonals.shape[1])) if anatomy.is_shared else diagonals

    @property
    def n_features(self) -> int:
        return self.vocabulary.n_columns - FIRST_NAMED

    def weight_abs_max(self) -> float:
        return float(np.max(np.abs(self._weights()), initial=0.0))

    def weights_norm(self) -> float:
        weights = self._weights()
        largest = float(np.max(np.abs(weights), initial=0.0))
        if largest == 0.0:
            return 0.0
        with np.errstate(over="ignore", under="ignore"):
            norm = largest * float(np.sqrt(np.sum((weights / largest) ** 2)))
        return min(norm, float(np.finfo(np.float64).max))

    def variance_mean(self) -> float | None:
        """Over the named features; None for first-order learners and before the first feature."""
        variances = self._variances()
        used = np.zeros((1, 0)) if variances is None else variances[:, FIRST_NAMED:]
        return float(np.mean(used)) if used.size else None

    @property
    def nbytes(self) -> int:
        """Of the arrays that grow with the features."""
        scaler = [] if self.scaler is None else [self.scaler.count, self.scaler.mean, self.scaler.m2]
        return self._state.nbytes + sum(array.nbytes for array in scaler)

    @property
    def made_bytes(self) -> int:
        """What a prediction takes beside its row while it waits for its label: of several classes, all scores."""
        if self.classes is None or self.task != "multiclass":
            return 0
        return 8 * self.classes.known * (1 + self._has_variance)

    @property
    def _has_variance(self) -> bool:
        return self._learning.anatomy.prior is not None

    def _used(self, array: F64) -> F64:
        """The part of a state array that is in use."""
        return array[: self._n_vectors, : self.vocabulary.n_columns]

    def _by_name(self, array: F64) -> dict[str, Any]:
        names = self.vocabulary.exported()
        n_columns = self.vocabulary.n_columns
        if self.task != "multiclass":
            return dict(zip(names, array[0, FIRST_NAMED:n_columns].tolist(), strict=True))
        assert self.classes is not None
        return {
            str(text): dict(zip(names, array[k, FIRST_NAMED:n_columns].tolist(), strict=True))
            for k, text in enumerate(self.classes.texts)
        }

    def _of_bias(self, array: F64) -> float | dict[str, float]:
        if self.task != "multiclass":
            return float(array[0, BIAS])
        assert self.classes is not None
        return {str(text): float(array[k, BIAS]) for k, text in enumerate(self.classes.texts)}

    @property
    def _n_vectors(self) -> int:
        """Rows of the state: one for each known class, or one in all."""
        return self.classes.known if self.classes is not None and self.task == "multiclass" else 1

    def _arrays(self) -> Arrays:
        """With room for every feature that is known, every class, and one that a row names which is not learnt."""
        spare = 1 if self.task == "multiclass" else 0
        return self._state.use(self._n_vectors + spare, self.vocabulary.n_columns)
