"""The text of a configuration file: YAML as people expect it, and values from the environment."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from olstream.configfile import Tree, read, scalar
from olstream.errors import ConfigError


def tree(text: str, **environ: str) -> Tree:
    return read(text, "c.yaml", environ).tree


def refusal(text: str, **environ: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read(text, "c.yaml", environ)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("1E3", 1000.0),
        ("-2.5e+4", -25000.0),
        (".5", 0.5),
        ("1_000_000", 1_000_000),
        ("007", 7),
        ("0x10", 16),
        ("0o17", 15),
        ("-.inf", -math.inf),
        ("true", True),
        ("FALSE", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("on", "on"),
        ("yes", "yes"),
        ("No", "No"),
        ("12:30:45", "12:30:45"),
        ("2001-12-14", "2001-12-14"),
        ("1.2.3", "1.2.3"),
        ("1e", "1e"),
        ("=", "="),
    ],
)
def test_a_plain_scalar_means_what_it_looks_like(text: str, value: object) -> None:
    assert scalar(text) == value
    assert type(scalar(text)) is type(value)
    assert tree(f"a: {text}") == {"a": value}


def test_a_quoted_scalar_is_text() -> None:
    assert tree("{a: \"1\", b: 'true', c: |\n  5\n}".replace("c: |\n  5\n", "")) == {"a": "1", "b": "true"}
    assert tree("a: |\n  5\n") == {"a": "5\n"}


def test_keys_are_text() -> None:
    assert tree("{1: a, true: b, 1.0: c}") == {"1": "a", "true": "b", "1.0": "c"}


def test_a_key_stands_once() -> None:
    said = refusal("a:\n  b: 1\n  c: 2\n  b: 3\n")

    assert said == "c.yaml, line 4: a.b: this key stands on line 2 already; keep one of them"


def test_an_environment_variable_that_stands_alone_is_read_as_a_scalar() -> None:
    assert tree("{}\n") == {}
    assert tree("slot: ${SLOT}\n", SLOT="3") == {"slot": 3}
    assert tree("slot: ${SLOT}\n", SLOT="") == {"slot": None}
    assert tree('slot: "${SLOT}"\n', SLOT="3") == {"slot": "3"}
    assert tree("at: ${HOST}:${PORT:9092}\n", HOST="kafka") == {"at": "kafka:9092"}
    assert tree("a: ${UNSET:}\n") == {"a": None}


def test_what_the_environment_holds_is_not_read_again() -> None:
    assert tree("a: ${A}\n", A="${B}", B="no") == {"a": "${B}"}
    assert tree("a: ${A}\n", A="{b: 1}") == {"a": "{b: 1}"}
    assert tree("a: $${A}\n", A="no") == {"a": "${A}"}


def test_an_unset_variable_is_refused_with_its_name_and_its_key() -> None:
    said = refusal("http:\n  token: ${TOKEN}\n")

    assert said == "c.yaml, line 2: http.token: the environment variable TOKEN is not set and has no default here"


@pytest.mark.parametrize("text", ["a: ${}", "a: ${A-b}", "a: ${A B}", "a: ${A", "a: ${1}"])
def test_a_variable_that_is_written_wrongly_is_refused(text: str) -> None:
    assert "write ${NAME}, ${NAME:default} or ${file:/path}" in refusal(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [1", "c.yaml, line 1: expected ',' or ']'"),
        ("http: {port: ${PORT}}", "inside { } and [ ] a ${NAME} needs quotes around it"),
        ("a: !!python/object:os.system {}", "the tag !!python/object:os.system is not supported"),
        ("a: !!int '5'", "the tag !!int is not supported"),
        ("? [a]\n: 1", "a key must be a plain word"),
        ("a: 1\n---\nb: 2", "c.yaml, line 2: but found another document"),
        ("a: &x [*x]", "an alias must not contain itself"),
        ("a: *nowhere", "found undefined alias"),
        ("a: \x07", "is no YAML"),
        ("[" * 5000, "c.yaml"),
    ],
)
def test_what_is_no_plain_yaml_is_refused_in_one_sentence(text: str, expected: str) -> None:
    said = refusal(text)

    assert expected in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}", {"p": 1, "q": 3}),
        ("a: &x {p: 1, q: 2}\nb: {q: 3, <<: *x}", {"p": 1, "q": 3}),
        ("a: &x {p: 1}\nb: {<<: *x}", {"p": 1}),
        ("a: [&x {p: 1, q: 2}, &y {p: 3, r: 4}]\nb: {<<: [*x, *y], r: 5}", {"p": 1, "q": 2, "r": 5}),
        ("b: {<<: {p: 1}, q: 2}", {"p": 1, "q": 2}),
        ("a: &x {p: 1}\nc: &y {<<: *x, q: 2}\nb: {<<: *y}", {"p": 1, "q": 2}),
        ("b: {'<<': 1}", {"<<": 1}),
        ("b: {<<: {p: '${P}'}}", {"p": "env"}),
    ],
)
def test_a_merge_key_brings_what_the_mapping_does_not_say_itself(text: str, expected: object) -> None:
    merged = tree(text, P="env")

    assert isinstance(merged, dict)
    assert merged["b"] == expected


def test_mistakes_in_what_was_merged_are_told_where_they_stand() -> None:
    file = read("a: &x\n  p: 1\nb:\n  <<: *x\n  q: 2\n", "c.yaml", {})

    assert (file.lines[("b", "p")], file.lines[("b", "q")]) == (2, 5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: {<<: 5}", "a: << takes a mapping, or a list of them, such as *defaults"),
        ("a: {<<: [{b: 1}, c]}", "a: << takes a mapping, or a list of them, such as *defaults"),
        ("a: {<<: {b: 1}, <<: {c: 1}}", "a: << stands here twice; give it a list, such as [*these, *those]"),
        ("a: &x {<<: *x}", "a: an alias must not contain itself"),
    ],
)
def test_a_merge_that_cannot_be_is_refused(text: str, expected: str) -> None:
    assert refusal(text) == f"c.yaml, line 1: {expected}"


def test_an_alias_is_the_same_value_again() -> None:
    assert tree("a: &x {b: 1}\nc: *x") == {"a": {"b": 1}, "c": {"b": 1}}


def test_a_file_gives_its_text_less_one_newline(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"0012\n\n")

    given = tree(f"a: ${{file:{secret}}}\nb: 'x${{file:{secret}}}y'\nc: $${{file:{secret}}}\nd: ${{N}}", N="7")

    assert given == {"a": "0012\n", "b": "x0012\ny", "c": f"${{file:{secret}}}", "d": 7}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (None, "No such file or directory"),
        (b"\xff", "is no UTF-8 text"),
        (bytes(2**20 + 1), "has more than 1048576 bytes"),
    ],
)
def test_a_file_that_gives_no_text_is_refused_without_a_word_of_it(
    tmp_path: Path, data: bytes | None, why: str
) -> None:
    if data is not None:
        (tmp_path / "secret").write_bytes(data)

    said = refusal(f"kafka:\n  sasl.password: ${{file:{tmp_path}/secret}}\n")

    assert said.startswith(f"c.yaml, line 2: kafka.sasl.password: the file {tmp_path}/secret ")
    assert why in said


def test_aliases_of_aliases_come_to_an_end() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    for i in range(1, 12):
        bomb += f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n"

    assert "there are more than 100000 values" in refusal(bomb)
