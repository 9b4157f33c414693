"""A checkpoint is what learning the journal again makes of an earlier one, and what is not is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from olstream.checkpoint import Checkpoint, Position
from olstream.config import Config, MonitorConfig
from olstream.errors import StateError
from olstream.journal import Line
from olstream.model import digest_of
from tests.fakes import FakeJournal, World, digests
from tests.simulation.lives import live, live_through, recover
from tests.simulation.test_crashes import config_of, records, world_of
from tests.simulation.upkeep import as_written, verify

ALL = pytest.mark.parametrize("from_empty", [False, True])


@pytest.fixture
def world() -> World:
    """A slot that has learnt sixty records, with several checkpoints."""
    made = world_of(1)
    live(made, config_of())
    made.checkpoints[:] = as_written(made.checkpoints)
    return made


def differences(world: World, config: Config | None = None, from_empty: bool = False) -> list[str]:
    return [one.difference for one in verify(world, config or config_of(), from_empty)]


def with_learner(config: Config, name: str, **settings: Any) -> Config:
    """The same with another learner, or with one that has other settings."""
    said = config.model_dump(mode="json", by_alias=True, exclude_unset=True)
    said["learners"].setdefault(name, {}).update(settings)
    if name not in config.learners:
        said["routes"][0]["shadows"].append(name)
    return Config.model_validate(said)


def changed(checkpoint: Checkpoint, learner: str, **more: Any) -> Checkpoint:
    """One bit of a weight is another one; its digest is worked out anew, as if it had been written so."""
    meta, arrays = checkpoint.states[learner]
    weights = arrays["weights"].copy()
    weights.view("u8")[0, -1] ^= 1
    state = meta, {**arrays, "weights": weights}
    digests = {**checkpoint.digests, learner: digest_of(dict(meta), state[1])}
    return replace(checkpoint, **{"states": {**checkpoint.states, learner: state}, "digests": digests, **more})


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
@pytest.mark.parametrize("partitions", [1, 2])
@ALL
def test_after_a_crash_anywhere_every_checkpoint_is_equal(guarantee: str, partitions: int, from_empty: bool) -> None:
    config = config_of(guarantee)
    straight = world_of(partitions)
    live(straight, config)
    for call in range(1, straight.calls + 1, 4):
        world = world_of(partitions)
        world.crash_at = call
        live_through(world, config)

        compared = verify(world, config, from_empty)

        assert [one.difference for one in compared] == [""] * len(world.checkpoints), f"crash at {call}"
        assert sum(one.records for one in compared) == 60


@ALL
def test_one_bit_of_a_weight_is_found_with_learner_and_both_digests(world: World, from_empty: bool) -> None:
    right = world.checkpoints[-2]
    world.checkpoints[-2] = changed(right, "second")

    found = differences(world, from_empty=from_empty)

    is_, should = world.checkpoints[-2].digests["second"], right.digests["second"]
    assert found[-1] == f"learner second has digest {is_}, learning the journal again gives {should}"
    assert found[:-1] == [""] * (len(world.checkpoints) - 2)


def test_a_bit_of_the_oldest_checkpoint_is_found_by_its_own_digest(world: World) -> None:
    oldest = world.checkpoints[1]
    world.checkpoints[:] = [changed(oldest, "first", digests=oldest.digests), *world.checkpoints[2:]]

    (found,) = differences(world)

    assert f"and {oldest.digests['first']} when it was written" in found


def test_a_bit_of_the_oldest_checkpoint_that_was_written_so_shows_in_the_next(world: World) -> None:
    world.checkpoints[:] = [changed(world.checkpoints[1], "first"), *world.checkpoints[2:]]

    start, found = differences(world)[:2]

    assert (start, found[:13]) == ("", "learner first")


@ALL
def test_a_wrong_offset_is_found(world: World, from_empty: bool) -> None:
    position = world.checkpoints[1].position
    right = position.offsets["events", 0]
    world.checkpoints[1] = replace(world.checkpoints[1], position=replace(position, offsets={("events", 0): 7}))

    found = differences(world, from_empty=from_empty)

    assert found == ["", f"it has learnt events[0] up to offset 7, by the journal up to {right}"]


@ALL
def test_a_position_past_a_line_that_is_still_to_be_learnt_is_found(world: World, from_empty: bool) -> None:
    position = world.checkpoints[1].position
    seq, at = position.seq, position.journal_offset
    world.checkpoints[1] = replace(world.checkpoints[1], position=replace(position, journal_offset=at + 1))

    found = differences(world, from_empty=from_empty)

    assert found == ["", f"it goes on at journal offset {at + 1}, and line {seq + 1} stands at {at}"]


@ALL
def test_a_missing_line_is_found(world: World, from_empty: bool) -> None:
    second = next(i for i, data in enumerate(world.journal) if Line.from_bytes(data, i).seq == 2)
    world.journal[second] = Line(0, "another", "slot").to_bytes()

    with pytest.raises(StateError, match="misses line 2"):
        verify(world, config_of(), from_empty)


@ALL
def test_a_missing_end_is_found(world: World, from_empty: bool) -> None:
    last = Line.from_bytes(world.journal.pop(), 0).seq

    with pytest.raises(StateError, match=f"misses line {last} .* the newest checkpoint has learnt up to line {last}"):
        verify(world, config_of(), from_empty)


def test_it_does_not_matter_where_the_group_was_moved_to() -> None:
    config = config_of("at_least_once")
    world = world_of(1)
    live(world, config)
    world.committed["events", 0] = 10

    assert differences(world, config) == [""] * len(world.checkpoints)


@ALL
def test_each_stretch_is_learnt_again_under_its_own_settings(world: World, from_empty: bool) -> None:
    heavier = with_learner(config_of(), "first", class_weights={"1": 5.0})
    world.inputs["events", 0] += records(3, 30)
    live(world, heavier)

    assert differences(world, heavier, from_empty) == [""] * len(world.checkpoints)
    world.checkpoints[:] = [replace(c, settings=world.checkpoints[0].settings) for c in as_written(world.checkpoints)]
    assert "learning the journal again gives" in differences(world, heavier, from_empty)[-1]


def test_learners_come_and_go(world: World) -> None:
    more = with_learner(config_of(), "third", algorithm="pa2")
    world.inputs["events", 0] += records(3, 30)
    live(world, more)
    world.inputs["events", 0] += records(4, 30)
    live(world, config_of())

    compared = verify(world, config_of())

    assert [one.difference for one in compared] == [""] * len(world.checkpoints)
    assert {len(one.checkpoint.states) for one in compared} == {2, 3}


def test_which_learner_stands_first_is_a_setting_too(world: World) -> None:
    """Without routes it is the one that learns."""

    def config(*names: str) -> Config:
        said = config_of().model_dump(mode="json", by_alias=True, exclude_unset=True)
        del said["routes"]
        return Config.model_validate(said | {"learners": {name: said["learners"][name] for name in names}})

    live(world, config("first", "second"))
    written = len(world.checkpoints)
    world.inputs["events", 0] += records(3, 30)
    expected = live(world, config("second", "first"))

    assert differences(world, config("second", "first")) == [""] * len(world.checkpoints)
    del world.checkpoints[written + 1 :]  # the one that was written before joining stays
    assert digests(recover(world, config("second", "first")).models) == expected


def test_settings_that_come_and_go_while_nothing_is_learnt_are_gone_through_again(world: World) -> None:
    plain = config_of()
    none = plain.model_copy(update={"monitor": MonitorConfig(drift={})})
    live(world, none)
    live(world, plain)

    compared = verify(world, plain)

    assert [one.difference for one in compared] == [""] * len(world.checkpoints)
    newest = compared[-1].checkpoint
    world.checkpoints.pop()  # as if it were damaged: the one before it leads to the same
    assert digests(recover(world, plain).models) == newest.digests


def test_where_the_settings_changed_unseen_learning_again_starts_anew(world: World) -> None:
    heavier = with_learner(config_of(), "first", class_weights={"1": 5.0})
    written = len(world.checkpoints)
    world.inputs["events", 0] += records(3, 30)
    live(world, heavier)
    del world.checkpoints[written]  # the one that was written before joining

    compared = verify(world, heavier)

    assert [one.difference for one in compared] == [""] * len(world.checkpoints)
    assert "settings changed on the way" in compared[written].starts
    assert [one.starts for one in compared[written + 1 :]] == [""] * (len(compared) - written - 1)


def test_from_the_empty_model_nobody_can_tell_once_the_settings_of_the_beginning_are_gone(world: World) -> None:
    written = len(world.checkpoints)
    live(world, with_learner(config_of(), "first", class_weights={"1": 5.0}))
    seq = world.checkpoints[-1].position.seq
    del world.checkpoints[:written]

    with pytest.raises(StateError, match=rf"have changed on the way \(at line {seq} of .*leave out --all"):
        verify(world, config_of(), from_empty=True)


def test_from_the_empty_model_nobody_can_tell_once_the_journal_is_cut(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeJournal, "is_cut", lambda _self: True)

    assert differences(world)
    with pytest.raises(StateError, match=r"beginning of the journal is gone.*leave out --all"):
        verify(world, config_of(), from_empty=True)


def test_a_learner_that_began_with_weights_is_learnt_again_from_them(tmp_path: Path) -> None:
    weights = tmp_path / "weights.json"
    weights.write_bytes(orjson.dumps({"f1": 0.5}))
    config = with_learner(config_of(), "first", start_from=str(weights))
    world = world_of(1)
    live(world, config)

    before = differences(world, config, from_empty=True)
    weights.write_bytes(orjson.dumps({"f1": 0.25}))

    assert before == [""] * len(world.checkpoints)
    with pytest.raises(StateError, match="cannot give learner first back"):
        verify(world, config, from_empty=True)


def test_the_journal_may_go_on_past_the_newest_checkpoint(world: World) -> None:
    del world.checkpoints[-1]

    assert differences(world) == [""] * len(world.checkpoints)


def test_checkpoints_of_other_lineages_are_passed_over(world: World) -> None:
    other = replace(world.checkpoints[0], position=Position("another", 1, 0))
    world.checkpoints.insert(0, other)

    assert len(verify(world, config_of())) == len(world.checkpoints) - 1


def test_a_start_changes_nothing_that_is_compared(world: World) -> None:
    recover(world, config_of())

    assert differences(world) == [""] * len(world.checkpoints)
