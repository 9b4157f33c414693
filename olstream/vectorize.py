"""Features of examples -> a Batch: rows of columns and values (CSR), names learnt on the way.

The meaning is sequential: a row sees the names of the learnt rows before it, so it does not
matter how a stream is cut into batches. Entries of a row stand in the order of their columns,
and new names get theirs in sorted order: the order of keys in a message leaves no trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
from msgspec.structs import astuple
from numpy.typing import NDArray

from olstream.learners._jit import F64, I64, U8
from olstream.learners._state import BIAS, UNSEEN
from olstream.messages import SparseRow
from olstream.scale import Scaler
from olstream.shapes import FeaturesShape, FeaturesStruct, Kind
from olstream.vocabulary import Vocabulary, number_text

__all__ = ["BIAS", "UNSEEN", "Batch", "Scaler", "Vocabulary", "vectorize"]

Entry: TypeAlias = tuple[int, float, int]  # column, value, 1 where `scale` may touch the value
# Of a row: the names that it shares with others, the length of an array (of a sparse one: "sparse", length), neither.
Sparse: TypeAlias = tuple[Literal["sparse"], int]
Form: TypeAlias = FeaturesShape | int | Sparse | None

KnownT = TypeVar("KnownT")

# With fewer rows of one form in a row, arrays cost more than they save.
_RUN_MIN: Final = 8
_FORMS_MAX: Final = 64  # remembered
_VALUE_MAX: Final = float(np.finfo(np.float64).max)


class Batch(NamedTuple):
    """Rows in CSR: row i is `indices[indptr[i]:indptr[i + 1]]` with `values`. `numeric`: 1 where `scale` may act."""

    indptr: I64  # (n + 1,)
    indices: I64
    values: F64
    numeric: U8


class _Known(NamedTuple):
    """Columns of a form all of whose numeric names are known; those of categories depend on the row."""

    columns: I64  # (k,), -1 for a category
    order: I64  # (k,) that sorts them
    coded: list[tuple[int, str]]  # position and name of each category


class _Block(NamedTuple):
    """Consecutive rows on their way into a batch."""

    sizes: I64
    indices: I64
    values: F64
    numeric: U8


def vectorize(vocabulary: Vocabulary, features: Sequence[Any], learnt: Sequence[bool] | NDArray[np.bool_]) -> Batch:
    """Rows for a learner. Names grow by rows that are `learnt`; in others, what is new stands under UNSEEN."""
    blocks: list[_Block] = []
    start = 0
    for form, run in _runs(features):
        blocks += _blocks(vocabulary, form, run, learnt[start : start + len(run)])
        start += len(run)
    joined = blocks[0] if len(blocks) == 1 else _joined(blocks)
    indptr = np.zeros(len(joined.sizes) + 1, np.int64)
    np.cumsum(joined.sizes, out=indptr[1:])
    return Batch(indptr, joined.indices, joined.values, joined.numeric)


def _blocks(
    vocabulary: Vocabulary, form: Form, run: Sequence[Any], learnt: Sequence[bool] | NDArray[np.bool_]
) -> Iterator[_Block]:
    """A run of rows of one form, as fast as its names allow."""
    if isinstance(form, tuple):
        yield from _sparse_blocks(vocabulary, form, run, learnt)
        return
    block = None
    if len(run) >= _RUN_MIN:
        block = _as_named_table(vocabulary, run) if form is None else _as_table(vocabulary, run, form)
    yield _one_by_one(vocabulary, run, learnt) if block is None else block


def _sparse_blocks(
    vocabulary: Vocabulary, form: Sparse, run: Sequence[SparseRow], learnt: Sequence[bool] | NDArray[np.bool_]
) -> Iterator[_Block]:
    """Sparse rows. The first that is learnt brings the names of all positions, as its array would."""
    start = 0
    columns = _columns_by_position(vocabulary, form)
    if columns is None:
        start = next((i + 1 for i, is_learnt in enumerate(learnt) if is_learnt), len(run))
        yield _one_by_one(vocabulary, run[:start], learnt[:start])
        columns = _columns_by_position(vocabulary, form)
    if columns is None:
        yield _one_by_one(vocabulary, run[start:], learnt[start:])
    elif start < len(run):
        yield _sparse_table(columns, run[start:], int(vocabulary.bias))


def _sparse_table(columns: I64, run: Sequence[SparseRow], first: int) -> _Block:
    sizes = np.fromiter((len(row.positions) for row in run), np.int64, len(run))
    rows, biases = np.arange(len(run)), first * len(run)
    row = np.concatenate([np.repeat(rows, first), np.repeat(rows, sizes)])
    indices = np.concatenate([np.full(biases, BIAS), *(columns[row.positions] for row in run)])
    values = np.concatenate([np.ones(biases), *(row.values for row in run)])
    order = np.lexsort((indices, row))
    return _Block(sizes + first, indices[order], values[order], (order >= biases).astype(np.uint8))


def _columns_by_position(vocabulary: Vocabulary, form: Sparse) -> I64 | None:
    """The column of each position, once all of them have one. Codes, and names past `names_max`, depend on the row."""
    remembered: I64 | None = vocabulary.remembered.get(form)
    if remembered is not None or vocabulary.category or form[1] > vocabulary.names_max:
        return remembered
    columns = [vocabulary.numbers.get(str(i), UNSEEN) for i in range(form[1])]
    if UNSEEN in columns:
        return None
    return _remember(vocabulary, form, np.array(columns, np.int64))


def _runs(features: Sequence[Any]) -> Iterator[tuple[Form, Sequence[Any]]]:
    """Consecutive rows of one form; mostly all of them are."""
    types = set(map(type, features))
    if len(types) == 1 and issubclass(types.pop(), FeaturesStruct):
        yield _form(features[0]), features
    else:
        yield from ((form, list(group)) for form, group in groupby(features, _form))


def _form(features: Any) -> Form:
    if isinstance(features, FeaturesStruct):
        shape: FeaturesShape = features.shape
        return shape
    if isinstance(features, SparseRow):
        return "sparse", features.size
    return None if isinstance(features, dict) else len(features)


def _joined(blocks: Sequence[_Block]) -> _Block:
    empty = _Block(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.uint8))
    return _Block(*(np.concatenate(arrays) for arrays in zip(empty, *blocks, strict=True)))


def _as_table(vocabulary: Vocabulary, run: Sequence[Any], form: FeaturesShape | int | None) -> _Block | None:
    """Rows of one form, all of whose names are known, without a loop over entries; None where one is not."""
    known = None if form is None else _known(vocabulary, form)
    if known is None:
        return None
    rows = run if isinstance(form, int) else _tuples(run, len(known.columns))
    if known.coded:
        return _mixed_table(vocabulary, list(rows), known)
    return _table(vocabulary, chain.from_iterable(rows), len(run), known)


def _table(vocabulary: Vocabulary, numbers: Iterable[float], n: int, known: _Known) -> _Block:
    """The numbers of n rows of one form, row by row; no text is among them: `fromiter` would read it as a number."""
    k, first = len(known.columns), int(vocabulary.bias)
    values = np.ones((n, first + k))
    values[:, first:] = np.fromiter(numbers, np.float64, n * k).reshape(n, k)[:, known.order]
    row = np.concatenate([np.full(first, BIAS), known.columns[known.order]])
    numeric = np.concatenate([np.zeros(first, np.uint8), np.ones(k, np.uint8)])
    return _Block(np.full(n, first + k), np.tile(row, n), values.ravel(), np.tile(numeric, n))


def _as_named_table(vocabulary: Vocabulary, run: Sequence[dict[str, Any]]) -> _Block | None:
    """Mappings of the same names in the same order to numbers; None where they are not, or a name is not known."""
    names = tuple(run[0])
    if any(tuple(features) != names for features in run):
        return None
    values = [value for features in run for value in features.values()]
    if not names or set(map(type, values)) != {float}:
        return None
    number: Kind = "number"
    known = _known(vocabulary, FeaturesShape(names, (number,) * len(names)))
    return None if known is None or known.coded else _table(vocabulary, values, len(run), known)


def _tuples(run: Sequence[FeaturesStruct], k: int) -> Iterable[tuple[Any, ...]]:
    """The values of each struct; what it has past the first k are no features."""
    structs: set[type[FeaturesStruct]] = set(map(type, run))
    if all(len(struct.__struct_fields__) == k for struct in structs):
        return map(astuple, run)
    return [astuple(features)[:k] for features in run]


def _mixed_table(vocabulary: Vocabulary, rows: Sequence[tuple[Any, ...]], known: _Known) -> _Block | None:
    """The same with categories among the features: they say 1 in a column of their own."""
    first = int(vocabulary.bias)
    shape = len(rows), first + len(known.columns)
    indices, values, numeric = np.full(shape, BIAS), np.ones(shape), np.zeros(shape, np.uint8)
    names = dict(known.coded)
    for position, column in enumerate(zip(*rows, strict=True)):
        if position not in names:
            indices[:, first + position] = known.columns[position]
            values[:, first + position] = column
            numeric[:, first + position] = 1
            continue
        table = vocabulary.categories.get(names[position], {})
        found = [table.get(_text(value)) for value in column]
        if None in found:
            return None
        indices[:, first + position] = found
    order = np.argsort(indices, axis=1, kind="stable")
    sizes = np.full(len(rows), shape[1])
    return _Block(sizes, *(np.take_along_axis(array, order, axis=1).ravel() for array in (indices, values, numeric)))


def _known(vocabulary: Vocabulary, form: FeaturesShape | int) -> _Known | None:
    """Once all of a form's numeric names are known it is remembered: their columns never change."""
    remembered: _Known | None = vocabulary.remembered.get(form)
    if remembered is not None:
        return remembered
    names = tuple(map(str, range(form))) if isinstance(form, int) else form.names
    kinds = ("number",) * form if isinstance(form, int) else form.kinds
    if vocabulary.text and any(
        kind == "text" and name in vocabulary.text for name, kind in zip(names, kinds, strict=True)
    ):
        return None  # a text has as many columns as words
    coded = [i for i, name in enumerate(names) if kinds[i] == "text" or name in vocabulary.category]
    columns = [-1 if i in coded else vocabulary.numbers.get(name, UNSEEN) for i, name in enumerate(names)]
    if UNSEEN in columns:
        return None
    array = np.array(columns, np.int64)
    return _remember(vocabulary, form, _Known(array, np.argsort(array), [(i, names[i]) for i in coded]))


def _remember(vocabulary: Vocabulary, form: Form, known: KnownT) -> KnownT:
    if len(vocabulary.remembered) >= _FORMS_MAX:
        vocabulary.remembered.clear()
    vocabulary.remembered[form] = known
    return known


def _one_by_one(vocabulary: Vocabulary, run: Sequence[Any], learnt: Sequence[bool] | NDArray[np.bool_]) -> _Block:
    rows = [_entries(vocabulary, features, bool(is_learnt)) for features, is_learnt in zip(run, learnt, strict=True)]
    flat = list(chain.from_iterable(rows))
    return _Block(
        np.fromiter(map(len, rows), np.int64, len(rows)),
        np.fromiter((column for column, _, _ in flat), np.int64, len(flat)),
        np.fromiter((value for _, value, _ in flat), np.float64, len(flat)),
        np.fromiter((numeric for _, _, numeric in flat), np.uint8, len(flat)),
    )


def _entries(vocabulary: Vocabulary, features: Any, is_learnt: bool) -> list[Entry]:
    """The entries of one row, sorted; among those under UNSEEN the value decides."""
    numbers, categories, category = vocabulary.numbers, vocabulary.categories, vocabulary.category
    told = vocabulary.text
    entries: list[Entry] = [(BIAS, 1.0, 0)] if vocabulary.bias else []
    unknown: list[tuple[str, str | None, float]] = []
    for name, value in _items(features, vocabulary, is_learnt):
        if told and name in told and isinstance(value, str):
            known = categories.get(name, {})
            for text, amount in told[name].values(value).items():
                column = known.get(text)
                if column is None:
                    unknown.append((name, text, amount))
                else:
                    entries.append((column, amount, 0))
        elif isinstance(value, str) or name in category:
            text = _text(value)
            texts = categories.get(name)
            column = None if texts is None else texts.get(text)
            if column is None:
                unknown.append((name, text, 1.0))
            else:
                entries.append((column, 1.0, 0))
        else:
            column = numbers.get(name)
            if column is None:
                unknown.append((name, None, value))
            else:
                entries.append((column, value, 1))
    if unknown:
        entries += _unknown(vocabulary, unknown, is_learnt)
    entries.sort()
    return entries


def _unknown(vocabulary: Vocabulary, unknown: list[tuple[str, str | None, float]], is_learnt: bool) -> list[Entry]:
    """Entries of names without a column, which they get if the row is learnt. Names of one bucket are summed."""
    entries: list[Entry] = []
    in_bucket: dict[int, Entry] = {}
    resolve = vocabulary.learn if is_learnt else vocabulary.find
    for name, text, value in sorted(unknown, key=itemgetter(0)):
        column, bucket = resolve(name, text)
        entry = column, value, int(text is None)
        if bucket < 0:
            entries.append(entry)
        elif bucket not in in_bucket:
            in_bucket[bucket] = entry
        else:
            _, sum_before, numeric = in_bucket[bucket]
            total = max(-_VALUE_MAX, min(_VALUE_MAX, sum_before + value))
            in_bucket[bucket] = column, total, numeric & entry[2]
    return [*entries, *in_bucket.values()]


def _items(features: Any, vocabulary: Vocabulary, is_learnt: bool) -> Iterable[tuple[str, Any]]:
    if isinstance(features, FeaturesStruct):
        return features.shape.plain(features).items()
    if isinstance(features, dict):
        return features.items()
    if isinstance(features, SparseRow):
        # A 0 says nothing but its name, and is a code where numbers are codes
        if not vocabulary.category and not (is_learnt and features.size <= vocabulary.names_max):
            return zip(map(str, features.positions.tolist()), features.values.tolist(), strict=True)
        features = features.dense()
    return ((str(i), value) for i, value in enumerate(features))


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else number_text(float(value))
