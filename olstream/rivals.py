"""A champion and a shadow on the same records: their rows brought together, for `Versus`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from olstream.model import Model
from olstream.rows import Rows


class Piece(Protocol):
    """What a model made of some records of a chunk."""

    model: Model
    rows: Rows
    positions: Sequence[int]


def compare(champion: str, theirs: Sequence[Piece], mine: Sequence[Piece]) -> None:
    """Count for the shadow's model what both have measured, in the order of the records."""
    if not mine or not theirs or not any(piece.rows.measured.any() for piece in mine):
        return
    if (mine[0].model.classes is None) != (theirs[0].model.classes is None):
        return  # a number and a class: a message can name a learner that its shadows are no match for
    positions = _joined([np.array(piece.positions) for piece in theirs])
    own = _joined([np.array(piece.positions) for piece in mine])
    a, b = _columns(theirs), _columns(mine)
    if not np.array_equal(positions, own):
        _, of_theirs, of_mine = np.intersect1d(positions, own, assume_unique=True, return_indices=True)
        a, b = [column[of_theirs] for column in a], [column[of_mine] for column in b]
    measured = a[0] & b[0]
    mine[0].model.against(champion).add(measured, b[1], b[2], a[1], a[2], b[3], a[3])


def _columns(pieces: Sequence[Piece]) -> list[NDArray[Any]]:
    """measured, correct, loss, absolute error"""
    rows = [piece.rows for piece in pieces]
    return [
        _joined([one.measured for one in rows]),
        _joined([one.correct for one in rows]),
        _joined([one.loss for one in rows]),
        _joined([one.distance for one in rows]),
    ]


def _joined(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return columns[0] if len(columns) == 1 else np.concatenate(columns)
