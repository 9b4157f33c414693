"""Rows of columns and values: sequential in meaning, whatever the batches and the reader."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from olstream.config import FieldsConfig
from olstream.decode import Decoder, plain
from olstream.messages import Example
from olstream.vectorize import BIAS, UNSEEN, Batch, Vocabulary, vectorize

NUMBERS = st.floats(-1e6, 1e6).map(lambda value: value + 0.0)
ROWS = st.dictionaries(st.sampled_from("abcdefgh"), NUMBERS | st.sampled_from(["red", "blue", "1"]), max_size=6)
STREAMS = st.lists(st.tuples(ROWS, st.booleans()), max_size=40)


def vocabulary(
    names_max: int = 1000, buckets: int = 4, category: tuple[str, ...] = (), bias: bool = True
) -> Vocabulary:
    return Vocabulary(names_max, buckets, category, bias)


def rows_of(batch: Batch) -> list[list[tuple[int, float, int]]]:
    entries = list(zip(batch.indices.tolist(), batch.values.tolist(), batch.numeric.tolist(), strict=True))
    return [entries[start:end] for start, end in zip(batch.indptr[:-1], batch.indptr[1:], strict=True)]


def named(batch: Batch, words: Vocabulary) -> list[dict[str, float]]:
    names = ["bias", "unseen", *words.exported()]
    return [{names[column]: value for column, value, _ in row} for row in rows_of(batch)]


def test_a_row_is_bias_numbers_and_categories_by_column() -> None:
    words = vocabulary()

    batch = vectorize(
        words, [{"x": 2.0, "color": "red", "flag": 1.0}, {"flag": 0.0, "x": 3.0, "color": "blue"}], [True, True]
    )

    assert named(batch, words) == [
        {"bias": 1.0, "color=red": 1.0, "flag": 1.0, "x": 2.0},
        {"bias": 1.0, "flag": 0.0, "x": 3.0, "color=blue": 1.0},
    ]
    assert [[numeric for _, _, numeric in row] for row in rows_of(batch)] == [[0, 0, 1, 1], [0, 1, 1, 0]]


def test_only_learnt_rows_bring_names() -> None:
    words = vocabulary(bias=False)

    batch = vectorize(words, [{"x": 2.0, "y": 1.0}, {"x": 3.0}, {"y": 4.0, "x": 5.0}], [False, True, False])

    assert rows_of(batch) == [[(UNSEEN, 1.0, 1), (UNSEEN, 2.0, 1)], [(2, 3.0, 1)], [(UNSEEN, 4.0, 1), (2, 5.0, 1)]]
    assert words.exported() == ["x"]


@settings(derandomize=True, deadline=None)
@given(STREAMS, st.lists(st.integers(1, 9), min_size=1), st.sampled_from([0, 3, 100]))
def test_how_rows_are_cut_into_batches_changes_nothing(
    stream: list[tuple[dict[str, Any], bool]], sizes: list[int], names_max: int
) -> None:
    whole, parts = vocabulary(names_max), vocabulary(names_max)
    rows, learnt = [row for row, _ in stream], [flag for _, flag in stream]

    at_once = rows_of(vectorize(whole, rows, learnt))
    piecewise: list[list[tuple[int, float, int]]] = []
    while len(piecewise) < len(rows):
        start, size = len(piecewise), sizes[len(piecewise) % len(sizes)]
        piecewise += rows_of(vectorize(parts, rows[start : start + size], learnt[start : start + size]))

    assert at_once == piecewise
    assert whole.exported() == parts.exported()


@given(STREAMS, st.randoms(use_true_random=False), st.sampled_from([0, 3, 100]))
def test_the_order_of_keys_leaves_no_trace(
    stream: list[tuple[dict[str, Any], bool]], rng: random.Random, names_max: int
) -> None:
    one, other = vocabulary(names_max), vocabulary(names_max)
    rows, learnt = [row for row, _ in stream], [flag for _, flag in stream]
    shuffled = [dict(rng.sample(list(row.items()), len(row))) for row in rows]

    assert rows_of(vectorize(one, rows, learnt)) == rows_of(vectorize(other, shuffled, learnt))
    assert one.exported() == other.exported()


def test_codes_are_categories_like_their_text() -> None:
    words = vocabulary(category=("season",), bias=False)

    batch = vectorize(words, [{"season": 1.0}, {"season": "1"}, {"season": 2.5}], [True] * 3)

    assert named(batch, words) == [{"season=1": 1.0}, {"season=1": 1.0}, {"season=2.5": 1.0}]
    assert batch.numeric.tolist() == [0, 0, 0]


@pytest.mark.parametrize("is_learnt", [True, False])
def test_names_that_share_a_bucket_are_summed(is_learnt: bool) -> None:
    words = vocabulary(names_max=0, buckets=1, bias=False)

    batch = vectorize(words, [{"a": 1.0, "b": 2.0, "c": "red"}], [is_learnt])

    assert rows_of(batch) == [[(2 if is_learnt else UNSEEN, 4.0, 0)]]


def test_a_sum_in_a_bucket_stays_finite() -> None:
    batch = vectorize(vocabulary(names_max=0, buckets=1), [{"a": 1.7e308, "b": 1.7e308}], [True])

    assert np.isfinite(batch.values).all()


def test_an_array_is_named_by_position() -> None:
    words = vocabulary()
    rows = [[0.5, 1.5, 2.5]] * 20

    batch = vectorize(words, rows, [True] * 20)

    assert words.exported() == ["0", "1", "2"]
    assert named(batch, words) == [{"bias": 1.0, "0": 0.5, "1": 1.5, "2": 2.5}] * 20


def test_no_rows_are_an_empty_batch() -> None:
    batch = vectorize(vocabulary(), [], [])

    assert (batch.indptr.tolist(), batch.indices.size, batch.values.size) == ([0], 0, 0)


@settings(derandomize=True, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([(), ("a", "n")]), st.booleans(), st.booleans())
def test_structs_of_the_fast_reader_give_the_rows_that_plain_features_give(
    seed: int, category: tuple[str, ...], bias: bool, whole: bool
) -> None:
    rng = random.Random(seed)
    decoder = Decoder(FieldsConfig(features="." if whole else "features"), (), 10_000)
    stretches = [rng.choice([True, False, None]) for _ in range(10)]
    examples: list[Any] = decoder.decode([made(rng, whole, colored) for colored in stretches for _ in range(30)])
    learnt = [rng.random() < 0.8 for _ in examples]
    fast, exact = vocabulary(12, 2, category, bias), vocabulary(12, 2, category, bias)

    structs, dicts = [], []
    for start in range(0, len(examples), 60):
        part: list[Example] = examples[start : start + 60]
        flags = learnt[start : start + 60]
        structs += rows_of(vectorize(fast, [example.features for example in part], flags))
        dicts += rows_of(vectorize(exact, [plain(example).features for example in part], flags))

    assert structs == dicts
    assert fast.exported() == exact.exported()


def made(rng: random.Random, whole: bool, colored: bool | None) -> bytes:
    """A message with or without a color, None = either way: stretches of one form, and mixed ones."""
    features: dict[str, Any] = {"n": rng.randrange(3), "x": rng.gauss(0, 1), "a": rng.random() < 0.5}
    if colored or (colored is None and rng.random() < 0.5):
        features["color"] = rng.choice(["red", "green", "blue"]) if rng.random() < 0.99 else f"shade {rng.random()}"
    if rng.random() < 0.02:
        features[f"new{rng.randrange(100)}"] = 1.5
    label = {"label": rng.randrange(2)} if rng.random() < 0.9 else {}
    return json.dumps({**label, **features} if whole else {**label, "features": features}).encode()


def test_the_bias_is_a_column_of_its_own() -> None:
    with_bias = vectorize(vocabulary(), [{"x": 2.0}], [True])
    without = vectorize(vocabulary(bias=False), [{"x": 2.0}], [True])

    assert rows_of(with_bias) == [[(BIAS, 1.0, 0), (2, 2.0, 1)]]
    assert rows_of(without) == [[(2, 2.0, 1)]]
