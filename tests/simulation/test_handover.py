"""Partitions move between slots, and slots die: every label is learnt once, by whoever has its features."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import orjson
import pytest

from olstream.config import Config
from olstream.handover import read_note
from olstream.journal import Line
from tests.fakes import World, digests
from tests.simulation.group import Group, Member
from tests.simulation.lives import recover
from tests.simulation.upkeep import roll_back, verify

NUMBERS, SLOTS = 3, 2
ONE_STEP = 0.3  # what one row of its own changes its own weight by


def config_of(*topics: str, guarantee: str = "exactly_once") -> Config:
    learner = {"algorithm": "pa1", "task": "regression", "params": {"C": ONE_STEP}, "bias": False}
    return Config.model_validate({
        "guarantee": guarantee,
        "input": {"topics": list(dict.fromkeys(topics)), "batch_max": 7},
        "output": {"outcomes": "outcomes"},
        "commit_interval": "500ms",
        "checkpoint": {"interval": "3s"},
        "learners": {"first": learner, "second": learner},
        "routes": [{"when": {}, "learner": "first", "shadows": ["second"]}],
    })  # fmt: skip


class Stream:
    """Features that have a name of their own each, and labels anywhere behind them or before."""

    def __init__(self, world: World, rng: random.Random, features: str, labels: str) -> None:
        self.world, self.random = world, rng
        self.features, self.labels = features, labels
        self.owed: list[tuple[str, int, str]] = []
        self.labelled: set[str] = set()
        self.told: list[tuple[str, int]] = []
        self.n = 0

    def goes_on(self) -> None:
        """Some records more."""
        for _ in range(self.random.randrange(12)):
            if self.owed and self.random.random() < 0.55:
                self._put(*self.owed.pop(self.random.randrange(len(self.owed))))
            elif self.told and self.random.random() < 0.1:
                name, number = self.random.choice(self.told)
                self._put("label", number, name, once_more=True)
            else:
                self._begins()

    def ends(self) -> None:
        for what, number, name in self.owed:
            self._put(what, number, name)
        self.owed.clear()

    def _begins(self) -> None:
        self.n += 1
        name, number = f"x{self.n}", self.random.randrange(NUMBERS)
        kind = self.random.random()
        if kind < 0.1:
            self._put("both", number, name)
        elif kind < 0.25:
            self._put("label", number, name)
            self.owed.append(("features", number, name))
        else:
            self._put("features", number, name)
            if kind < 0.85:
                self.owed.append(("label", number, name))

    def _put(self, what: str, number: int, name: str, once_more: bool = False) -> None:
        message: dict[str, Any] = {"id": name}
        if what != "label":
            message["features"] = {name: 1.0}
        if what != "features":
            message["label"] = 1.0
            self.labelled.add(name)
            if not once_more:
                self.told.append((name, number))
        topic = self.labels if what == "label" else self.features
        at_ms = 1_764_460_800_000 + 10 * sum(map(len, self.world.inputs.values())) + self.random.choice([0, 0, 300])
        self.world.inputs[topic, number].append(orjson.dumps(message | {"ts": at_ms}))


def is_done(world: World) -> bool:
    return all(world.committed.get(at, 0) == len(values) for at, values in world.inputs.items())


def lived(
    seed: int, features: str, labels: str, steps: bool, dies: float, guarantee: str = "exactly_once"
) -> tuple[Stream, list[Member], World]:
    rng = random.Random(seed)
    world = World({(topic, number): [] for topic in {features, labels} for number in range(NUMBERS)})
    stream = Stream(world, rng, features, labels)
    group = Group(dict.fromkeys(range(NUMBERS), 0), steps)
    config = config_of(features, labels, guarantee=guarantee)
    members = [Member(world.of_slot(slot), config, group, rng.randrange(1000)) for slot in range(SLOTS)]
    for turn in range(400):
        if turn < 250:
            stream.goes_on()
        elif turn == 250:
            stream.ends()
        if rng.random() < 0.07 and turn < 300:
            group.share_out(rng, SLOTS)
        member = rng.choice(members)
        if rng.random() < dies and turn < 300:
            end = member.world.calls + rng.randrange(1, 12)
            member.world.crash_at, member.world.lose_at = rng.choice([(end, -1), (-1, end)])
        member.step()
    for _ in range(200):
        for member in members:
            member.step()
    assert is_done(world)
    for member in members:
        assert member.loop is not None
        member.loop.commit()
    return stream, members, world


def weights(members: list[Member], learner: str) -> list[tuple[str, float]]:
    """Of all slots together."""
    found: list[tuple[str, float]] = []
    for member in members:
        assert member.loop is not None
        model = member.loop.pipeline.models[learner]
        found += [(name, weight) for name, weight in model.weights().items() if weight]
    return sorted(found)


@pytest.mark.parametrize("topics", [("features", "labels"), ("events", "events")], ids=["two topics", "one topic"])
@pytest.mark.parametrize("steps", [False, True], ids=["all anew", "in steps"])
@pytest.mark.parametrize("dies", [0.0, 0.04], ids=["alive", "dies"])
@pytest.mark.parametrize("seed", range(3))
def test_every_label_is_learnt_once_wherever_its_partition_goes(
    topics: tuple[str, str], steps: bool, dies: float, seed: int
) -> None:
    stream, members, world = lived(seed, *topics, steps, dies)

    wanted = [(name, ONE_STEP) for name in sorted(stream.labelled)]
    assert weights(members, "first") == wanted
    assert weights(members, "second") == wanted
    predicted = Counter(orjson.loads(value)["id"] for topic, _, value in world.visible if topic == "predictions")
    assert predicted == Counter({f"x{i}": 1 for i in range(1, stream.n + 1)})
    moves = [orjson.loads(line) for line in world.journal if b'"adopted"' in line]
    assert any(start < end for line in moves for _, _, start, end, _, _ in line["adopted"])


@pytest.mark.parametrize("dies", [0.0, 0.04], ids=["alive", "dies"])
@pytest.mark.parametrize("seed", range(2))
def test_at_least_once_no_label_is_left_out(dies: float, seed: int) -> None:
    stream, members, _ = lived(seed, "features", "labels", False, dies, "at_least_once")

    learnt = weights(members, "first")
    assert set(learnt) == {(name, ONE_STEP) for name in stream.labelled}
    assert dies or len(learnt) == len(stream.labelled)
    for member in members:
        assert [compared.difference for compared in verify(member.world, member.config) if compared.difference] == []


@pytest.mark.parametrize("steps", [False, True], ids=["all anew", "in steps"])
def test_learning_the_journal_again_gives_every_slot_its_models(steps: bool) -> None:
    _, members, world = lived(11, "features", "labels", steps, 0.02)

    for at, note in world.notes.items():
        has_it = next(m.world.slot for m in members if m.loop is not None and at in m.loop.source.next)  # type: ignore[attr-defined]
        assert (found := read_note(note)) is not None and found.slot == has_it, "else it would be read again for ever"
    for member in members:
        assert [compared.difference for compared in verify(member.world, member.config) if compared.difference] == []
        expected = member.digests()
        first = member.world.checkpoints[:1]
        assert first[0].position.seq == 0
        for kept in ([], first, list(member.world.checkpoints)):
            member.world.checkpoints[:] = kept
            config = member.config.model_copy(
                update={"checkpoint": member.config.checkpoint.model_copy(update={"on_missing": "replay"})}
            )
            assert digests(recover(member.world, config).models) == expected


class Pair:
    """Two slots and two partitions, and what comes into them."""

    def __init__(self) -> None:
        self.world = World({(topic, number): [] for topic in ("features", "labels") for number in range(2)})
        self.group, config = Group({0: 0, 1: 1}, steps=False), config_of("features", "labels")
        self.members = [Member(self.world.of_slot(slot), config, self.group, seed=slot) for slot in range(2)]

    def features(self, start: int, end: int) -> None:
        self._come("features", {}, start, end)

    def labels(self, start: int, end: int) -> None:
        self._come("labels", {"label": 1.0}, start, end)

    def _come(self, topic: str, said: dict[str, Any], start: int, end: int) -> None:
        for i in range(start, end):
            message = {"id": f"x{i}", **(said or {"features": {f"x{i}": 1.0}})}
            self.world.inputs[topic, i % 2].append(orjson.dumps(message))

    def work(self) -> None:
        for _ in range(60):
            for member in self.members:
                member.step()
        assert is_done(self.world)

    def stop(self) -> None:
        for member in self.members:
            member.stop()

    def assert_learnt(self, *ids: int) -> None:
        assert weights(self.members, "first") == sorted((f"x{i}", ONE_STEP) for i in ids)
        for member in self.members:
            assert [
                compared.difference for compared in verify(member.world, member.config) if compared.difference
            ] == []


@pytest.mark.parametrize("to_empty", [True, False])
@pytest.mark.parametrize("moves", [True, False])
def test_a_rollback_drops_what_waits_in_its_own_slot_alone(to_empty: bool, moves: bool) -> None:
    """Whoever else has its partitions from then on finds it: for them nothing has been dropped."""
    pair = Pair()
    pair.features(0, 20)
    pair.labels(0, 4)
    pair.work()
    pair.features(20, 30)
    pair.labels(4, 8)
    pair.work()
    pair.stop()
    first = pair.members[0]
    before = next(c for c in first.world.checkpoints if c.position.offsets.get(("labels", 0), 0) == 2)

    roll_back(first.world, first.config, None if to_empty else before.position.seq)
    pair.group.wanted = {0: 1, 1: 0} if moves else {0: 0, 1: 1}
    pair.labels(8, 30)
    pair.work()

    kept = [] if to_empty else [0, 2]
    then = range(8, 30, 2) if moves else [] if to_empty else range(8, 20, 2)
    pair.assert_learnt(*kept, *then, *range(1, 30, 2))


def test_what_was_read_for_features_that_wait_need_not_be_there_any_more_at_the_next_start() -> None:
    """It may be as old as retention allows: a checkpoint follows at once."""
    pair, hour = Pair(), {"interval_s": 3600.0}
    for member in pair.members:
        checkpoint = member.config.checkpoint.model_copy(update=hour)
        member.config = member.config.model_copy(update={"checkpoint": checkpoint})
    pair.features(0, 20)
    pair.work()

    pair.group.share_out(random.Random(1), 1)
    pair.work()

    told = [Line.from_bytes(line, 0) for line in pair.world.journal if b'"adopted"' in line]
    read = [line for line in told if any(one.start < one.end for one in line.adopted)]
    assert [line.slot for line in read] == [0]
    assert [checkpoint.position.seq for checkpoint in pair.members[0].world.checkpoints] == [0, read[0].seq]
