"""Single values of the configuration: durations, classes, and what a condition may ask for."""

from __future__ import annotations

import re
from typing import Any

import pytest

from olstream import Learner
from olstream.config import Config, parse
from olstream.errors import ConfigError
from olstream.schema import json_schema
from olstream.values import class_text


def read(text: str) -> Config:
    return parse(text, "config.yaml", {})


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1h30m", 5400.0), ("1h 30m", 5400.0), ("1d2h3m4s5ms", 93784.005), ("1m0.5s", 60.5), ("90m", 5400.0),
        ("200ms", 0.2), ("1s1ms", 1.001), ("0.1s", 0.1), (" 5 m ", 300.0),
    ],
)  # fmt: skip
def test_a_duration_is_one_or_several_parts_with_their_units(text: str, seconds: float) -> None:
    pattern = json_schema()["$defs"]["CheckpointConfig"]["properties"]["interval"]["pattern"]

    assert read(f"learners: {{a: }}\ncheckpoint: {{interval: {text}}}").checkpoint.interval_s == seconds
    assert re.search(pattern, text)


@pytest.mark.parametrize("text", ["30m1h", "1h1h", "1h30", "1 30m", "h", "1h-30m", "1h,30m", "1ms1s", "1h30x"])
def test_parts_of_a_duration_go_down_and_each_has_a_unit(text: str) -> None:
    with pytest.raises(ConfigError, match=r"line 2: checkpoint\.interval: must be a duration with its unit"):
        read(f"learners: {{a: }}\ncheckpoint: {{interval: '{text}'}}")


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("1.5", "1.5"), ("''", "''"), ("null", "null"), (".inf", "inf"), (".nan", "nan"), ("{a: 1}", "{'a': 1}"),
        ("[1]", "[1]"), ("x" * 257, "a text of 257 characters"), ("1e300", "1e+300"),
    ],
)  # fmt: skip
def test_a_class_that_no_message_can_carry_is_refused_in_one_sentence(written: str, shown: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(f"learners:\n  m:\n    classes: [{written}, 1]\n")

    assert str(caught.value) == (
        f"config.yaml, line 3: learners.m.classes.0: {shown} is no class: "
        "a class is text of 1 to 256 characters, a whole number, true or false"
    )


def test_the_weight_of_a_class_that_no_message_can_carry_is_refused() -> None:
    for key in ("''", "x" * 257):
        with pytest.raises(ConfigError, match=r"class_weights: .* is no class: "):
            read(f"learners:\n  m:\n    class_weights: {{{key}: 2}}\n")


@pytest.mark.parametrize("label", ["a", "x" * 256, 1, -1, 2.0, True, 10**255, "1.5"])
def test_what_a_message_can_carry_is_a_class(label: Any) -> None:
    m = Learner("pa1", classes=[label, "other"])

    m.learn({"x": 1.0}, label)

    assert class_text(label) is not None
    assert m.predict({"x": 1.0}).label == label


@pytest.mark.parametrize("label", ["", "x" * 257, 1.5, float("nan"), 10**256, 10**400, None, [1], "\ud800"])
def test_what_no_message_can_carry_is_no_class(label: Any) -> None:
    assert class_text(label) is None
    with pytest.raises(ConfigError, match=r"classes\.0: .* is no class"):
        Learner("pa1", classes=[label, "other"])


@pytest.mark.parametrize("value", ["null", "{a: 1}", "[[a]]"])
def test_a_condition_that_nothing_can_meet_is_refused_in_one_sentence(value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(f"learners: {{a: }}\nroutes: [{{when: {{field.x: {value}}}}}]")

    assert re.fullmatch(r"config\.yaml, line 2: routes\.0\.when\.field\.x(\.0)?: must be .*", str(caught.value))
