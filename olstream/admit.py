"""Which rows of a batch a model takes, and what each is to it: scored, measured, learnt.

What depends on the learner's state is refused here: a label that is no class of it, features in
another form than its own. A row that is learnt makes its class known to the rows after it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from olstream.classes import Classes
from olstream.learners._jit import F64, I64
from olstream.messages import Example, Label, Reason, Reject, SparseRow, label_text
from olstream.vocabulary import Form

Bools: TypeAlias = NDArray[np.bool_]

ARRAYS: Final = frozenset({list, SparseRow})
LARGEST: Final = float(np.finfo(np.float64).max)


@dataclass(slots=True)
class Admitted:
    """The accepted rows in order, in columns."""

    positions: list[int]  # of the accepted rows
    rejects: dict[int, Reject]
    features: list[Any]
    target: F64  # as kernels take it: +1 or -1, a class index or a value; nan without a label
    truth: I64  # index of the class where it is a known one, else -1
    known: I64  # see Classes.known_code, before the row
    weight: F64  # importance, class weight included
    form: Form


class Admission:
    """The door of one model."""

    def __init__(self, classes: Classes | None, class_weights: Mapping[str, float]) -> None:
        self.classes = classes
        self.class_weights = class_weights

    def refusal(self, label: Label) -> Reject | None:
        """Why a row with this label would be refused, if it would."""
        found = _value(label) if self.classes is None else self.classes.find(label)
        return found if isinstance(found, Reject) else None

    def admit(self, examples: Sequence[Example], form: Form, learns: bool, barred: Bools | None) -> Admitted:
        """`learns`: rows with a label and a weight are going to be learnt, but for the barred ones."""
        features = [example.features for example in examples]
        labels = [example.label for example in examples]
        weights = np.array([example.weight for example in examples], np.float64)
        if _all_of_form(features, form):
            admitted = self._at_once(features, labels, weights, form)
            if admitted is not None:
                return admitted
        return self._one_by_one(features, labels, weights, form, learns, barred)

    def _at_once(self, features: list[Any], labels: list[Any], weights: F64, form: Form) -> Admitted | None:
        """The common case: nothing new and nothing wrong. None where there is."""
        n = len(features)
        if self.classes is None:
            if not set(map(type, labels)) <= _NUMBERS:
                return None
            try:
                target = np.array(labels, np.float64)
            except OverflowError:
                return None
            truth, known = np.full(n, -1), np.zeros(n, np.int64)
        else:
            indices = self.classes.find_many(labels)
            if indices is None:
                return None
            truth = np.array(indices, np.int64)
            target = self._targets(truth)
            known = np.full(n, self.classes.known_code)
            if self.class_weights:
                factors = [self.class_weights.get(str(text), 1.0) for text in self.classes.texts]
                with np.errstate(over="ignore"):
                    weights = np.minimum(weights * np.array([*factors, 1.0])[truth], LARGEST)
        return Admitted(list(range(n)), {}, features, target, truth, known, weights, form)

    def _targets(self, indices: I64) -> F64:
        assert self.classes is not None
        targets = indices.astype(np.float64)
        targets[indices < 0] = math.nan
        return 2.0 * targets - 1.0 if self.classes.binary else targets

    def _one_by_one(
        self, features: list[Any], labels: list[Any], weights: F64, form: Form, learns: bool, barred: Bools | None
    ) -> Admitted:
        positions: list[int] = []
        rejects: dict[int, Reject] = {}
        rows: list[tuple[float, int, int, float]] = []
        for i, (given, label, weight) in enumerate(zip(features, labels, weights.tolist(), strict=True)):
            reject = _of_form(given, form)
            is_barred = barred is not None and bool(barred[i])
            row = reject or self._row(label, weight, learns and not is_barred)
            if isinstance(row, Reject):
                rejects[i] = row
                continue
            if form is None and learns and weight > 0.0 and not is_barred:
                form = form_of(given)
            positions.append(i)
            rows.append(row)
        target, truth, known, weight_column = zip(*rows, strict=True) if rows else ((), (), (), ())
        return Admitted(
            positions, rejects, [features[i] for i in positions], np.array(target, np.float64),
            np.array(truth, np.int64), np.array(known, np.int64), np.array(weight_column, np.float64), form,
        )  # fmt: skip

    def _row(self, label: Any, weight: float, learns: bool) -> tuple[float, int, int, float] | Reject:
        """(target, truth, known, weight) of one row; its class becomes known if it is learnt."""
        if self.classes is None:
            value = _value(label)
            return value if isinstance(value, Reject) else (value, -1, 0, weight)
        known = self.classes.known_code
        if label is None:
            return math.nan, -1, known, weight
        index = self.classes.find(label)
        if isinstance(index, Reject):
            return index
        if self.class_weights:
            weight = min(weight * self.class_weights.get(label_text(label), 1.0), LARGEST)
        if learns and weight > 0.0:
            self.classes.learn(label)
        return 2.0 * index - 1.0 if self.classes.binary else float(index), self._truth(index), known, weight

    def _truth(self, index: int) -> int:
        """The index, where a class is known there."""
        assert self.classes is not None
        return index if self.classes.is_known(index) else -1


_NUMBERS = {int, float, type(None)}


def _value(label: Any) -> float | Reject:
    if label is None:
        return math.nan
    if isinstance(label, bool) or not isinstance(label, int | float):
        return Reject(Reason.BAD_LABEL, "the label of a regression is a number")
    try:
        return float(label)
    except OverflowError:
        return Reject(Reason.NOT_FINITE, "the label is outside the range of a double")


def form_of(features: Any) -> Form:
    return ("array", len(features)) if type(features) in ARRAYS else "object"


def _all_of_form(features: list[Any], form: Form) -> bool:
    kinds = set(map(type, features))
    if form == "object":
        return ARRAYS.isdisjoint(kinds)
    return isinstance(form, tuple) and kinds <= ARRAYS and set(map(len, features)) == {form[1]}


def _of_form(features: Any, form: Form) -> Reject | None:
    given = form_of(features)
    if form is None or given == form:
        return None
    return Reject(Reason.DIMENSION, f"features are {_shown(given)}, and this learner takes {_shown(form)}")


def _shown(form: Form) -> str:
    return f"an array of {form[1]} numbers" if isinstance(form, tuple) else "an object"
