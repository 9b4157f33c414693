"""The fast reader: which messages it takes, and that it keeps few types."""

from __future__ import annotations

import gc
import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from olstream.config import FieldsConfig
from olstream.decode import Decoder, plain
from olstream.messages import Example, Reason, Reject
from olstream.shapes import PAUSE_DOUBLINGS, REPEATS, REPEATS_WHEN_FULL, SHAPES_MAX, FeaturesStruct
from tests.mutate import mutated

FORMS: dict[str, dict[str, Any]] = {
    "numbers": {"features": {"a": 1.5, "b": 2}, "label": 1},
    "with an id": {"id": "i", "features": {"a": 1.5, "b": 2}, "label": 1},
    "texts": {"features": {"a": 1.5, "c": "x:y"}, "label": "spam:ham", "ts": "2026-11-30T10:00:00Z"},
    "booleans": {"features": {"a": True}, "label": False},
    "names with colons": {"features": {"a:b": 1, "::": 2}},
    "an ignored key": {"features": {"a": 1}, "source": "web:1", "n": 3, "none": None},
    "null fields": {"features": {"a": 1, "n": None}, "label": None, "id": None},
    "all fields": {"id": 7, "features": {"a": 1}, "label": 0.5, "learner": "m", "weight": 2.5, "ts": 17},
    "an array": {"features": [1, 2.5], "label": 1},
    "a late label": {"id": "i", "label": 1},
    "no feature": {"features": {}, "label": 1},
}
WHOLE: dict[str, dict[str, Any]] = {
    "whole": {"a": 1.5, "b": "x:y", "label": 1},
    "whole with null": {"a": 1.5, "b": None, "id": "k", "label": 1},
    "whole with fields as names": {"weight": 1, "ts": "soon", "ts_ms": 3, "shape": 1, "features": 2},
    "whole late label": {"id": 1, "label": "a"},
    "whole with null only": {"id": 1, "label": "a", "x": None},
}


def read_twice(message: dict[str, Any], fields: FieldsConfig) -> tuple[Decoder, Any, Any]:
    """A decoder that has met the message often, what it says now, and what the exact reader says."""
    data = json.dumps(message, ensure_ascii=False).encode()
    fast = Decoder(fields, (), 1000)
    fast.decode([data] * REPEATS)
    return fast, fast.decode([data])[0], Decoder(fields, (), 1000, fast=False).decode([data])[0]


@pytest.mark.parametrize("form", [*FORMS, *WHOLE])
def test_a_repeated_form_is_read_fast_and_the_same(form: str) -> None:
    fields = FieldsConfig(features=".") if form in WHOLE else FieldsConfig()

    decoder, fast, exact = read_twice((FORMS | WHOLE)[form], fields)

    assert decoder.shapes is not None and len(decoder.shapes.live) == 1
    assert isinstance(fast, Example) and isinstance(exact, Example)
    assert repr(plain(fast)) == repr(exact)


@pytest.mark.parametrize(
    "message",
    [
        {"features": {"a": {"b": 1}}, "label": 1},
        {"features": {"a": 1}, "other": [1]},
        {"features": {'a"b': 1}},
        {"features": {"a\\b": 1}},
        {"features": {"a": 1}, "ts_ms": 1},
        {"features": [1, True]},
        {"features": {f"f{i}": i for i in range(300)}},
    ],
)
def test_what_a_struct_could_not_tell_stays_with_the_exact_reader(message: dict[str, Any]) -> None:
    decoder, fast, exact = read_twice(message, FieldsConfig())

    assert decoder.shapes is not None and decoder.shapes.live == []
    assert fast == exact


def test_an_empty_array_is_refused_after_many_that_are_not() -> None:
    decoder, *_ = read_twice(FORMS["an array"], FieldsConfig())

    [refused] = decoder.decode([b'{"features":[],"label":1}'])

    assert isinstance(refused, Reject) and refused.reason == Reason.BAD_FEATURES


def tampered(rng: random.Random, values: list[bytes]) -> list[bytes]:
    """The same batch with one or two of its values cut, joined, repeated or emptied, so that the whole looks alike."""
    values = list(values)
    for _ in range(rng.choice([0, 1, 1, 2])):
        i, j = rng.randrange(len(values)), rng.randrange(len(values))
        match rng.randrange(8):
            case 0:
                cut = rng.randrange(len(values[i]) + 1)
                values[i : i + 1] = [values[i][:cut], values[i][cut:]]
            case 1:
                values[i : i + 2] = [rng.choice([b"", b" ", b"\n"]).join(values[i : i + 2])]
            case 2:
                values[i] = rng.choice([b"", b" ", b"{}", b"}{", values[j], b"\n" + values[i], values[i] + b"\n"])
            case 3:
                values[i : i + 1] = values[i].partition(rng.choice([b",", b"{", b"}"]))[::2]
            case 4:
                values[i] = values[i].replace(b'"a":', b'"b":', 1)
            case 5:
                values[i] = values[i].replace(b":", b"", 1)
                values[j] = values[j].replace(b"}", b',"a":2}', 1)
            case 6:
                values[i] = values[i].replace(b":", rb"\u003a", 1)
            case _:
                values[i] = mutated(rng, values[i])
    return values


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.integers(0, 2**32), st.sampled_from([*FORMS, *WHOLE]))
def test_what_is_read_at_once_is_what_is_read_one_by_one(seed: int, form: str) -> None:
    rng = random.Random(seed)
    fields = FieldsConfig(features=".") if form in WHOLE else FieldsConfig()
    data = json.dumps((FORMS | WHOLE)[form]).encode()
    decoder = Decoder(fields, (), 1000)
    decoder.decode([data] * REPEATS)
    assert decoder.shapes is not None

    untouched = decoder.shapes.live[0].read_all([data] * 5)
    assert untouched is not None and len(untouched) == 5

    for _ in range(20):
        values = tampered(rng, [data] * rng.randrange(1, 5))
        at_once = decoder.shapes.live[0].read_all(values) if all(values) else None
        if at_once is not None:
            exact = Decoder(fields, (), 1000, fast=False).decode(values)
            assert [repr(plain(example)) for example in at_once] == list(map(repr, exact))


TEXTS = b'{"features":{"a":1.5,"c":"x:y"},"label":"spam:ham","ts":"2026-11-30T10:00:00Z"}'


@pytest.mark.parametrize(
    "values",
    [
        [b"", TEXTS + TEXTS],
        [TEXTS + TEXTS, b" "],
        [TEXTS + b"\n" + TEXTS, TEXTS + b"\n"],
        [TEXTS[:40], TEXTS[40:]],
        [TEXTS.replace(b'"a":1.5', b'"a":1.5,"a":2').replace(b"x:y", rb"x\u003ay")],
        [TEXTS.replace(b'"a":1.5', b'"a":1.5,"a":2'), TEXTS.replace(b"x:y", b"xy")],
        [TEXTS, TEXTS.replace(b"2026-11-30T", b"2026-11-31T")],
        [TEXTS, TEXTS.replace(b"00Z", b"00")],
    ],
)
def test_what_looks_like_a_batch_of_one_form_and_is_none_is_told_apart(values: list[bytes]) -> None:
    decoder = Decoder(FieldsConfig(), (), 1000)
    decoder.decode([TEXTS] * REPEATS)
    assert decoder.shapes is not None

    assert decoder.shapes.live[0].read_all([TEXTS, TEXTS]) is not None
    assert decoder.shapes.live[0].read_all(values) is None
    for _ in range(2):
        exact = Decoder(FieldsConfig(), (), 1000, fast=False).decode(values)
        said = [plain(one) if isinstance(one, Example) else one for one in decoder.decode(values)]
        assert said == exact


def test_a_stream_of_one_form_is_read_at_once() -> None:
    decoder = Decoder(FieldsConfig(), (), 1000)
    data = b'{"id":"i","features":{"x":1}}'
    decoder.decode([data] * REPEATS)
    assert decoder.shapes is not None

    assert decoder.shapes.find_all([data] * 3, 1000) is None  # the batch before was of no known form
    assert len(decoder.shapes.find_all([data] * 3, 1000) or []) == 3
    assert decoder.shapes.find_all([data, None], 1000) is None


def test_a_stream_of_mixed_forms_is_seldom_tried_at_once() -> None:
    decoder = Decoder(FieldsConfig(), (), 1000)
    mixed = [b'{"features":{"x":1}}', b'{"features":{"x":1},"label":1}']
    decoder.decode(mixed * REPEATS)
    assert decoder.shapes is not None
    tries = 0

    for _ in range(1000):
        tries += decoder.shapes.pause == 0
        decoder.decode(mixed)

    assert 1000 // 2**PAUSE_DOUBLINGS <= tries < 100


def test_a_form_is_remembered_only_after_many_messages_of_it() -> None:
    decoder = Decoder(FieldsConfig(), (), 1000)
    assert decoder.shapes is not None

    decoder.decode([b'{"features":{"x":1}}'] * (REPEATS - 1))
    assert decoder.shapes.live == []

    decoder.decode([b'{"features":{"x":1}}'])
    assert len(decoder.shapes.live) == 1


def test_labelled_and_unlabelled_messages_in_turn_are_both_remembered() -> None:
    decoder = Decoder(FieldsConfig(), (), 1000)

    decoder.decode([b'{"features":{"x":1},"label":1}', b'{"features":{"x":1}}'] * REPEATS)
    labelled, unlabelled = decoder.decode([b'{"features":{"x":1},"label":1}', b'{"features":{"x":1}}'])

    assert isinstance(labelled, Example) and isinstance(unlabelled, Example)
    assert isinstance(labelled.features, FeaturesStruct) and isinstance(unlabelled.features, FeaturesStruct)
    assert labelled.features.shape is unlabelled.features.shape


def test_a_stream_that_never_repeats_itself_makes_no_types() -> None:
    decoder = Decoder(FieldsConfig(), (), 1000)
    decoder.decode([b'{"features":{"x%d":1}}' % i for i in range(1000)])

    assert decoder.shapes is not None and decoder.shapes.live == []
    assert len(decoder.shapes.watched) < 100


def test_types_are_few_however_many_forms_a_stream_goes_through() -> None:
    decoder = Decoder(FieldsConfig(), (), 1000)
    before = len(FeaturesStruct.__subclasses__())

    for i in range(2 * SHAPES_MAX):
        decoder.decode([b'{"features":{"x%d":1}}' % i] * REPEATS)
    for i in range(2):
        decoder.decode([b'{"features":{"late%d":1}}' % i] * REPEATS_WHEN_FULL)

    gc.collect()
    assert decoder.shapes is not None and len(decoder.shapes.live) == SHAPES_MAX
    assert [shape.features.names for shape in decoder.shapes.live[:2]] == [("late1",), ("late0",)]
    assert len(FeaturesStruct.__subclasses__()) - before <= SHAPES_MAX
