"""Free text as features: which words, with which values, under which names."""

from __future__ import annotations

import json
from math import sqrt
from typing import Any
from unicodedata import category

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olstream import ConfigError, Learner
from olstream.config import FieldsConfig, LearnerConfig, MonitorConfig, TextConfig
from olstream.decode import Decoder
from olstream.messages import Example, Reason, Reject
from olstream.model import Model
from olstream.scale import Scaler
from olstream.vectorize import vectorize
from olstream.vocabulary import Vocabulary
from olstream.words import UNITS_MAX, Words


def words(text: str, **how: Any) -> list[str]:
    return list(Words(**how).values(text))


def test_words_are_letters_digits_and_underscores_in_lower_case() -> None:
    assert words("Don't PANIC, e_mail 2 people!\n") == ["don", "t", "panic", "e_mail", "2", "people"]


@pytest.mark.parametrize(
    ("one", "other"),
    [("É", "e\u0301"), ("Straße", "STRASSE"), ("ΣΊΣΥΦΟΣ", "σίσυφος"), ("\u212a", "k"), ("\u01c5", "\u01c4")],
)
def test_case_and_composition_make_no_other_word(one: str, other: str) -> None:
    assert words(one) == words(other) == words(f" {one} {other}")


def test_marks_belong_to_the_letter_before_them() -> None:
    assert words("हिन्दी x\u030cy") == ["हिन्दी", "x\u030cy"]
    assert words("\u0301 ❤\ufe0f 👍🏽") == []


def test_every_mark_of_unicode_is_known() -> None:
    marks = [c for c in map(chr, range(0x110000)) if category(c).startswith("M")]

    assert len(marks) > 2000
    assert all(len(words(f"x{mark}x")) == 1 for mark in marks)


@pytest.mark.parametrize("text", ["", " ", "\t\n\u3000", "... - !", "\u200d"])
def test_a_text_without_words_says_nothing(text: str) -> None:
    assert Words().values(text) == Words(value="count").values(text) == {}


def test_values_are_presence_or_count_with_or_without_the_norm() -> None:
    text = "to be or not to be"

    assert Words().values(text) == dict.fromkeys(("to", "be", "or", "not"), 0.5)
    assert Words(norm="none").values(text) == dict.fromkeys(("to", "be", "or", "not"), 1.0)
    assert Words(value="count", norm="none").values(text) == {"to": 2.0, "be": 2.0, "or": 1.0, "not": 1.0}
    assert Words(value="count").values(text)["to"] == pytest.approx(2 / sqrt(10))


def test_n_grams_go_from_the_shortest_to_the_longest() -> None:
    assert words("a b c", n=(1, 2)) == ["a", "b", "c", "a b", "b c"]
    assert words("a b c", n=(3, 4)) == ["a b c"]
    assert words(" AB \n c ", tokens="chars", n=(2, 3)) == ["ab", "b ", " c", "ab ", "b c"]
    assert words("👍a", tokens="chars", n=(1, 1)) == ["👍", "a"]


@given(st.text(max_size=60), st.sampled_from(["words", "chars"]), st.integers(1, 4), st.integers(0, 2))
def test_a_text_has_norm_1_or_no_words(text: str, tokens: Any, shortest: int, more: int) -> None:
    values = Words(tokens, (shortest, shortest + more), "count", "l2").values(text)

    assert all(values)
    assert not values or sum(value * value for value in values.values()) == pytest.approx(1.0)


def test_of_a_very_long_text_the_beginning_counts() -> None:
    text = " ".join(f"w{i}" for i in range(150_000))

    found = words(text)
    grams = Words("chars", (1, 10)).values(text)

    assert found == text.split()[:UNITS_MAX]
    assert len(grams) < 10 * UNITS_MAX


def vocabulary(names_max: int = 1000, **rules: Words) -> Vocabulary:
    return Vocabulary(names_max, 2, (), False, rules)


def test_words_are_categories_under_the_name_of_their_text() -> None:
    known = vocabulary(title=Words())

    batch = vectorize(known, [{"title": "a=b x", "x": 2.0, "color": "deep red"}], [True])

    assert known.exported() == ["color=deep red", "title=a", "title=b", "title=x", "x"]
    assert dict(zip(known.exported(), batch.values.tolist(), strict=True)) == pytest.approx(
        {"color=deep red": 1.0, "title=a": sqrt(1 / 3), "title=b": sqrt(1 / 3), "title=x": sqrt(1 / 3), "x": 2.0}
    )
    assert batch.numeric.tolist() == [0, 0, 0, 0, 1]


def test_what_is_no_text_at_that_name_is_a_feature_like_any_other() -> None:
    plain, codes = vocabulary(title=Words()), Vocabulary(1000, 2, ["title"], False, {"title": Words()})

    vectorize(plain, [{"title": 7.0}, {"title": "7 up"}], [True, True])
    vectorize(codes, [{"title": 7.0}, {"title": "7 up"}], [True, True])

    assert plain.exported() == ["title", "title=7", "title=up"]
    assert codes.exported() == ["title=7", "title=up"]  # a code is a category too, here that of the word


def test_a_very_long_word_is_kept_by_hash() -> None:
    known = vocabulary(title=Words())
    long = "x" * 257

    first = vectorize(known, [{"title": long}], [True])
    again = vectorize(known, [{"title": long.upper()}], [False])

    assert known.exported()[0].startswith("title=\\hash:")
    assert first.indices.tolist() == again.indices.tolist() == [2]


def test_words_past_the_most_names_are_summed_in_buckets() -> None:
    known = vocabulary(2, title=Words(norm="none"))

    batch = vectorize(known, [{"title": "a b"}, {"title": " ".join(f"w{i}" for i in range(50))}], [True, True])

    assert sorted(known.exported()) == ["\\overflow:0", "\\overflow:1", "title=a", "title=b"]
    assert batch.values[2:].sum() == 50.0
    assert known.overflowed == 50


def test_scaling_leaves_words_as_they_are() -> None:
    known, scaler = vocabulary(title=Words(norm="none", value="count")), Scaler(0)
    for x, text in ((1.0, "a"), (2.0, "a a"), (4.0, "a a a")):
        batch = vectorize(known, [{"x": x, "title": text}], [True])
        scaler.standardise(batch, np.array([True]), known.n_columns)

    assert batch.values.tolist() == pytest.approx([3.0, (4 - 7 / 3) / sqrt(14 / 9)])


def test_a_restored_vocabulary_tells_words_alike() -> None:
    known = vocabulary(title=Words("chars", (2, 3), "count", "none"))
    vectorize(known, [{"title": "abc"}], [True])

    restored = Vocabulary.restore(*json_and_back(known))

    assert restored.text["title"].values("abcab") == known.text["title"].values("abcab") != {}
    assert restored.exported() == known.exported() == ["title=ab", "title=bc", "title=abc"]


def json_and_back(known: Vocabulary) -> tuple[Any, Any]:
    meta, arrays = known.state()
    return json.loads(json.dumps(meta)), arrays


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("text", ["word {} and word {}: é", "{} {}"])  # the second is an n-gram itself
def test_the_fast_reader_and_the_exact_one_give_the_same_model(whole: bool, text: str) -> None:
    learner = {"features": {"text": {"t": {"n": [1, 2]}}}}
    digests = []
    for fast in (True, False):
        decoder = Decoder(FieldsConfig(features="." if whole else "features"), (), 10_000, fast=fast)
        model = Model("m", LearnerConfig.model_validate(learner), MonitorConfig())
        for start in range(0, 300, 50):
            rows: list[Any] = decoder.decode([message(i, whole, text) for i in range(start, start + 50)])
            model.predict_then_update(rows)
        digests.append((model.digest(), set(model.weights())))

    assert digests[0] == digests[1]


def message(i: int, whole: bool, text: str) -> bytes:
    features = {"t": text.format(i % 7, i % 5), "x": i / 100, "c": "ab"[i % 2]}
    label = {"label": "yes" if i % 7 > 3 else "no"}
    return json.dumps(features | label if whole else {"features": features} | label).encode()


def test_half_of_a_surrogate_pair_never_comes_so_far() -> None:
    read = Decoder(FieldsConfig(), (), 1000).decode([b'{"features":{"t":"a \\ud800"}}'])[0]

    assert isinstance(read, Reject) and read.reason == Reason.BAD_ENCODING
    with pytest.raises(ValueError, match="bad_encoding"):
        Learner("arow", features={"text": {"t": "words"}}).learn({"t": "a \ud800"}, 1)


def test_a_learner_takes_text_saves_it_and_goes_on(tmp_path: Any) -> None:
    how = {"text": {"body.plain": {"n": [1, 2]}}}
    model = Learner("arow", features=how, bias=False)

    model.learn({"body.plain": "Win money"}, 1)
    model.save(tmp_path / "m")
    loaded = Learner.load(tmp_path / "m")

    assert set(model.weights()) == {"body.plain=win", "body.plain=money", "body.plain=win money"}
    assert loaded.predict({"body.plain": "WIN MONEY"}) == model.predict({"body.plain": "win  money!"})
    assert loaded.digest() == model.digest()
    loaded.learn({"body.plain": "lose money"}, 0)
    model.learn({"body.plain": "lose money"}, 0)
    assert loaded.digest() == model.digest()


def test_names_of_texts_are_compared_after_composition() -> None:
    model = Learner("pa", features={"text": {"titre\u0301": "words"}, "category": ["an\u0303o"]}, bias=False)

    model.learn({"titr\u00e9": "deux mots", "a\u00f1o": 1999}, 1)

    assert set(model.weights()) == {"titr\u00e9=deux", "titr\u00e9=mots", "a\u00f1o=1999"}


def test_rows_of_text_are_learnt_as_one_by_one() -> None:
    rows = [Example(features={"t": f"a{i % 3} b{i % 5}"}, label=i % 3 > 1) for i in range(100)]
    whole, parts = (
        Model("m", LearnerConfig(features={"text": {"t": TextConfig()}}), MonitorConfig())  # type: ignore[arg-type]
        for _ in range(2)
    )

    whole.predict_then_update(rows)
    for row in rows:
        parts.predict_then_update([row])

    assert whole.digest() == parts.digest()


@pytest.mark.parametrize(
    ("given", "n"), [(2, [2, 2]), ([3], [3, 3]), ([1, 2], [1, 2]), ("2", [2, 2]), (["1", "2"], [1, 2])]
)
def test_one_length_is_both_ends(given: Any, n: list[int]) -> None:
    assert TextConfig(n=given).n == n


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ({"t": "letters"}, "features.text.t.tokens: must be one of words, chars, not 'letters'"),
        ({"t": {"n": [2, 1]}}, r"features.text.t.n: must be one length or \[from, to\], such as \[1, 2\]"),
        ({"t": {"n": [1, 2, 3]}}, r"features.text.t.n: must be one length or \[from, to\]"),
        ({"t": {"n": []}}, r"features.text.t.n: must be one length or \[from, to\]"),
        ({"t": {"n": 0}}, "features.text.t.n.0: must be at least 1"),
        ({"t": {"n": 11}}, "features.text.t.n.0: must be at most 10"),
        ({"t": {"value": "tfidf"}}, "features.text.t.value: must be one of presence, count"),
        ({"t": {"norm": "l1"}}, "features.text.t.norm: must be one of l2, none"),
        ({"t": {"case": "lower"}}, "features.text.t.case: unknown key"),
    ],
)
def test_mistakes_about_text_name_the_key(text: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Learner("arow", features={"text": text})
