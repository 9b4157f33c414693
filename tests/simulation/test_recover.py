"""What a start makes of the state it finds."""

from __future__ import annotations

from typing import Any

import pytest

from olstream.config import Config
from olstream.errors import StateError
from olstream.journal import Line
from tests.fakes import World, digests
from tests.simulation.lives import live, recover
from tests.simulation.test_crashes import records

Learners = dict[str, dict[str, Any]]
ONE: Learners = {"first": {"algorithm": "arow"}}


def config_of(learners: Learners = ONE, **sections: Any) -> Config:
    base: dict[str, Any] = {"input": {"topics": ["events"], "batch_max": 7}, "learners": learners}
    return Config.model_validate(base | sections)


def grown(world: World, seed: int) -> None:
    world.inputs["events", 0] += records(seed, 20)


@pytest.fixture
def world() -> World:
    """A slot that has learnt thirty records and stopped in good order."""
    world = World({("events", 0): records(1, 30)})
    live(world, config_of())
    return world


def lines(world: World) -> list[Line]:
    return [Line.from_bytes(data, i) for i, data in enumerate(world.journal)]


def test_a_new_slot_writes_its_empty_checkpoint_before_anything_is_learnt() -> None:
    world = World({("events", 0): records(1, 30)})

    recovered = recover(world, config_of())

    assert recovered.found == "new"
    (checkpoint,) = world.checkpoints
    assert checkpoint.position.seq == 0
    (opening,) = lines(world)
    assert opening.is_opening and opening.first_of_lineage and opening.parent is None


def test_every_start_writes_an_opening_line_of_the_same_lineage(world: World) -> None:
    before = len(world.journal)

    recovered = recover(world, config_of())

    opening = lines(world)[before]
    assert opening.is_opening and not opening.first_of_lineage
    assert opening.lineage == recovered.position.lineage
    assert recovered.position.journal_offset == before + 1


def test_an_untouched_restart_learns_nothing_again_and_writes_no_checkpoint(world: World) -> None:
    before = len(world.checkpoints)

    recovered = recover(world, config_of())

    assert (recovered.found, recovered.replayed) == ("checkpoint", 0)
    assert len(world.checkpoints) == before


def test_a_start_without_checkpoint_is_refused_where_the_slot_has_learnt_before(world: World) -> None:
    world.checkpoints.clear()

    with pytest.raises(StateError, match=r"has learnt before.*on_missing: replay"):
        recover(world, config_of())
    assert not world.checkpoints


def test_all_of_the_journal_can_be_learnt_again(world: World) -> None:
    expected = world.checkpoints[-1].digests["first"]
    world.checkpoints.clear()

    recovered = recover(world, config_of(checkpoint={"on_missing": "replay"}))

    assert recovered.replayed == 30
    assert digests(recovered.models)["first"] == expected() if callable(expected) else expected
    assert world.checkpoints[-1].position.seq == recovered.position.seq > 0


def test_fresh_begins_an_empty_model_in_a_new_lineage_where_the_group_stands(world: World) -> None:
    old = lines(world)[-1].lineage
    world.checkpoints.clear()
    config = config_of(checkpoint={"on_missing": "fresh"})

    recovered = recover(world, config)
    grown(world, 2)
    live(world, config)

    assert recovered.position.seq == 0
    assert recovered.position.lineage != old
    learnt = [r for line in lines(world) if line.lineage != old for r in line.ranges]
    assert (learnt[0].start, learnt[-1].end) == (30, 50)


def test_after_fresh_the_next_start_finds_the_new_lineage_only(world: World) -> None:
    world.checkpoints.clear()
    recover(world, config_of(checkpoint={"on_missing": "fresh"}))
    grown(world, 2)
    expected = live(world, config_of())

    recovered = recover(world, config_of())

    assert digests(recovered.models) == expected


def test_after_fresh_only_the_new_history_is_learnt_again(world: World) -> None:
    world.checkpoints.clear()
    recover(world, config_of(checkpoint={"on_missing": "fresh"}))
    grown(world, 2)
    expected = live(world, config_of())
    world.checkpoints.clear()

    recovered = recover(world, config_of(checkpoint={"on_missing": "replay"}))

    assert (recovered.replayed, digests(recovered.models)) == (20, expected)


def test_a_start_that_died_before_its_first_commit_is_new_again() -> None:
    world = World({("events", 0): records(1, 30)})
    recover(world, config_of())
    world.checkpoints.clear()

    assert recover(world, config_of()).found == "new"


def test_a_state_directory_that_another_lineage_has_overtaken_is_refused(world: World) -> None:
    stale = list(world.checkpoints)
    world.checkpoints.clear()
    live(world, config_of(checkpoint={"on_missing": "fresh"}))
    grown(world, 2)
    live(world, config_of())
    world.checkpoints[:] = stale

    with pytest.raises(StateError, match="another lineage"):
        recover(world, config_of())


def test_a_changed_learner_is_refused_naming_what_changed(world: World) -> None:
    changed = config_of({"first": {"algorithm": "arow", "params": {"r": 2.0}}})

    with pytest.raises(StateError, match=r"params\.r: 1\.0 -> 2\.0"):
        recover(world, changed)


def test_records_are_learnt_again_under_the_settings_of_their_time(world: World) -> None:
    """The crash leaves lines after the checkpoint; the weights change with the same stop."""
    plain = World(dict(world.inputs))
    expected = live(plain, config_of())
    world.checkpoints[:] = world.checkpoints[:1]
    heavier = config_of({"first": {"algorithm": "arow", "class_weights": {"1": 5.0}}})

    recovered = recover(world, heavier)

    assert recovered.replayed == 30
    assert digests(recovered.models) == expected
    assert world.checkpoints[-1].settings["learners"]["first"]["class_weights"] == {"1": 5.0}


def test_a_new_learner_begins_empty_and_the_others_go_on(world: World) -> None:
    before = digests(recover(world, config_of()).models)

    recovered = recover(world, config_of({**ONE, "second": {"algorithm": "pa1"}}))

    assert recovered.models["second"].tally.seen == 0
    assert recovered.models["first"].digest() == before["first"]
    assert set(world.checkpoints[-1].states) == {"first", "second"}


def test_a_removed_learner_leaves_the_checkpoint(world: World) -> None:
    recover(world, config_of({**ONE, "second": {"algorithm": "pa1"}}))

    recovered = recover(world, config_of())

    assert set(recovered.models) == {"first"}
    assert set(world.checkpoints[-1].states) == {"first"}


def test_a_topic_made_anew_is_refused(world: World) -> None:
    world.checkpoints.clear()
    facts = {"topic_ids": {"events": "old-id"}}
    recover(world, config_of(checkpoint={"on_missing": "fresh"}), facts)

    with pytest.raises(StateError, match=r"events was made anew.*old-id.*new-id"):
        recover(world, config_of(), {"topic_ids": {"events": "new-id"}})


def test_a_missing_line_is_refused(world: World) -> None:
    world.checkpoints[:] = world.checkpoints[:1]
    second = next(i for i, line in enumerate(lines(world)) if line.seq == 2)
    world.journal[second] = Line(1, "other", "slot").to_bytes()

    with pytest.raises(StateError, match="misses line 2"):
        recover(world, config_of())
