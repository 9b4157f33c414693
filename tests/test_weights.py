"""The forms in which weights to start from are written."""

from __future__ import annotations

from typing import Any

import pytest

from olstream.errors import ConfigError
from olstream.weights import Vector, vectors


@pytest.mark.parametrize(("given", "by_class", "found"), [
    ({"x": 1, "kind=a": -2.0}, False, [(None, {"x": 1.0, "kind=a": -2.0}, 0.0)]),
    ({"weights": {"x": 1}, "bias": 3, "algorithm": "pa"}, False, [(None, {"x": 1.0}, 3.0)]),
    ({"weights": 1, "bias": 3}, False, [(None, {"weights": 1.0, "bias": 3.0}, 0.0)]),
    ({"a": {"x": 1}, "b": {}}, True, [("a", {"x": 1.0}, 0.0), ("b", {}, 0.0)]),
    ({"weights": {"a": {"x": 1}}, "bias": {"a": 2, "b": 3}}, True, [("a", {"x": 1.0}, 2.0), ("b", {}, 3.0)]),
    ({"weights": {"a": {"x": 1}}}, True, [("a", {"x": 1.0}, 0.0)]),
    ({"weights": {"x": 1}, "bias": {"x": 2}}, True, [("weights", {"x": 1.0}, 0.0), ("bias", {"x": 2.0}, 0.0)]),
])  # fmt: skip
def test_the_bias_stands_apart_or_is_left_out(given: Any, by_class: bool, found: list[Vector]) -> None:
    assert list(vectors(given, by_class)) == found


@pytest.mark.parametrize(("given", "by_class", "told"), [
    ([1.0], False, "{feature: weight}, not list"),
    ({"a": {"x": 1}}, False, "'a'"),
    ({"x": 1}, True, "{feature: weight}, not int"),
    ({"weights": {"x": 1}, "bias": None}, False, "bias"),
    ({"weights": {"a": {}}, "bias": 1.0}, True, "{class: weight of the bias}, not float"),
    ({"weights": {"a": {}}, "bias": {"a": "1"}}, True, "bias of class 'a'"),
])  # fmt: skip
def test_another_shape_is_a_mistake_that_is_named(given: Any, by_class: bool, told: str) -> None:
    with pytest.raises(ConfigError) as error:
        list(vectors(given, by_class))

    assert told in str(error.value)
