"""The configuration changes while the worker runs and dies, and every record is learnt under that of its place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from olstream.config import Config
from olstream.io.starts import begin
from olstream.journal import Line, Range
from olstream.loop import Loop
from olstream.messages import Chunk
from olstream.pipeline import Pipeline
from olstream.ports import Lost
from olstream.recover import begun
from olstream.relearn import under
from tests.fakes import (
    Crash,
    FakeSource,
    World,
    chunk_of,
    digests,
    ranges_learnt,
)
from tests.simulation.lives import begun as begin_life
from tests.simulation.lives import recover
from tests.simulation.test_crashes import by_topic, config_of, world_of
from tests.simulation.upkeep import verify

END = 60
AT = ("events", 0)


def changed(config: Config, **sections: Any) -> Config:
    said = config.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return Config.model_validate(said | sections)


def late(world: World, behind: int = 12) -> World:
    """Labels of every other record come by themselves, that much later: over a reload, for some of them."""
    values: list[Any] = [orjson.loads(value) if value and value != b"{" else None for value in world.inputs[AT]]
    for i in range(0, END - behind, 2):
        if values[i] is not None and values[i + behind + 1] is not None:
            values[i + behind + 1] = {"id": values[i]["id"], "label": values[i].pop("label") or 0}
    world.inputs[AT] = [None if value is None else orjson.dumps(value) for value in values]
    return world


def files(guarantee: str = "exactly_once") -> dict[int, Config]:
    """What the configuration's file says from which offset on."""
    base = config_of(guarantee)
    learners = base.model_dump(mode="json", by_alias=True, exclude_unset=True)["learners"]
    third = learners | {"third": {"algorithm": "pa2"}}
    heavier = third | {"first": third["first"] | {"class_weights": {"1": 5.0}}}
    return {
        0: base,
        15: changed(base, learners=third, routes=[{"when": {}, "learner": "first", "shadows": ["second", "third"]}]),
        30: changed(
            base,
            learners=heavier,
            routes=[{"when": {}, "learner": "third", "shadows": ["first"]}],
            join={"pending_max": 2, "ttl": "20ms"},
        ),
        45: changed(base, learners={"third": third["third"]}, routes=[], monitor={"drift": ["ddm"], "window": 10}),
    }


class InFives(FakeSource):
    """Five records at a time, so that a life that begins anew stands at the same places."""

    def poll(self, records_max: int, timeout_s: float) -> list[Chunk]:
        self.world.tick()
        start = self.next[AT]
        end = min(start + 5, END)
        self.next[AT] = end
        return [chunk_of(self.world, Range(*AT, start, end))] if end > start else []


def in_force(files: Mapping[int, Config], offset: int) -> Config:
    return files[max(start for start in files if start <= offset)]


def reload(loop: Loop, config: Config) -> None:
    """What the worker does between two steps when the file was read again."""
    loop.commit()
    known = loop.pipeline.models
    new, starts = begun(config, [name for name in config.learners if name not in known], begin)
    loop.reconfigure(config, Pipeline(config, under(config, {**known, **new})), starts)


def live(world: World, files: Mapping[int, Config], until: int = END) -> dict[str, str]:
    config = in_force(files, world.committed.get(AT, 0))
    loop = begin_life(world, config, lambda: InFives(world, 0))
    source = loop.source
    assert isinstance(source, InFives)
    while source.next[AT] < until:
        loop.step()
        if (now := in_force(files, source.next[AT])) is not loop.config:
            reload(loop, now)
    loop.checkpoint()
    return digests(loop.pipeline.models)


def live_through(world: World, files: Mapping[int, Config]) -> dict[str, str]:
    while True:
        try:
            return live(world, files)
        except (Crash, Lost):
            world.crash_at = world.lose_at = -1


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
@pytest.mark.parametrize("end", ["crash_at", "lose_at"])
def test_whatever_happens_around_a_reload_models_and_predictions_are_the_same(guarantee: str, end: str) -> None:
    straight = late(world_of(1))
    expected = live_through(straight, files(guarantee))

    for call in range(1, straight.calls + 1, 1 if end == "crash_at" else 3):
        world = late(world_of(1))
        setattr(world, end, call)

        assert live_through(world, files(guarantee)) == expected, f"at call {call}"
        if guarantee == "exactly_once":
            assert ranges_learnt(world) == [Range(*AT, 0, END)]
            assert by_topic(world) == by_topic(straight), f"at call {call}"
        else:
            assert set(straight.visible) <= set(world.visible), f"at call {call}"


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once"])
@pytest.mark.parametrize("from_empty", [False, True])
def test_after_a_crash_anywhere_around_a_reload_every_checkpoint_is_equal(guarantee: str, from_empty: bool) -> None:
    straight = late(world_of(1))
    live_through(straight, files(guarantee))

    for call in range(1, straight.calls + 1, 4):
        world = late(world_of(1))
        world.crash_at = call
        live_through(world, files(guarantee))

        compared = verify(world, in_force(files(guarantee), END), from_empty)

        assert [one.difference for one in compared] == [""] * len(world.checkpoints), f"crash at {call}"
        assert not any(one.starts for one in compared[0 if from_empty else 1 :]), f"crash at {call}"


def test_a_reload_is_the_same_as_a_stop_and_a_start() -> None:
    by_reload, by_start = late(world_of(1)), late(world_of(1))
    expected = live_through(by_reload, files())

    for offset in (15, 30, 45, END):
        config = in_force(files(), offset - 1)
        found = live(by_start, {0: config}, until=offset)

    assert found == expected
    assert by_topic(by_start) == by_topic(by_reload)


def test_what_a_reload_left_undone_is_learnt_again_as_a_line_without_records() -> None:
    """A death between its line and its checkpoint: the next start finds the line, and nothing in it."""
    world = world_of(1)
    live_through(world, files())
    empty = [line for line in lines(world) if line.seq is not None and not line.ranges]

    assert len(empty) == len(files()) - 1
    assert recover(world, in_force(files(), END)).position.seq == max(line.seq or 0 for line in lines(world))


def test_a_learner_that_begins_with_weights_has_them_told_in_the_journal(tmp_path: Path) -> None:
    weights = tmp_path / "weights.json"
    weights.write_bytes(orjson.dumps({"f1": 0.5}))
    said = config_of().model_dump(mode="json", by_alias=True, exclude_unset=True)
    said["learners"]["third"] = {"algorithm": "pa2", "start_from": str(weights)}
    world, both = world_of(1), {0: config_of(), 30: changed(config_of(), learners=said["learners"])}

    live_through(world, both)

    assert [line.starts.keys() for line in lines(world) if line.starts] == [{"third"}]
    compared = verify(world, both[30])
    assert [one.difference for one in compared] == [""] * len(compared)


def lines(world: World) -> list[Line]:
    return [Line.from_bytes(data, i) for i, data in enumerate(world.journal)]
