"""The digest's kernels against what Python says of the same names."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from olstream.digest import exported, in_order
from olstream.vocabulary import Vocabulary

PARTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8) | st.sampled_from(
    ["a", "b", "ab", "a=b", "a\\", "\\=", "é", "\U0001f600", "\uffff", "\x00", "n" * 300]
)
NAMES = st.lists(st.tuples(PARTS, st.none() | PARTS), max_size=30)


@settings(derandomize=True, deadline=None)
@given(NAMES)
def test_names_are_shown_and_sorted_as_python_does(names: list[tuple[str, str | None]]) -> None:
    vocabulary = Vocabulary(names_max=20, overflow_buckets=5)
    for name, text in names:
        vocabulary.learn(name, text)
    arrays = vocabulary.state()[1]

    shown, ends = exported(arrays["kinds"], arrays["parts"], arrays["ends"])
    order = in_order(shown, ends)

    texts = [bytes(part).decode() for part in np.split(shown, ends)[:-1]]
    assert texts == vocabulary.exported()
    assert [texts[i] for i in order] == sorted(texts)
