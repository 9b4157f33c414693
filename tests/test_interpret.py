"""Where each thing is in a message, and what may stand there."""

from __future__ import annotations

from typing import Any

import pytest

from olstream.config import FieldsConfig
from olstream.interpret import CarryingExample, Interpreter, find, without
from olstream.messages import Example, Reason, Reject

X = {"x": 1.0}


def meaning(tree: Any, exclude: tuple[str, ...] = (), carry: tuple[str, ...] = (), **fields: str) -> Example | Reject:
    return Interpreter(FieldsConfig(**fields), exclude, carry).interpret(tree)


def accepted(tree: Any, exclude: tuple[str, ...] = (), **fields: str) -> Example:
    example = meaning(tree, exclude, (), **fields)
    assert isinstance(example, Example), example
    return example


def reason(tree: Any, exclude: tuple[str, ...] = (), **fields: str) -> Reason:
    reject = meaning(tree, exclude, (), **fields)
    assert isinstance(reject, Reject), reject
    return reject.reason


def test_a_full_message() -> None:
    tree = {
        "id": 7,
        "features": {"n": 2, "t": "red", "b": True, "absent": None},
        "label": "a",
        "learner": "m",
        "weight": 2,
    }

    example = accepted({**tree, "ts": "2026-11-30T10:00:00Z", "other": [1]})

    assert example == Example(7, {"n": 2.0, "t": "red", "b": 1.0}, "a", "m", 2.0, 1796032800000)


def test_null_is_absent() -> None:
    tree = dict.fromkeys(("id", "label", "learner", "weight", "ts")) | {"features": X}

    assert accepted(tree) == Example(features=X)


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ([], Reason.NOT_OBJECT),
        (None, Reason.NOT_OBJECT),
        ({}, Reason.MISSING_FIELDS),
        ({"label": "a"}, Reason.MISSING_FIELDS),
        ({"id": "i"}, Reason.MISSING_FIELDS),
        ({"features": None, "label": "a"}, Reason.MISSING_FIELDS),
        ({"features": "x"}, Reason.BAD_FEATURES),
        ({"features": 7}, Reason.BAD_FEATURES),
        ({"features": False}, Reason.BAD_FEATURES),
        ({"features": []}, Reason.BAD_FEATURES),
        ({"features": [1, None]}, Reason.BAD_FEATURES),
        ({"features": [1, "2"]}, Reason.BAD_FEATURES),
        ({"features": [[1]]}, Reason.BAD_FEATURES),
        ({"features": {"": 1}}, Reason.BAD_FEATURES),
        ({"features": {"x": {}}}, Reason.BAD_FEATURES),
        ({"features": {"x": [1]}}, Reason.BAD_FEATURES),
        ({"features": X, "label": ""}, Reason.BAD_LABEL),
        ({"features": X, "label": "a" * 257}, Reason.BAD_LABEL),
        ({"features": X, "label": []}, Reason.BAD_LABEL),
        ({"features": X, "label": {}}, Reason.BAD_LABEL),
        ({"features": X, "id": ""}, Reason.BAD_ID),
        ({"features": X, "id": "i" * 257}, Reason.BAD_ID),
        ({"features": X, "id": 1.0}, Reason.BAD_ID),
        ({"features": X, "id": True}, Reason.BAD_ID),
        ({"features": X, "id": 2.0**64}, Reason.BAD_ID),
        ({"features": X, "weight": -1}, Reason.BAD_WEIGHT),
        ({"features": X, "weight": "1"}, Reason.BAD_WEIGHT),
        ({"features": X, "weight": True}, Reason.BAD_WEIGHT),
        ({"features": X, "ts": True}, Reason.BAD_TS),
        ({"features": X, "ts": 1.5}, Reason.BAD_TS),
        ({"features": X, "ts": 2**63}, Reason.BAD_TS),
        ({"features": X, "ts": "2026-11-30T10:00:00"}, Reason.BAD_TS),
        ({"features": X, "learner": 3}, Reason.UNKNOWN_LEARNER),
        ({"Features": X, "Label": "a"}, Reason.MISSING_FIELDS),
    ],
)
def test_each_broken_rule_has_its_reason(tree: Any, expected: Reason) -> None:
    assert reason(tree) == expected


@pytest.mark.parametrize(
    ("tree", "detail"),
    [
        ({"features": {"x": 1, "tags": ["a"]}}, "feature 'tags' is an array"),
        ({"features": {"a\n" * 32: {}}}, "feature " + repr("a\n" * 32) + " is an object"),
        ({"features": {"x": 1, "n" * 65: []}}, "feature number 2 is an array"),
        ({"features": X, "id": "i" * 257}, "id of 257 characters, 1 to 256 are allowed"),
        ({"features": X, "id": ""}, "id of 0 characters, 1 to 256 are allowed"),
        ({"features": X, "id": 1.5}, "id is a number, but no integer of 64 bits"),
        ({"features": X, "id": True}, "id is a boolean, not text or an integer"),
        ({"features": X, "ts": "yesterday"}, "ts is text, but not RFC 3339 with an offset, as 2026-11-30T10:00:00Z is"),
        ({"features": X, "ts": 1.5}, "ts is a number, but no integer of epoch milliseconds in 64 bits"),
        ({"features": X, "ts": {}}, "ts is an object, neither text nor integer of epoch milliseconds in 64 bits"),
        ({"features": X, "weight": -1}, "weight is a negative number, not a number of at least 0"),
    ],
)
def test_the_detail_says_what_is_wrong_with_it(tree: Any, detail: str) -> None:
    rejected = meaning(tree)

    assert isinstance(rejected, Reject)
    assert rejected.detail == detail


@pytest.mark.parametrize(
    "tree",
    [
        {"features": {}},
        {"features": {"x": None}},
        {"features": X, "id": 2**64 - 1},
        {"features": X, "id": -(2**63)},
        {"features": X, "id": "é" * 256},
        {"features": X, "label": "é" * 256},
        {"features": X, "label": 1.5},
        {"features": X, "weight": 0},
        {"features": X, "ts": -(2**63)},
        {"features": X, "ts": 10**17},
        {"id": 0, "label": 0},
    ],
)
def test_what_is_odd_but_allowed_is_accepted(tree: Any) -> None:
    assert isinstance(meaning(tree), Example)


def test_an_array_holds_numbers_and_booleans() -> None:
    assert accepted({"features": [1, True, 0.5]}).features == [1.0, 1.0, 0.5]


def test_a_path_is_a_name_with_dots_first_and_names_inside_names_then() -> None:
    tree = {"a.b": 1, "a": {"b": 2, "c": {"d": 3}, "c.e": 4}, "n": None}

    assert [find(tree, path) for path in ("a.b", "a.c.d", "a.c.e", "a.x", "n", "a.b.c")] == [1, 3, 4, None, None, None]


def test_taking_out_a_path_takes_along_what_it_empties() -> None:
    tree = {"a": {"b": {"c": 1}}, "x.y": 1, "z": {"u": 1, "v": 2}}

    assert without(tree, "a.b.c") == {"x.y": 1, "z": {"u": 1, "v": 2}}
    assert without(tree, "x.y") == {"a": {"b": {"c": 1}}, "z": {"u": 1, "v": 2}}
    assert without(tree, "z.u") == {"a": {"b": {"c": 1}}, "x.y": 1, "z": {"v": 2}}
    assert without(tree, "z.w") is tree
    assert tree == {"a": {"b": {"c": 1}}, "x.y": 1, "z": {"u": 1, "v": 2}}


def test_fields_are_where_the_configuration_says() -> None:
    tree = {"meta": {"key": "k", "at": 5}, "data": {"x": 1}, "y": True, "w": 3, "label": "other"}
    fields = {"id": "meta.key", "ts": "meta.at", "features": "data", "label": "y", "weight": "w"}

    assert accepted(tree, (), **fields) == Example("k", X, True, None, 3.0, 5)


def test_the_whole_message_is_features_less_mapped_and_excluded() -> None:
    tree = {"id": "k", "y": 1, "x": 1, "meta": {"source": "web"}, "note": [1], "deep": {"er": {"z": 1}}, "null": None}

    example = accepted(tree, ("meta.source", "note", "deep.er"), features=".", label="y")

    assert example == Example("k", X, 1)


def test_a_nested_object_that_stays_is_no_feature() -> None:
    assert reason({"x": 1, "meta": {"a": 1, "b": 2}}, ("meta.a",), features=".") == Reason.BAD_FEATURES


def test_weight_ts_and_learner_of_a_whole_message_are_features_unless_mapped() -> None:
    tree = {"x": 1, "weight": 70.5, "ts": 1.5, "learner": "driver"}

    assert accepted(tree, features=".").features == {"x": 1.0, "weight": 70.5, "ts": 1.5, "learner": "driver"}
    assert reason(tree, features=".", ts="ts") == Reason.BAD_TS
    assert accepted(tree, features=".", learner="learner").learner == "driver"


def test_a_whole_message_without_features_is_a_late_label() -> None:
    assert accepted({"id": 1, "label": "a"}, features=".") == Example(1, None, "a")
    assert accepted({"id": 1, "label": "a", "x": None}, features=".").features == {}
    assert reason({"label": "a"}, features=".") == Reason.MISSING_FIELDS


@pytest.mark.parametrize("path", ["y", "features.y"])
def test_exclude_names_a_path_or_a_feature(path: str) -> None:
    tree = {"features": {"x": 1, "y": {"any": "thing"}}}

    assert accepted(tree, (path,)).features == X


def test_a_label_inside_the_features_is_no_feature() -> None:
    example = accepted({"features": {"x": 1, "sold": True}}, label="features.sold")

    assert (example.features, example.label) == (X, True)


def test_paths_are_compared_in_nfc() -> None:
    assert accepted({"\u00e9": "a", "features": X}, label="e\u0301").label == "a"


def test_what_routes_look_at_comes_along() -> None:
    example = meaning({"features": {"x": 1}, "meta": {"country": "JP"}}, carry=("meta.country", "features.x", "none"))

    assert isinstance(example, CarryingExample)
    assert example.carried == {"meta.country": "JP", "features.x": 1, "none": None}
