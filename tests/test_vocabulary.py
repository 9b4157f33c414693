"""Names to columns: three namespaces that cannot meet, bounded, kept in full."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olstream.learners._state import UNSEEN
from olstream.parse import nfc
from olstream.vocabulary import FIRST_NAMED, Vocabulary, number_text

PARTS = st.text(alphabet="ab=\\\u00e9:", max_size=4) | st.sampled_from(["x" * 257, "y" * 300, "\u00e9" * 129])
NAMES = st.tuples(PARTS.filter(bool).map(nfc), st.none() | PARTS)  # as messages bring them


def learnt(names: list[tuple[str, str | None]], names_max: int = 1000, buckets: int = 8) -> Vocabulary:
    vocabulary = Vocabulary(names_max, buckets)
    for name, text in names:
        vocabulary.learn(name, text)
    return vocabulary


@given(st.lists(NAMES, max_size=30))
def test_each_name_has_a_column_of_its_own(names: list[tuple[str, str | None]]) -> None:
    vocabulary = learnt(names)

    columns = {vocabulary.find(*name) for name in names}
    exported = vocabulary.exported()

    assert columns == {(FIRST_NAMED + i, -1) for i in range(len(set(names)))}
    assert len(set(exported)) == len(exported) == len(set(names))


@given(st.lists(NAMES, max_size=30), st.integers(0, 10))
def test_a_state_restored_is_the_same_vocabulary(names: list[tuple[str, str | None]], names_max: int) -> None:
    vocabulary = learnt(names, names_max)
    vocabulary.form = ("array", 3)

    restored = Vocabulary.restore(*vocabulary.state())

    assert [restored.find(*name) for name in names] == [vocabulary.find(*name) for name in names]
    assert restored.exported() == vocabulary.exported()
    assert (restored.n_columns, restored.n_names, restored.overflowed) == (
        vocabulary.n_columns,
        vocabulary.n_names,
        vocabulary.overflowed,
    )
    assert restored.form == ("array", 3)
    assert {name: array.tobytes() for name, array in restored.state()[1].items()} == {
        name: array.tobytes() for name, array in vocabulary.state()[1].items()
    }


@given(st.lists(NAMES, max_size=20), st.integers(0, 10))
def test_an_exported_name_leads_back_to_its_column(names: list[tuple[str, str | None]], names_max: int) -> None:
    vocabulary = learnt(names, names_max)
    exported = vocabulary.exported()

    found = [vocabulary.column_of(name) for name in exported]
    anew = Vocabulary(1000, 8)
    made = [anew.column_of(name) for name in exported]

    assert found == made == list(range(FIRST_NAMED, FIRST_NAMED + len(exported)))
    assert anew.exported() == exported


@given(st.lists(NAMES, max_size=30), NAMES)
def test_looking_up_changes_nothing(names: list[tuple[str, str | None]], other: tuple[str, str | None]) -> None:
    vocabulary = learnt(names, 5)
    before = vocabulary.state()

    vocabulary.find(*other)

    after = vocabulary.state()
    assert after[0] == before[0]
    assert all((after[1][name] == before[1][name]).all() for name in before[1])


def test_names_are_shown_with_escapes() -> None:
    vocabulary = learnt([("x", None), ("x", "red"), ("a=b", None), ("a", "b"), ("a\\", "=")])

    assert vocabulary.exported() == ["x", "x=red", "a\\=b", "a=b", "a\\\\=\\="]


def test_past_the_most_names_a_name_shares_a_bucket() -> None:
    vocabulary = learnt([("a", None), ("b", None)], names_max=2, buckets=1)

    unknown = vocabulary.find("c", None)
    opened = vocabulary.learn("c", None)

    assert unknown == (UNSEEN, 0)
    assert opened == vocabulary.learn("d", "e") == vocabulary.find("f", None) == (4, 0)
    assert vocabulary.exported() == ["a", "b", "\\overflow:0"]
    assert (vocabulary.n_names, vocabulary.overflowed) == (2, 2)


def test_no_two_names_have_a_bucket_by_the_same_text() -> None:
    vocabulary = Vocabulary(0, 2**40)

    buckets = [vocabulary.find(*name) for name in (("abc", None), ("ab", "c"), ("a", "bc"), ("abc", ""), ("", "abc"))]

    assert len(set(buckets)) == 5


def test_without_buckets_what_comes_late_is_never_learnt() -> None:
    vocabulary = learnt([("a", None)], names_max=1, buckets=0)

    assert vocabulary.learn("b", None) == (UNSEEN, -1)
    assert vocabulary.n_columns == 3


def test_more_weights_than_names_are_refused() -> None:
    vocabulary = learnt([("a", None)], names_max=1)

    with pytest.raises(ValueError, match="names_max"):
        vocabulary.column_of("b")


def test_a_name_has_the_same_bucket_in_every_process() -> None:
    program = "from olstream.vocabulary import Vocabulary; print(Vocabulary(0, 1000).find('card', 'visa'))"
    environment = {**os.environ, "PYTHONHASHSEED": "17"}

    other = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True, text=True)

    assert other.stdout.strip() == str(Vocabulary(0, 1000).find("card", "visa"))


@pytest.mark.parametrize(
    ("value", "text"), [(1.0, "1"), (-0.0, "0"), (2.5, "2.5"), (1e300, "1e+300"), (2.0**53, "9007199254740992")]
)
def test_the_text_of_a_code_is_that_of_its_number(value: float, text: str) -> None:
    assert number_text(value) == text
