"""Any bytes are a message or a reject with a reason, and both readers say the same of them."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from olstream.config import FieldsConfig
from olstream.decode import Decoder
from olstream.messages import TOMBSTONE, Example, Reason, Reject
from tests.fuzz.examples import examples
from tests.mutate import MAPPINGS, message, mutated, template
from tests.test_decode import said

SIZE_MAX = 3000
BYTES = st.binary(max_size=200) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KEYS = st.sampled_from(["id", "features", "label", "learner", "ts", "weight", "x"])


def assert_both_say(values: list[bytes | None], fields: FieldsConfig, exclude: tuple[str, ...]) -> None:
    fast, exact = (Decoder(fields, exclude, SIZE_MAX, way).decode(values) for way in (True, False))

    assert len(fast) == len(values)
    assert said(fast) == said(exact)
    for found in fast:
        assert found is TOMBSTONE or isinstance(found, Example | Reject)
        assert not isinstance(found, Reject) or found.reason in set(Reason)


@given(st.lists(BYTES, min_size=1, max_size=4))
@examples(100)
def test_of_any_bytes(values: list[bytes | None]) -> None:
    assert_both_say(values, FieldsConfig(), ())


@given(st.lists(st.dictionaries(KEYS, JSON, max_size=6), min_size=1, max_size=4))
@examples(100)
def test_of_any_object(trees: list[dict[str, Any]]) -> None:
    import json

    assert_both_say([json.dumps(tree).encode() for tree in trees], FieldsConfig(), ())


@given(st.integers(0, 2**32), st.sampled_from(MAPPINGS))
@examples(60)
def test_of_messages_with_small_damages(seed: int, mapping: tuple[FieldsConfig, tuple[str, ...]]) -> None:
    rng = random.Random(seed)
    keys, kinds = template(rng, mapping[0]), dict[str, Any]()

    assert_both_say([mutated(rng, message(rng, keys, kinds)) for _ in range(60)], *mapping)
