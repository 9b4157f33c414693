"""Going back to an earlier checkpoint, and dying on the way there."""

from __future__ import annotations

import copy
from collections import Counter

import pytest

from olstream import rollback
from olstream.config import Config
from olstream.errors import StateError
from olstream.journal import Line, Range
from olstream.rollback import Dropped, without
from tests.fakes import Crash, FakeInputs, FakeJournal, World, digests
from tests.simulation.lives import live, recover
from tests.simulation.test_crashes import config_of, records
from tests.simulation.upkeep import as_written, facts_of, planned, roll_back, verify

BOTH = pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
LEARNT, MORE = records(0, 60), records(7, 20)


def learnt(config: Config) -> World:
    """A slot that has learnt sixty records and stopped in good order, with some checkpoints on the way."""
    world = World({("events", 0): list(LEARNT)})
    live(world, config)
    return world


def grown(world: World) -> World:
    world.inputs["events", 0] += MORE
    return world


def back_at(world: World) -> tuple[int, int]:
    """The seq of a checkpoint that is neither the first nor the last, and how many records it has learnt."""
    _, *between, _ = world.checkpoints
    position = between[0].position
    assert 0 < position.offsets["events", 0] < len(LEARNT)
    return position.seq, position.offsets["events", 0]


def lines(world: World) -> list[Line]:
    return [Line.from_bytes(data, i) for i, data in enumerate(world.journal)]


def made_of(config: Config, *parts: list[bytes | None]) -> dict[str, str]:
    """The digests of models that learn these records and no others."""
    return live(World({("events", 0): [record for part in parts for record in part]}), config)


def assert_verified(world: World, config: Config) -> None:
    for from_empty in (False, True):
        assert [c.difference for c in verify(world, config, from_empty)] == [""] * len(world.checkpoints)


@BOTH
def test_a_start_goes_on_from_the_checkpoint_with_the_records_to_come(guarantee: str) -> None:
    config = config_of(guarantee)
    world = learnt(config)
    seq, n = back_at(world)
    parent = world.checkpoints[0].position.lineage

    roll_back(world, config, seq)
    found = live(grown(world), config)

    assert found == made_of(config, LEARNT[:n], MORE)
    opening = next(line for line in lines(world) if line.parent)
    assert opening.parent == (parent, seq)
    assert next(line.seq for line in lines(world) if line.lineage == opening.lineage and line.seq) == seq + 1
    assert_verified(world, config)


@BOTH
def test_from_the_empty_model_only_the_records_to_come_are_learnt(guarantee: str) -> None:
    config = config_of(guarantee)
    world = learnt(config)

    roll_back(world, config, None)
    found = live(grown(world), config)

    assert found == made_of(config, MORE)
    assert_verified(world, config)


def test_the_records_that_will_not_be_in_the_model_are_told(guarantee: str = "exactly_once") -> None:
    config = config_of(guarantee)
    world = learnt(config)
    seq, n = back_at(world)

    back, to_empty = planned(world, config, seq), planned(world, config, None)

    assert back.dropped == [Dropped(Range("events", 0, n, 60), read_again=0)]
    assert to_empty.dropped == [Dropped(Range("events", 0, 0, 60), read_again=0)]


@BOTH
def test_offsets_that_were_moved_back_are_taken_as_they_stand(guarantee: str) -> None:
    config = config_of(guarantee)
    world = learnt(config)
    seq, n = back_at(world)
    world.committed["events", 0] = n - 5

    plan = planned(world, config, seq)
    roll_back(world, config, seq)
    found = live(world, config)

    assert plan.dropped == [Dropped(Range("events", 0, n, 60), read_again=60 - n)]
    assert found == made_of(config, LEARNT[:n], LEARNT[n - 5 :])
    assert_verified(world, config)


def test_an_offset_that_expired_is_where_the_group_had_learnt_to() -> None:
    config = config_of()
    world = learnt(config)
    world.committed.clear()

    roll_back(world, config, back_at(world)[0])

    assert world.committed == {("events", 0): 60}


def test_an_offset_past_the_end_becomes_the_end() -> None:
    config = config_of()
    world = learnt(config)
    del world.inputs["events", 0][50:]

    roll_back(world, config, back_at(world)[0])

    assert world.committed == {("events", 0): 50}


def test_a_partition_that_nobody_has_read_is_left_alone() -> None:
    config = config_of()
    world = learnt(config)
    world.inputs["events", 1] = list(MORE)

    roll_back(world, config, back_at(world)[0])

    assert world.committed == {("events", 0): 60}
    assert live(world, config) == made_of(config, LEARNT[: back_at_aside(world)], MORE)


def back_at_aside(world: World) -> int:
    """How many records the lineage that is there now began with."""
    *_, (lineage, seq) = [line.parent for line in lines(world) if line.parent]
    places = [c.position for c in world.aside if (c.position.lineage, c.position.seq) == (lineage, seq)]
    return places[-1].offsets["events", 0]


@BOTH
def test_a_rollback_can_be_rolled_back(guarantee: str) -> None:
    config = config_of(guarantee)
    world = learnt(config)
    last = world.checkpoints[-1].position.seq
    roll_back(world, config, back_at(world)[0])
    live(grown(world), config)

    roll_back(world, config, last)
    world.inputs["events", 0] += MORE
    found = live(world, config)

    assert found == made_of(config, LEARNT, MORE)
    assert_verified(world, config)


def test_records_that_the_model_will_have_after_all_are_not_told() -> None:
    """Learnt in two histories, they are in the one that is gone back to."""
    config = config_of()
    world = learnt(config)
    seq, n = back_at(world)
    world.committed["events", 0] = n
    roll_back(world, config, seq)
    live(world, config)

    assert planned(world, config, world.aside[-1].position.seq).dropped == []


@BOTH
@pytest.mark.parametrize("when", ["before its first line", "later", "after a backup was refused"])
def test_a_lost_directory_is_learnt_again_through_the_parents(guarantee: str, when: str) -> None:
    config = config_of(guarantee)
    world = learnt(config)
    backup = list(world.checkpoints)
    roll_back(world, config, back_at(world)[0])
    expected = digests(recover(world, config).models) if when == "before its first line" else live(grown(world), config)
    world.checkpoints.clear()
    if when == "after a backup was refused":
        world.checkpoints[:] = backup
        with pytest.raises(StateError):
            recover(world, config)
        world.checkpoints.clear()

    found = recover(world, replays(config))

    assert digests(found.models) == expected
    assert_verified(world, config)


def replays(config: Config) -> Config:
    return config.model_copy(update={"checkpoint": config.checkpoint.model_copy(update={"on_missing": "replay"})})


def test_a_lost_directory_is_empty_again_after_a_rollback_to_the_empty_model() -> None:
    config = config_of()
    world = learnt(config)
    roll_back(world, config, None)
    world.checkpoints.clear()

    found = recover(world, replays(config))

    assert (found.position.seq, found.replayed) == (0, 0)
    assert digests(found.models) == made_of(config)


@pytest.mark.parametrize("is_at_work", [False, True])
def test_a_directory_from_before_a_rollback_is_refused(is_at_work: bool) -> None:
    config = config_of()
    world = learnt(config)
    backup = list(world.checkpoints)
    roll_back(world, config, back_at(world)[0])
    if is_at_work:
        live(grown(world), config)
    world.checkpoints[:] = backup

    with pytest.raises(StateError, match=r"another lineage.*state rollback"):
        recover(world, config)


def test_a_backup_can_be_gone_on_from_by_another_rollback() -> None:
    config = config_of()
    world = learnt(config)
    backup = list(world.checkpoints)
    roll_back(world, config, None)
    world.checkpoints[:] = backup

    roll_back(world, config, backup[-1].position.seq)

    assert live(grown(world), config) == made_of(config, LEARNT, MORE)
    assert_verified(world, config)


def test_a_learner_that_changed_can_only_begin_anew() -> None:
    world = learnt(config_of())
    changed = config_of().model_dump(mode="json", by_alias=True, exclude_unset=True)
    changed["learners"]["first"]["params"] = {"r": 3.0}
    config = Config.model_validate(changed)

    with pytest.raises(StateError, match=r"params\.r: 1\.0 -> 3\.0.*state rollback --to empty"):
        planned(world, config, back_at(world)[0])
    roll_back(world, config, None)

    assert live(grown(world), config) == made_of(config, MORE)


def test_it_begins_in_a_journal_that_was_made_anew_and_not_with_inputs_that_were() -> None:
    config = config_of()
    world = learnt(config)
    then = {"topic_ids": {"events": "1", config.journal_topic: "2"}, "journal": {"topic": config.journal_topic}}

    def plan(**ids: str) -> rollback.Plan:
        facts = facts_of(world) | {"topic_ids": {"events": "1", **ids}}
        return rollback.plan(config, None, then, facts, FakeJournal(world), FakeInputs(world))

    assert plan(**{config.journal_topic: "3"}).offsets == {("events", 0): 60}
    with pytest.raises(StateError, match="events was made anew"):
        plan(events="3")


def test_a_checkpoint_that_is_not_what_was_written_is_no_place_to_go_back_to() -> None:
    config = config_of()
    world = learnt(config)
    seq, _ = back_at(world)
    world.checkpoints[:] = as_written(world.checkpoints)
    for checkpoint in world.checkpoints:
        checkpoint.states["first"][1]["weights"][0, -1] += 1.0

    with pytest.raises(StateError, match=f"learner first of checkpoint {seq} is not what was written"):
        planned(world, config, seq)


@BOTH
@pytest.mark.parametrize("to", ["a checkpoint", "empty"])
def test_a_rollback_that_died_anywhere_is_finished_by_the_same_again(guarantee: str, to: str) -> None:
    config = config_of(guarantee)
    straight = learnt(config)
    seq, n = back_at(straight)
    target = seq if to == "a checkpoint" else None
    for call in calls_of_a_rollback(straight, config, target):
        world = copy.deepcopy(straight)
        world.crash_at = call
        with pytest.raises(Crash):
            roll_back(world, config, target)

        roll_back(world, config, target)

        assert live(grown(world), config) == made_of(config, LEARNT[: n if target else 0], MORE), f"crash at {call}"
        assert world.committed == {("events", 0): 80}
        assert len({c.position.lineage for c in world.checkpoints}) == 1
        assert_verified(world, config)


@BOTH
def test_a_start_after_a_rollback_that_died_is_in_the_old_lineage_or_in_the_new_one_or_refused(guarantee: str) -> None:
    config = config_of(guarantee)
    straight = learnt(config)
    seq, n = back_at(straight)
    before, after = made_of(config, LEARNT, MORE), made_of(config, LEARNT[:n], MORE)
    outcomes: Counter[str] = Counter()
    for call in calls_of_a_rollback(straight, config, seq):
        world = copy.deepcopy(straight)
        world.crash_at = call
        with pytest.raises(Crash):
            roll_back(world, config, seq)

        try:
            found = live(grown(world), config)
        except StateError as refused:
            assert "state rollback" in str(refused)
            outcomes["refused"] += 1
            continue

        assert found in (before, after), f"crash at {call}"
        outcomes["old" if found == before else "new"] += 1
        assert len({c.position.lineage for c in world.checkpoints}) == 1
        assert len(world.checkpoints) + len(world.aside) > len(straight.checkpoints)
        assert_verified(world, config)
    assert set(outcomes) == {"old", "new", "refused"}


def calls_of_a_rollback(straight: World, config: Config, seq: int | None) -> range:
    counted = copy.deepcopy(straight)
    roll_back(counted, config, seq)
    return range(straight.calls + 1, counted.calls + 1)


def test_ranges_without_others() -> None:
    given = [Range("t", 0, 0, 10), Range("t", 0, 10, 20), Range("t", 0, 15, 25), Range("u", 1, 5, 9)]
    others = [Range("t", 0, 3, 5), Range("t", 0, 4, 6), Range("t", 1, 0, 99), Range("u", 1, 0, 9)]

    assert without(given, others) == [Range("t", 0, 0, 3), Range("t", 0, 6, 25)]
    assert without(given, []) == [Range("t", 0, 0, 25), Range("u", 1, 5, 9)]
    assert without([], others) == []
