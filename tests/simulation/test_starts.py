"""Learners that begin with something: it counts once, and recovery never takes another thing for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from olstream.api import Learner
from olstream.config import Config
from olstream.errors import ConfigError, StateError
from tests.fakes import World, digests
from tests.simulation.lives import live, recover
from tests.simulation.test_crashes import records


def config_of(**learners: str | None) -> Config:
    """Learners by name, with what each starts from."""
    said: dict[str, Any] = {name: {"algorithm": "arow", "start_from": start} for name, start in learners.items()}
    return Config.model_validate({"input": {"topics": ["events"]}, "learners": said})


def replaying(config: Config) -> Config:
    checkpoint = config.checkpoint.model_copy(update={"on_missing": "replay"})
    return config.model_copy(update={"checkpoint": checkpoint})


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    file = tmp_path / "weights.json"
    file.write_text('{"f1": 2.0}')
    return file


@pytest.fixture
def world() -> World:
    return World({("events", 0): records(1, 30)})


def starts(world: World) -> list[Any]:
    return [orjson.loads(line).get("starts") for line in world.journal]


def test_the_empty_checkpoint_holds_what_a_learner_begins_with(world: World, weights: Path) -> None:
    recovered = recover(world, config_of(first=str(weights)))

    assert recovered.models["first"].weights() == {"f1": 2.0}
    assert world.checkpoints[0].states["first"][1]["weights"].tolist() == [[0.0, 0.0, 2.0]]


def test_a_learner_with_a_checkpoint_does_not_look_at_it_again(world: World, weights: Path) -> None:
    expected = live(world, config_of(first=str(weights)))
    weights.unlink()

    assert digests(recover(world, config_of(first=str(weights))).models) == expected
    assert digests(recover(world, config_of(first=None)).models) == expected


def test_all_of_the_journal_is_learnt_again_from_the_same_beginning(world: World, weights: Path) -> None:
    config = config_of(first=str(weights), second=None)
    expected = live(world, config)
    plain = live(World(dict(world.inputs)), config_of(first=None, second=None))
    world.checkpoints.clear()

    assert digests(recover(world, replaying(config)).models) == expected != plain


def test_a_journal_that_began_otherwise_is_not_learnt_again(world: World, weights: Path) -> None:
    live(world, config_of(first=str(weights)))
    world.checkpoints.clear()
    weights.write_text('{"f1": 2.5}')
    other = weights.with_name("other.json")

    for start, told in ((str(weights), "began with [0-9a-f]{64}, and would now with [0-9a-f]{64}"), (None, "nothing")):
        with pytest.raises(StateError, match=rf"{told}.*put start_from.*fresh"):
            recover(world, replaying(config_of(first=start)))
    with pytest.raises(ConfigError, match=r"other\.json"):
        recover(world, replaying(config_of(first=str(other))))
    assert not world.checkpoints


def test_a_start_that_came_into_the_configuration_later_is_not_taken_for_the_beginning(
    world: World, weights: Path
) -> None:
    live(world, config_of(first=None))
    world.checkpoints.clear()

    with pytest.raises(StateError, match="began with nothing"):
        recover(world, replaying(config_of(first=str(weights))))


def test_a_new_learner_begins_with_it_where_the_others_stand(world: World, weights: Path) -> None:
    before = live(world, config_of(first=None))
    both = config_of(first=None, second=str(weights))

    recovered = recover(world, both)

    assert recovered.models["second"].weights() == {"f1": 2.0}
    assert digests(recovered.models)["first"] == before["first"]
    assert [sorted(found) for found in starts(world) if found] == [["second"]]
    world.checkpoints.clear()
    with pytest.raises(StateError, match="later on"):
        recover(world, replaying(both))


def test_the_state_of_another_learner_is_taken_whole(world: World, tmp_path: Path) -> None:
    trained = Learner("arow")
    trained.learn({"f1": 1.0}, 1)
    trained.save(tmp_path / "trained")

    recovered = recover(world, config_of(first=f"{tmp_path / 'trained'}#learner"))

    assert digests(recovered.models)["first"] == trained.digest() == starts(world)[0]["first"]


def test_the_journal_says_nothing_of_learners_that_begin_empty(world: World) -> None:
    live(world, config_of(first=None))

    assert set(starts(world)) == {None}
