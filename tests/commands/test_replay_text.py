"""`features.text` over files: what of a message, a CSV or an excluded field becomes words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from olstream.__main__ import main
from tests.commands.replayed import Replayed

CONFIG = """
input: {{fields: {{features: ".", label: y}}, exclude: [{exclude}]}}
learners:
  m: {{algorithm: pa, bias: false, classes: ["no", "yes"], scale: standard, features: {{text: {{{text}}}}}}}
"""


@pytest.fixture
def weights(replay: Replayed) -> Any:
    """The weights after a replay of some rows."""

    def learnt(file: str, data: str, text: str = "t: words", exclude: str = "") -> dict[str, float]:
        config = replay.write("c.yaml", CONFIG.format(text=text, exclude=exclude))
        replay.run(config, replay.write(file, data), "--state", replay.path("s"))
        assert main(["inspect", replay.path("s"), "--weights", "--json"]) == 0
        told: dict[str, float] = json.loads(replay.capsys.readouterr().out)["learners"]["m"]["weights"]
        return told

    return learnt


def test_a_text_of_a_message_becomes_words(weights: Any) -> None:
    assert weights("e.ndjson", '{"t":"Free \\u00c9clair, free!","y":"yes"}\n') == pytest.approx(
        {"t=free": 0.5**0.5, "t=éclair": 0.5**0.5}
    )


def test_a_cell_of_a_csv_becomes_words_unless_it_is_a_number(weights: Any) -> None:
    data = 't,other,y\n"one, ""two""\nthree",four five,yes\n7,,no\n,,no\n'

    assert set(weights("e.csv", data)) == {"t=one", "t=two", "t=three", "other=four five", "t"}


def test_n_grams_and_counts_are_those_of_the_configuration(weights: Any) -> None:
    how = "t: {n: [1, 2], value: count, norm: none}"

    told = weights("e.ndjson", '{"t":"a b a b","y":"yes"}\n', how)

    assert told == pytest.approx({"t=a": 2 / 13, "t=b": 2 / 13, "t=a b": 2 / 13, "t=b a": 1 / 13})


def test_a_text_that_is_excluded_is_no_feature(weights: Any) -> None:
    assert set(weights("e.ndjson", '{"t":"a b","x":"c d","y":"yes"}\n', exclude="t")) == {"x=c d"}


def test_a_megabyte_of_text_is_one_row(weights: Any) -> None:
    data = json.dumps({"t": " ".join(f"w{i}" for i in range(140_000)), "y": "yes"})
    assert 1_000_000 < len(data) < 1 << 20

    told = weights("e.ndjson", data)

    assert len(told) == 65_536
    assert sum(weight * weight for weight in told.values()) == pytest.approx(1.0)
