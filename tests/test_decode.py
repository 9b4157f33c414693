"""Both readers of messages say the same about every value."""

from __future__ import annotations

import random
import tracemalloc
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from olstream.config import FieldsConfig
from olstream.decode import Decoder, kept, plain
from olstream.messages import TOMBSTONE, Example, Reason, Reject, Tombstone
from tests.mutate import MAPPINGS, Key, message, mutated, template

SIZE_MAX = 2000
Form: TypeAlias = tuple[list[Key], dict[str, Any]]


def said(decoded: list[Example | Reject | Tombstone]) -> list[str]:
    """In full, types and zeros' signs included."""
    return [repr(plain(one) if isinstance(one, Example) else one) for one in decoded]


def decoder(fields: FieldsConfig, exclude: tuple[str, ...], fast: bool = True) -> Decoder:
    return Decoder(fields, exclude, SIZE_MAX, fast)


@settings(derandomize=True, max_examples=150, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(MAPPINGS))
def test_the_fast_reader_agrees_with_the_exact_one_on_damaged_messages(
    seed: int, mapping: tuple[FieldsConfig, tuple[str, ...]]
) -> None:
    rng = random.Random(seed)
    forms: list[Form] = [(template(rng, mapping[0]), {}) for _ in range(rng.randrange(1, 4))]
    fast, exact = decoder(*mapping), decoder(*mapping, fast=False)
    fast.decode([message(rng, *form) for form in forms for _ in range(50)])

    values = [mutated(rng, message(rng, *rng.choice(forms))) for _ in range(200)]

    assert said(fast.decode(values)) == said(exact.decode(values))


@settings(derandomize=True, deadline=None)
@given(st.lists(st.binary(max_size=40) | st.none(), max_size=20))
def test_any_bytes_get_an_answer_of_their_own(values: list[bytes | None]) -> None:
    decoded = decoder(FieldsConfig(), ()).decode(values)

    assert len(decoded) == len(values)
    assert [one is TOMBSTONE for one in decoded] == [value is None for value in values]


def test_how_values_are_cut_into_batches_changes_nothing() -> None:
    rng = random.Random(7)
    fields = FieldsConfig()
    form: Form = template(rng, fields), {}
    values = [mutated(rng, message(rng, *form)) if rng.random() < 0.3 else message(rng, *form) for _ in range(700)]
    whole, singly = decoder(fields, ()), decoder(fields, ())

    at_once = whole.decode(values)
    one_by_one = [singly.decode([value])[0] for value in values]

    assert said(at_once) == said(one_by_one)


@pytest.mark.parametrize("fast", [True, False])
def test_the_limit_of_size_holds_for_both_readers(fast: bool) -> None:
    reader = decoder(FieldsConfig(), (), fast)
    fits = b'{"features":{"x":1' + b" " * (SIZE_MAX - 20) + b"}}"
    for _ in range(3):
        reader.decode([fits] * 50)

    fitting, too_large = reader.decode([fits, fits.replace(b"1", b"10")])

    assert (len(fits), isinstance(fitting, Example)) == (SIZE_MAX, True)
    assert isinstance(too_large, Reject) and too_large.reason == Reason.TOO_LARGE


def test_what_is_kept_of_features_holds_no_more_memory_than_its_text() -> None:
    example = Decoder(FieldsConfig(), [], 1000).decode([b'{"features": {"b": 1.5, "a": "x"}}'])[0]
    assert isinstance(example, Example)

    tracemalloc.start()
    texts = [kept(example) for _ in range(1000)]
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert texts[0] == b'{"a":"x","b":1.5}'
    assert held < 200_000
