"""Regret: how much a learner lost by not knowing its last rows beforehand.

The best fixed linear model of the last `window` labelled rows is found by `olstream.svm`, in a thread of its own, and
both are measured alike over these rows:

    two classes       max(0, 1 - y f)                     f  the score before the update
    several           max(0, 1 - (f_y - max_{r≠y} f_r))   the fixed model: one against the rest
    regression        max(0, |f - y| - ε)                 ε  the learner's own

    regret = the learner's mean loss - the fixed model's, by importance; negative where no fixed model is as good

It is a measure only, and no part of a model's state: after a start it is not known until `every` rows have come.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from threading import Lock, Thread
from typing import Final, NamedTuple

import numpy as np

from olstream.alm import svm
from olstream.config import HindsightConfig
from olstream.learners._jit import F64, I64
from olstream.learners._window import Matrix
from olstream.rows import Rows

TOL: Final = 1e-4
ITERATIONS_MAX: Final = 50
CLASSES_MAX: Final = 50  # for more, one model of each class would take too long

log = logging.getLogger(__name__)


class Found(NamedTuple):
    """Mean losses over the window."""

    loss: float  # of the fixed model
    regret: float
    rows: int  # of the window
    at: int  # its last row, among those that came


class _Piece(NamedTuple):
    """Rows of the window: CSR, targets (+1, -1, a class or a value), importance, and the learner's own losses."""

    sizes: I64
    indices: I64
    values: F64
    target: F64
    weight: F64
    loss: F64


class Hindsight:
    """The window of one learner, and what was found of it last."""

    def __init__(self, config: HindsightConfig, task: str, eps: float) -> None:
        self._config, self._task, self._eps = config, task, eps
        self._pieces: deque[_Piece] = deque()
        self._held = self._since = 0  # rows: in the pieces, and come since a model was looked for
        self._wanted: tuple[list[_Piece], int] | None = None  # the window that a model is to be found of next
        self._thread: Thread | None = None
        self._lock = Lock()
        self._total = 0  # rows so far
        self.found: Found | None = None

    def add(self, rows: Rows) -> None:
        """What the learner made of a batch. Once in `every` rows a thread takes the window, when it has the time."""
        piece = self._piece(rows)
        n = piece.target.size
        if not n:
            return
        self._pieces.append(piece)
        self._held += n
        self._since += n
        self._total += n
        while self._held - self._pieces[0].target.size >= self._config.window:
            self._held -= self._pieces.popleft().target.size
        if self._since >= self._config.every:
            self._since = 0
            with self._lock:
                self._wanted = list(self._pieces), self._total
                if self._thread is None:
                    self._thread = Thread(target=self._find, name="hindsight", daemon=True)
                    self._thread.start()

    @property
    def ago(self) -> int | None:
        """Rows that came since the window of which something was found."""
        return None if self.found is None else self._total - self.found.at

    def warm_up(self) -> None:
        """Compile the solver: in the thread that would hold the loop up."""
        rng = np.random.default_rng(1)
        x, y = rng.normal(size=(50, 3)), rng.choice([-1.0, 1.0], 50)
        svm(x, y, eps=self._eps if self._task == "regression" else None, tol=TOL)

    def wait(self) -> None:
        """Until what was begun is found."""
        while (thread := self._thread) is not None:
            thread.join()

    def _piece(self, rows: Rows) -> _Piece:
        taken = rows.measured != 0
        if self._task != "regression":
            taken &= rows.truth >= 0
        accepted = np.ones(rows.n, np.bool_)
        accepted[list(rows.rejects)] = False
        of_batch = taken[accepted]  # the batch has the accepted rows alone
        sizes = np.diff(rows.batch.indptr)
        kept = np.repeat(of_batch, sizes)
        if self._task == "regression":
            target = rows.target[taken]
            loss = np.abs(rows.score[taken] - target) - self._eps
        else:
            target, margin = rows.truth[taken].astype(np.float64), self._margins(rows)[taken]
            loss = np.where(np.isnan(margin), rows.loss[taken], 1.0 - margin)
        indices, values = rows.batch.indices[kept], rows.batch.values[kept]
        return _Piece(sizes[of_batch], indices, values, target, rows.weight[taken], np.maximum(0.0, loss))

    def _margins(self, rows: Rows) -> F64:
        """Of the predictions: where the label came late, of the one that was made before, nan if that is not known."""
        if self._task == "binary":
            before = np.where(rows.truth > 0, rows.score, -rows.score)
        else:
            before = np.full(rows.n, np.nan)
        return np.where(rows.entries < 0, before, rows.margin)

    def _find(self) -> None:
        while True:
            with self._lock:
                wanted, self._wanted = self._wanted, None
                if wanted is None:
                    self._thread = None
                    return
            try:
                self.found = self._best(_joined(wanted[0], self._config.window), wanted[1])
            except ValueError as error:  # numbers too far apart for doubles
                log.warning("no regret: %s", error, extra={"every_s": 600.0})

    def _best(self, rows: _Piece, at: int) -> Found | None:
        matrix = Matrix(np.append(0, np.cumsum(rows.sizes)), rows.indices, rows.values)
        if self._task == "regression":
            fixed = np.abs(self._scores(matrix, rows.target, rows.weight, self._eps) - rows.target) - self._eps
        elif self._task == "binary":
            signs = np.where(rows.target > 0, 1.0, -1.0)
            fixed = 1.0 - signs * self._scores(matrix, signs, rows.weight)
        else:
            classes = np.unique(rows.target)
            if not 2 <= classes.size <= CLASSES_MAX:
                return None
            signs = np.where(rows.target == classes[:, np.newaxis], 1.0, -1.0)
            scores = np.array([self._scores(matrix, each, rows.weight) for each in signs])
            own = np.sum(np.where(signs > 0, scores, 0.0), axis=0)
            fixed = 1.0 - (own - np.max(np.where(signs > 0, -math.inf, scores), axis=0))
        loss = float(np.average(np.maximum(0.0, fixed), weights=rows.weight))
        regret = float(np.average(rows.loss, weights=rows.weight)) - loss
        return Found(loss, regret, rows.target.size, at) if math.isfinite(loss) and math.isfinite(regret) else None

    def _scores(self, matrix: Matrix, target: F64, weight: F64, eps: float | None = None) -> F64:
        """Of the fixed model for each row."""
        w = svm(matrix, target, C=self._config.C, eps=eps, weight=weight, tol=TOL, iterations_max=ITERATIONS_MAX).w
        parts = np.append(matrix.data * w[matrix.indices], 0.0)
        return np.where(np.diff(matrix.indptr) > 0, np.add.reduceat(parts, matrix.indptr[:-1]), 0.0)


def _joined(pieces: list[_Piece], window: int) -> _Piece:
    """The last rows of them, as one piece."""
    sizes, indices, values, target, weight, loss = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    first = max(0, target.size - window)
    start = int(np.sum(sizes[:first]))
    return _Piece(sizes[first:], indices[start:], values[start:], target[first:], weight[first:], loss[first:])
