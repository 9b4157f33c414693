"""Which learner a record goes to."""

from __future__ import annotations

from typing import Any

import pytest

from olstream.config import FieldsConfig, RouteConfig
from olstream.decode import Decoder
from olstream.messages import Chunk, Example, Headers, Reason, Reject
from olstream.route import Route, Router

LEARNERS = ["a", "b", "c"]


def routed(
    routes: list[RouteConfig], learner: str | None = None, topic: str = "events", headers: Headers | None = None,
    value: bytes = b"{}",
) -> Route | Reject:  # fmt: skip
    chunk = Chunk(topic, 0, [0], [None], [None], [value], [headers])
    return Router(routes, LEARNERS).route(Example(features={}, learner=learner), chunk, 0)


def when(target: str | None = None, /, *shadows: str, **conditions: Any) -> RouteConfig:
    conditions = {key.replace("__", "."): value for key, value in conditions.items()}
    return RouteConfig(when=conditions, learner=target, shadows=list(shadows))


def test_without_routes_the_message_decides_and_else_the_first_learner_is_taken() -> None:
    assert routed([]) == Route("a")
    assert routed([], "b") == Route("b")


@pytest.mark.parametrize("routes", [[], [when("b")], [when("b", topic="events")]])
@pytest.mark.parametrize("learner", ["zzz", "", "A"])
def test_a_learner_that_is_not_configured_is_refused_on_every_route(routes: list[RouteConfig], learner: str) -> None:
    refused = routed(routes, learner)

    assert isinstance(refused, Reject) and refused.reason == Reason.UNKNOWN_LEARNER


def test_the_first_route_that_matches_wins() -> None:
    routes = [when("b", topic="cards"), when("c"), when("a")]

    assert routed(routes, topic="cards") == Route("b")
    assert routed(routes, topic="events") == Route("c")


def test_where_no_route_matches_the_message_decides() -> None:
    assert routed([when("b", topic="cards")], "c") == Route("c")


def test_a_route_without_a_learner_adds_shadows_to_the_messages_own() -> None:
    routes = [when(None, "b", "c", "b")]

    assert routed(routes) == Route("a", ("b", "c"))
    assert routed(routes, "b") == Route("b", ("c",))


def test_all_conditions_of_a_route_must_hold() -> None:
    routes = [when("b", topic=["cards", "wires"], learner="c")]

    assert routed(routes, "c", "wires") == Route("b")
    assert routed(routes, None, "wires") == Route("a")
    assert routed(routes, "c", "events") == Route("c")


def test_headers_are_compared_as_text_and_any_of_several_will_do() -> None:
    routes = [when("b", header__country=["JP", "FR"])]

    assert routed(routes, headers=[("country", b"DE"), ("country", b"JP")]) == Route("b")
    assert routed(routes, headers=[("country", None), ("Country", b"JP"), ("x", b"JP")]) == Route("a")
    assert routed(routes, headers=[("country", b"\xff")]) == Route("a")
    assert routed(routes) == Route("a")


@pytest.mark.parametrize(
    ("value", "learner"),
    [
        (b'{"features":{},"meta":{"kind":"card"}}', "b"),
        (b'{"features":{},"meta.kind":"card"}', "b"),
        (b'{"features":{},"meta":{"kind":7.0}}', "b"),
        (b'{"features":{},"meta":{"kind":"7"}}', "b"),
        (b'{"features":{},"meta":{"kind":true}}', "b"),
        (b'{"features":{},"meta":{"kind":1}}', "a"),
        (b'{"features":{},"meta":{"kind":{"a":1}}}', "a"),
        (b'{"features":{},"meta":{"kind":null}}', "a"),
        (b'{"features":{}}', "a"),
    ],
)
def test_fields_of_the_message_are_compared_by_their_text(value: bytes, learner: str) -> None:
    router = Router([when("b", field__meta__kind=["card", 7, True])], LEARNERS)
    decoder = Decoder(FieldsConfig(), (), 1000, carry=router.carry)

    [example] = decoder.decode([value])

    assert isinstance(example, Example)
    assert router.route(example, Chunk("t", 0, [0], [None], [None], [value], [None]), 0) == Route(learner)


def test_only_paths_that_routes_look_at_are_carried() -> None:
    assert Router([when("b", topic="t", header__h="v")], LEARNERS).carry == []
    assert Router([when("b", field__x=1), when("c", field__x=2, field__a__b="v")], LEARNERS).carry == ["a.b", "x"]
