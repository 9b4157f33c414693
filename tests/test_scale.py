"""Scaling against the plain meaning: mean and variance of all values so far, this one included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from olstream.scale import Scaler
from olstream.vectorize import UNSEEN, Batch, Vocabulary, vectorize

VALUES = st.sampled_from([0.0, 1.0, 2.0]) | st.integers(-8000, 8000).map(lambda eighths: eighths / 8)
STREAMS = st.lists(st.tuples(st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3), st.booleans()), max_size=30)


def scaled(
    rows: list[dict[str, float]], learnt: list[bool], words: Vocabulary, scaler: Scaler
) -> tuple[Batch, list[bool]]:
    batch = vectorize(words, rows, learnt)
    unstable = scaler.standardise(batch, np.array(learnt, np.bool_), words.n_columns)
    return batch, unstable.tolist()


def reference(rows: list[dict[str, float]], learnt: list[bool]) -> list[dict[str, float]]:
    """Every statistic from scratch for every value."""
    history: dict[str, list[float]] = {}
    out = []
    for row, is_learnt in zip(rows, learnt, strict=True):
        result = {}
        for name, value in row.items():
            values = [*history.get(name, []), value]
            if set(values) <= {0.0, 1.0}:
                result[name] = value
            else:
                deviation = float(np.std(values))
                result[name] = (value - float(np.mean(values))) / deviation if deviation > 1e-9 else 0.0
            if is_learnt:
                history[name] = values
        out.append(result)
    return out


@settings(derandomize=True, deadline=None)
@given(STREAMS)
def test_values_are_standardised_by_what_came_so_far(stream: list[tuple[dict[str, float], bool]]) -> None:
    rows, learnt = [row for row, _ in stream], [flag for _, flag in stream]
    words = Vocabulary(100, 0, (), bias=False)

    batch, unstable = scaled(rows, learnt, words, Scaler(0))

    got = [sorted(batch.values[a:b]) for a, b in zip(batch.indptr[:-1], batch.indptr[1:], strict=True)]
    expected = [sorted(row.values()) for row in reference(rows, learnt)]
    assert not any(unstable)
    for mine, plain in zip(got, expected, strict=True):
        assert mine == pytest.approx(plain, rel=1e-6, abs=1e-6)


@settings(derandomize=True, deadline=None)
@given(STREAMS, st.integers(1, 7))
def test_how_rows_are_cut_into_batches_changes_no_bit(stream: list[tuple[dict[str, float], bool]], size: int) -> None:
    rows, learnt = [row for row, _ in stream], [flag for _, flag in stream]
    whole, parts = Vocabulary(100, 0), Vocabulary(100, 0)
    one, other = Scaler(0), Scaler(0)

    at_once = scaled(rows, learnt, whole, one)[0].values
    pieces = [
        scaled(rows[i : i + size], learnt[i : i + size], parts, other)[0].values for i in range(0, len(rows), size)
    ]

    assert at_once.tobytes() == b"".join(piece.tobytes() for piece in pieces)
    n = whole.n_columns
    assert {k: a.tobytes() for k, a in one.state(n).items()} == {k: a.tobytes() for k, a in other.state(n).items()}


def test_predicting_changes_no_statistic() -> None:
    words, scaler = Vocabulary(100, 0), Scaler(0)
    scaled([{"x": 1.0}, {"x": 5.0}], [True, True], words, scaler)
    before = scaler.state(words.n_columns)

    scaled([{"x": 1e9, "new": 7.0}], [False], words, scaler)

    after = scaler.state(words.n_columns)
    assert all((before[name] == after[name]).all() for name in before)


def test_what_was_only_ever_zero_or_one_passes_unchanged_until_it_is_something_else() -> None:
    words, scaler = Vocabulary(100, 0, (), bias=False), Scaler(0)

    batch, _ = scaled([{"x": v} for v in (0.0, 1.0, 1.0, 4.0, 1.0)], [True] * 5, words, scaler)

    assert batch.values[:3].tolist() == [0.0, 1.0, 1.0]
    assert batch.values[3] == pytest.approx((4 - 1.5) / np.std([0, 1, 1, 4]))
    assert batch.values[4] == pytest.approx((1 - 1.4) / np.std([0, 1, 1, 4, 1]))


def test_categories_and_the_bias_are_left_alone() -> None:
    words = Vocabulary(100, 0)
    batch = vectorize(words, [{"c": "red", "x": 3.0}, {"c": "red", "x": 5.0}], [True, True])

    Scaler(0).standardise(batch, np.ones(2, np.bool_), words.n_columns)

    assert batch.values.tolist() == [1.0, 1.0, 0.0, 1.0, 1.0, 1.0]


@pytest.mark.parametrize("value", [1.7e308, -1.7e308, 1e200])
def test_a_value_too_large_to_count_is_zero_and_marks_its_row(value: float) -> None:
    words, scaler = Vocabulary(100, 0, (), bias=False), Scaler(0)

    batch, unstable = scaled([{"x": 2.0}, {"x": value}, {"x": 4.0}], [True] * 3, words, scaler)

    assert unstable == [False, True, False]
    assert batch.values.tolist() == [0.0, 0.0, 1.0]
    assert scaler.state(words.n_columns)["count"][2] == 2.0


def test_what_has_no_column_leaves_no_statistics() -> None:
    words, scaler = Vocabulary(0, 0, (), bias=False), Scaler(0)

    batch, _ = scaled([{"x": 2.0}, {"x": 9.0}], [True, True], words, scaler)

    assert batch.indices.tolist() == [UNSEEN, UNSEEN]
    assert batch.values.tolist() == [0.0, 0.0]


def test_a_state_restored_goes_on_in_the_same_bits() -> None:
    words, scaler = Vocabulary(100, 0), Scaler(0)
    scaled([{"x": 1.25, "y": 0.0}, {"x": -3.5}], [True, True], words, scaler)

    restored = Scaler.restore(scaler.state(words.n_columns), words.n_columns)

    rows, learnt = [{"x": 0.1, "y": 2.0}], [True]
    assert (
        scaled(rows, learnt, words, scaler)[0].values.tobytes()
        == scaled(rows, learnt, words, restored)[0].values.tobytes()
    )
