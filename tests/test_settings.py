"""What a learner is, and what a checkpoint carries."""

from __future__ import annotations

import json

import pytest

from olstream.config import Config, parse
from olstream.settings import differences, digest, identity, redacted, settings, with_settings

AROW = "learners:\n  a:\n    algorithm: arow\n    params: {r: 1.0}\n"


def read(text: str) -> Config:
    return parse(text, "config.yaml", {})


def test_comments_order_and_spelled_out_defaults_are_the_same_learner() -> None:
    one = read(AROW + "input: {topics: [t], exclude: [b, a]}")
    other = read(
        "# the same\ninput: {exclude: [a, b], topics: [u]}\nlearners: {a: {task: binary, bias: true}}\nslot: 4"
    )

    assert identity(one, "a") == identity(other, "a")
    assert digest(identity(one, "a")) == digest(identity(other, "a"))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("    scale: standard\n", 'scale: "none" -> "standard"'),
        ("    bias: false\n", "bias: true -> false"),
        ("    classes: [a, b]\n", 'classes: null -> ["a", "b"]'),
        ("    features: {names_max: 5}\n", "features.names_max: 262144 -> 5"),
        ("    features: {category: [x]}\n", 'features.category: [] -> ["x"]'),
        ("input: {exclude: [x]}\n", 'input.exclude: [] -> ["x"]'),
        ("input: {fields: {label: y}}\n", 'input.fields.label: "label" -> "y"'),
    ],
)
def test_what_makes_another_learner_is_told_by_its_key(change: str, told: str) -> None:
    before, after = identity(read(AROW), "a"), identity(read(AROW + change), "a")

    assert digest(before) != digest(after)
    assert differences(before, after) == [told]


def test_another_algorithm_differs_in_its_parameters_too() -> None:
    before = identity(read(AROW), "a")
    after = identity(read("learners: {a: {algorithm: pa1}}"), "a")

    assert 'algorithm: "arow" -> "pa1"' in differences(before, after)
    assert "params.C: (not there) -> 1.0" in differences(before, after)


def test_how_a_text_is_told_into_words_is_part_of_what_a_learner_is() -> None:
    plain, words, written = (
        read(AROW + f"    features: {{text: {text}}}\n")
        for text in ("{}", "{title: words}", "{title: {tokens: words, n: [1, 1], value: presence, norm: l2}}")
    )

    assert identity(words, "a") == identity(written, "a")
    assert differences(identity(plain, "a"), identity(words, "a")) == [
        "features.text: {} -> (not there)",
        "features.text.title.n: (not there) -> [1, 1]",
        'features.text.title.norm: (not there) -> "l2"',
        'features.text.title.tokens: (not there) -> "words"',
        'features.text.title.value: (not there) -> "presence"',
    ]


@pytest.mark.parametrize(
    "change",
    [
        "    class_weights: {x: 2}\n",
        "    threshold: 0.5\n",
        "    learn: false\n",
        "    classes_max: 7\n",
        "routes: [{learner: a}]\n",
        "monitor: {window: 7}\n",
        "join: {pending_max: 7}\n",
        "input: {max_message_bytes: 7}\n",
    ],
)
def test_other_settings_take_effect_through_a_checkpoint(change: str) -> None:
    before, after = read(AROW), read(AROW + change)

    assert identity(before, "a") == identity(after, "a")
    assert settings(before) != settings(after)


@pytest.mark.parametrize(
    "change", ["slot: 3", "input: {batch_max: 7}", "log: {level: debug}", "output: {scores: true}"]
)
def test_what_decides_nothing_about_the_models_is_no_such_setting(change: str) -> None:
    assert settings(read(AROW)) == settings(read(AROW + change))


def test_settings_survive_json_and_take_the_place_of_todays() -> None:
    then = read(
        AROW
        + """    class_weights: {x: 2, 1: 0.5}
    features: {text: {t: chars}, category: [b, a]}
routes: [{when: {topic: t, field.k: [1, true]}, learner: a}]
input: {fields: {features: ., ts: ts}, exclude: [z], max_message_bytes: 1kB}
monitor: {drift: [ddm], on_drift: {widen: 0.25}}
join: {ttl: 90m}
"""
    )
    today = read(
        "learners: {b: {algorithm: pa}}\nslot: 3\nkafka: {sasl.password: p}\nmonitor: {hindsight: {C: 2}}\n"
        "checkpoint: {interval: 1s}\ninput: {topics: [q], start: latest}\nhttp: {token: t}"
    )

    both = with_settings(today, json.loads(json.dumps(settings(then))))

    assert settings(both) == settings(then)
    assert both.learners == then.learners
    assert both.input.fields.model_fields_set == {"features", "ts"}
    assert (both.slot, both.kafka, both.http, both.checkpoint) == (
        today.slot,
        today.kafka,
        today.http,
        today.checkpoint,
    )
    assert (both.input.topics, both.input.start) == (["q"], "latest")
    assert both.monitor.hindsight == today.monitor.hindsight


def test_in_a_whole_message_it_matters_which_fields_are_mapped() -> None:
    whole = read(AROW + "input: {fields: {features: .}}\n")
    mapped = read(AROW + "input: {fields: {features: ., ts: ts}}\n")
    apart = read(AROW + "input: {fields: {ts: ts}}\n")

    assert identity(whole, "a") != identity(mapped, "a")
    assert identity(apart, "a") == identity(read(AROW), "a")


def test_a_configuration_is_shown_without_its_secrets() -> None:
    config = read(
        AROW + "kafka: {bootstrap.servers: k, sasl.password: hunter2}\nproducer: {ssl.key.password: hunter2}\n"
        "http: {token: hunter2}\n"
    )

    shown = redacted(config)

    assert "hunter2" not in json.dumps(shown)
    assert shown["kafka"] == {"bootstrap.servers": "k", "sasl.password": "***"}
    assert config.kafka["sasl.password"] == "hunter2"
