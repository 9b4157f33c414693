"""What a Python caller gives -> Examples: mappings, sequences, numpy and SciPy rows, plain labels.

The rules are those of messages, with one difference: numbers that are not finite are no error.
They are left out, and the row is marked, so that it is scored without them and not learnt.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NoReturn, TypeAlias

import numpy as np

from olstream.messages import Example, Reason, SparseRow

Features: TypeAlias = dict[str, float | str] | list[float] | SparseRow


def example(features: Any, label: Any, weight: Any, regression: bool = False) -> tuple[Example, bool]:
    """One row, and whether all its numbers were finite; ValueError names the reason class."""
    taken, features_finite = _features(features)
    y, label_finite = _label(label, regression)
    return Example(features=taken, label=y, weight=_weight(weight)), features_finite and label_finite


def examples(
    rows: Any, labels: Iterable[Any], weights: Iterable[Any] | None, regression: bool = False
) -> tuple[list[Example], list[bool]]:
    """Many rows: a list of mappings or sequences, a 2-D array, or a SciPy matrix, best in rows (CSR)."""
    row_list = _rows(rows)
    label_list = _one_each("label", labels, len(row_list), Reason.BAD_LABEL)
    weight_list = [1.0] * len(row_list)
    if weights is not None:
        weight_list = _one_each("weight", weights, len(row_list), Reason.BAD_WEIGHT)
    taken = []
    for i, row in enumerate(zip(row_list, label_list, weight_list, strict=True)):
        try:
            taken.append(example(*row, regression))
        except ValueError as error:
            raise ValueError(f"{error} (row {i})") from None
    return [row for row, _ in taken], [finite for _, finite in taken]


def _one_each(what: str, given: Any, n: int, reason: Reason) -> list[Any]:
    if not isinstance(given, Iterable) or isinstance(given, Mapping | str | bytes):
        _refuse(reason, f"many rows take a list with a {what} each, not {type(given).__name__}")
    one_each = list(given)
    if len(one_each) != n:
        _refuse(reason, f"there are {n} rows and {len(one_each)} {what}s: give a {what} for each row")
    return one_each


def _rows(rows: Any) -> list[Any]:
    is_sparse = _is_sparse(rows)
    if is_sparse or isinstance(rows, np.ndarray):
        if rows.ndim != 2:
            _refuse(Reason.BAD_FEATURES, f"rows are an array of {rows.ndim} dimensions, 2 are needed")
        return _sparse_rows(rows) if is_sparse else list(rows)
    if not isinstance(rows, Iterable) or isinstance(rows, Mapping | str | bytes):
        what = "a list of mappings or arrays, a 2-D array or a SciPy matrix"
        _refuse(Reason.BAD_FEATURES, f"many rows are {what}, not {type(rows).__name__}")
    return list(rows)


def _is_sparse(rows: Any) -> bool:
    """Whether it is one of SciPy's matrices or arrays, which need not be installed."""
    return hasattr(rows, "tocsr")


def _sparse_rows(matrix: Any) -> list[SparseRow]:
    matrix = matrix.tocsr()
    size = int(matrix.shape[-1])
    if not size:
        _refuse(Reason.BAD_FEATURES, "features are an empty array")
    if matrix.dtype.kind not in "buif":
        _refuse(Reason.BAD_FEATURES, f"features are {matrix.dtype}, and not numbers that a double can hold")
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    with np.errstate(over="ignore"):
        indices, values = matrix.indices.astype(np.int64), matrix.data.astype(np.float64)
    bounds = pairwise(matrix.indptr.tolist())
    return [SparseRow(size, indices[start:end], values[start:end]) for start, end in bounds]


def _features(features: Any) -> tuple[Features, bool]:
    if isinstance(features, SparseRow):
        return _sparse(features)
    if _is_sparse(features):
        rows = _sparse_rows(features)
        if len(rows) != 1:
            _refuse(Reason.BAD_FEATURES, f"a matrix of {len(rows)} rows, 1 is needed")
        return _sparse(rows[0])
    if isinstance(features, Mapping):
        return _object(features)
    if isinstance(features, np.ndarray):
        if features.ndim != 1:
            _refuse(Reason.BAD_FEATURES, f"a row is an array of {features.ndim} dimensions, 1 is needed")
        features = features.tolist()
    if isinstance(features, str | bytes) or not isinstance(features, Sequence):
        _refuse(Reason.BAD_FEATURES, f"features are a mapping or a sequence of numbers, not {type(features).__name__}")
    return _array(features)


def _object(features: Mapping[Any, Any]) -> tuple[dict[str, float | str], bool]:
    taken: dict[str, float | str] = {}
    finite = True
    for key, given in features.items():
        if not isinstance(key, str) or not key:
            _refuse(Reason.BAD_FEATURES, f"a feature's name is text that is not empty, not {key!r}")
        if given is None:
            continue
        name = unicodedata.normalize("NFC", _text(key))
        value = _text(given) if isinstance(given, str) else _double(given, name)
        if name in taken:
            _refuse(Reason.DUPLICATE_KEY, f"feature {name!r} twice")
        if isinstance(value, str) or math.isfinite(value):
            taken[name] = value
        else:
            finite = False
    return taken, finite


def _array(features: Sequence[Any]) -> tuple[list[float], bool]:
    if not features:
        _refuse(Reason.BAD_FEATURES, "features are an empty array")
    plain = set(map(type, features)) == {float}
    values = list(features) if plain else [_double(value, str(i)) for i, value in enumerate(features)]
    finite = all(map(math.isfinite, values))
    return (values if finite else [value if math.isfinite(value) else 0.0 for value in values]), finite


def _sparse(row: SparseRow) -> tuple[SparseRow, bool]:
    finite = np.isfinite(row.values)
    if finite.all():
        return row, True
    return SparseRow(row.size, row.positions[finite], row.values[finite]), False


def _double(value: Any, name: str) -> float:
    """inf for what no double holds."""
    if isinstance(value, int | float | np.integer | np.floating | np.bool_):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    _refuse(Reason.BAD_FEATURES, f"feature {name!r} is {type(value).__name__}, and neither number, boolean nor text")


def _text(text: str) -> str:
    """Plain text that a message could carry."""
    try:
        text.encode()
    except UnicodeEncodeError:
        _refuse(Reason.BAD_ENCODING, f"{text!r} cannot be written as UTF-8")
    return str(text)


def settings(given: Any) -> Any:
    """As a file would have them: lists and mappings of plain values, whatever NumPy made of them."""
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if isinstance(given, Mapping):
        return {_plain(key): settings(value) for key, value in given.items()}
    if isinstance(given, Sequence) and not isinstance(given, str | bytes):
        return [settings(value) for value in given]
    return _plain(given)


def _plain(value: Any) -> Any:
    if isinstance(value, np.floating):  # a long double has no plain form of its own
        return float(value)
    return value.item() if isinstance(value, np.generic) else value


def _label(label: Any, regression: bool) -> tuple[Any, bool]:
    """A plain label; a number that is not finite is none, and marks the row."""
    label = _plain(label)
    if regression and isinstance(label, int) and not isinstance(label, bool):
        label = _double(label, "label")
    if isinstance(label, float) and not math.isfinite(label):
        return None, False
    if not isinstance(label, str | int | float | None):
        _refuse(Reason.BAD_LABEL, f"a label is text, a number or a boolean, not {type(label).__name__}")
    return label, True


def _weight(weight: Any) -> float:
    if not isinstance(weight, int | float | np.integer | np.floating) or isinstance(weight, bool):
        _refuse(Reason.BAD_WEIGHT, f"weight is {type(weight).__name__}, and not a number")
    number = _double(weight, "weight")
    if not 0.0 <= number < math.inf:
        _refuse(Reason.BAD_WEIGHT, f"weight is {number!r}, and not a finite number of 0 or more")
    return number


def _refuse(reason: Reason, detail: str) -> NoReturn:
    raise ValueError(f"{reason}: {detail}")
