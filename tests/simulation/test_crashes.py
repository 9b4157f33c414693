"""The worker dies at any outside call, any number of times, and nothing is lost or learnt twice."""

from __future__ import annotations

import random

import orjson
import pytest

from olstream.config import Config
from olstream.journal import Range
from tests.fakes import Crash, World, ranges_learnt
from tests.simulation.lives import live, live_through

RECORDS = 60


def config_of(guarantee: str = "exactly_once") -> Config:
    return Config.model_validate(
        {
            "guarantee": guarantee,
            "input": {"topics": ["events"], "batch_max": 7},
            "commit_interval": "500ms",
            "checkpoint": {"interval": "2s"},
            "learners": {
                "first": {"algorithm": "arow", "task": "binary", "scale": "standard"},
                "second": {"algorithm": "pa1", "task": "multiclass"},
            },
            "routes": [{"when": {}, "learner": "first", "shadows": ["second"]}],
        }
    )


def records(seed: int, n: int) -> list[bytes | None]:
    """Labelled, unlabelled, refused and null ones."""
    rng = random.Random(seed)
    made: list[bytes | None] = []
    for i in range(n):
        features = {f"f{rng.randrange(6)}": round(rng.gauss(0, 1), 3) for _ in range(3)}
        message = {"id": i, "features": features, "label": rng.choice([0, 1, None])}
        made.append(rng.choice([b"{", None]) if rng.random() < 0.1 else orjson.dumps(message))
    return made


def world_of(partitions: int) -> World:
    return World({("events", p): records(p, RECORDS // partitions) for p in range(partitions)})


@pytest.mark.parametrize("partitions", [1, 2])
def test_a_crash_at_any_call_leaves_the_same_models_and_predictions(partitions: int) -> None:
    config = config_of()
    straight = world_of(partitions)
    expected = live_through(straight, config)

    for call in range(1, straight.calls + 1):
        world = world_of(partitions)
        world.crash_at = call
        found = live_through(world, config)

        assert ranges_learnt(world) == [Range("events", p, 0, RECORDS // partitions) for p in range(partitions)]
        assert sorted(visible_places(world)) == sorted(visible_places(straight)), f"crash at call {call}"
        if partitions == 1:
            assert found == expected, f"crash at call {call}"
            assert by_topic(world) == by_topic(straight)


def by_topic(world: World) -> dict[str, list[bytes]]:
    """What a reader of each topic sees, in order."""
    seen: dict[str, list[bytes]] = {}
    for topic, _key, value in world.visible:
        seen.setdefault(topic, []).append(value)
    return seen


def visible_places(world: World) -> list[bytes]:
    """Which records were answered: with several partitions what was answered depends on the order of learning."""
    return [
        orjson.dumps([topic, fields.get("partition"), fields.get("offset"), fields.get("learner")])
        if topic == "predictions" and (fields := orjson.loads(value))
        else value
        for topic, _key, value in world.visible
    ]


@pytest.mark.parametrize("seed", range(5))
def test_many_crashes_leave_the_same_models_and_predictions(seed: int) -> None:
    config = config_of()
    straight = world_of(1)
    expected = live_through(straight, config)
    rng = random.Random(seed)
    world = world_of(1)

    found = None
    while found is None:
        world.crash_at = world.calls + rng.randrange(1, 25)
        try:
            found = live(world, config, rng.randrange(1000))
        except Crash:
            continue

    assert found == expected
    assert by_topic(world) == by_topic(straight)


def test_work_that_is_not_ours_any_more_is_dropped_and_learnt_again() -> None:
    config = config_of()
    straight = world_of(1)
    expected = live_through(straight, config)

    for call in range(1, straight.calls + 1):
        world = world_of(1)
        world.lose_at = call

        assert live_through(world, config) == expected, f"lost at call {call}"
        assert by_topic(world) == by_topic(straight)


def test_at_least_once_loses_nothing_and_learns_everything_once() -> None:
    config = config_of("at_least_once")
    straight = world_of(1)
    expected = live_through(straight, config)

    for call in range(1, straight.calls + 1):
        world = world_of(1)
        world.crash_at = call

        assert live_through(world, config) == expected, f"crash at call {call}"
        assert set(straight.visible) <= set(world.visible), f"crash at call {call}"
