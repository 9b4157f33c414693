"""What waits for labels when its partition moves: what is noted, what is read again, and what waits then."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import orjson
import pytest

from olstream.checkpoint import Partition
from olstream.config import Config
from olstream.handover import NOTE_BYTES_MAX, Note, Taken, adoption, read_note
from olstream.journal import Adopted, Range
from olstream.messages import Chunk
from olstream.model import Model
from olstream.pipeline import Pipeline, Processed
from olstream.waiting import Row

FIRST_MS = 1_764_460_800_000
LEARNER = {"algorithm": "pa1", "task": "regression", "bias": False}
F, L = ("features", 0), ("labels", 0)


def config_of(*topics: str, slot: int = 0, **join: Any) -> Config:
    return Config.model_validate({
        "slot": slot,
        "input": {"topics": list(topics or ("features", "labels"))},
        "output": {"outcomes": "outcomes"},
        "learners": {"first": LEARNER, "second": LEARNER | {"algorithm": "arow"}},
        "routes": [{"learner": "first", "shadows": ["second"]}],
        "join": join,
    })  # fmt: skip


def features(id_: Any, at: int = 0, **more: Any) -> dict[str, Any]:
    return {"id": id_, "features": {f"x{id_}": 1.0}, "ts": FIRST_MS + at, **more}


def label(id_: Any, at: int = 0, **more: Any) -> dict[str, Any]:
    return {"id": id_, "label": 1, "ts": FIRST_MS + at, **more}


class Slot:
    """A pipeline, and the topics that it and others read."""

    def __init__(self, topics: dict[Partition, list[Any]], config: Config | None = None) -> None:
        self.topics, self.config = topics, config or config_of()
        models = {name: Model(name, of, self.config.monitor) for name, of in self.config.learners.items()}
        self.pipeline = Pipeline(self.config, models)

    def chunk(self, wanted: Range) -> Chunk:
        messages = self.topics[wanted.topic, wanted.partition][wanted.start : wanted.end]
        n, offsets = len(messages), list(range(wanted.start, wanted.end))
        values = [orjson.dumps(message) for message in messages]
        nothing: list[Any] = [None] * n
        return Chunk(wanted.topic, wanted.partition, offsets, [FIRST_MS] * n, nothing, list(values), nothing)

    def reads(self, at: Partition, start: int, end: int) -> Processed:
        return self.pipeline.process(self.chunk(Range(*at, start, end)))

    def adopts(self, *adopted: Adopted, size: int = 500) -> list[Range]:
        """What was read for it."""
        asked = []

        def read(wanted: Range) -> Iterator[Chunk]:
            asked.append(wanted)
            for start in range(wanted.start, wanted.end, size):
                end = min(start + size, wanted.end)
                yield self.chunk(Range(wanted.topic, wanted.partition, start, end))

        self.pipeline.move((), adopted, read)
        return asked

    def waiting(self, learner: str = "first") -> dict[str, bool]:
        """By id: whether features wait there, or a label."""
        return {key: isinstance(entry, Row) for key, entry in self.models[learner].waiting.entries.items()}

    def note(self, at: Partition) -> Note:
        note = read_note(self.pipeline.note(at))
        assert note is not None
        return note

    @property
    def models(self) -> Mapping[str, Model]:
        return self.pipeline.models


def empty_of(*topics: str) -> Slot:
    return Slot({(topic, 0): [] for topic in topics}, config_of(*topics))


# Notes


def test_where_nothing_waits_the_note_says_whose_it_is() -> None:
    slot = Slot({F: [features(1)], L: [label(1)]}, config_of(slot=7))

    slot.reads(F, 0, 1)
    slot.reads(L, 0, 1)

    assert slot.note(F) == slot.note(L) == Note(7)


def test_a_note_says_what_waits_and_from_where_to_read_to_find_it_again() -> None:
    slot = Slot({F: [features(i) for i in range(9)], L: [label(20), label(0), label(21), label(2)]})

    slot.reads(F, 0, 3)
    slot.reads(L, 0, 2)
    slot.reads(F, 3, 9)
    slot.reads(L, 2, 4)

    assert slot.note(F) == Note(0, row=1, since={"features": 0, "labels": -1})
    assert slot.note(L) == Note(0, early=0, since={"features": 0, "labels": 0})
    assert slot.note(("features", 1)) == Note(0)


def test_features_may_meet_labels_that_wait_and_labels_features_that_wait() -> None:
    slot = Slot({F: [features(i) for i in range(9)], L: [label(20), label(0), label(21), label(1), label(22)]})

    slot.reads(L, 0, 1)
    slot.reads(F, 0, 2)
    slot.reads(L, 1, 2)
    slot.reads(F, 2, 4)
    slot.reads(L, 2, 4)

    assert slot.note(F) == Note(0, row=2, since={"features": 2, "labels": 0})
    assert slot.note(L) == Note(0, early=0, since={"features": -1, "labels": 0})


def test_a_note_of_one_topic_goes_back_to_the_label_that_came_first() -> None:
    at = ("events", 0)
    slot = Slot({at: [label(5), label(6), features(1), features(6), features(5)]}, config_of("events"))

    for i in range(4):
        slot.reads(at, i, i + 1)
    before = slot.note(at)
    slot.reads(at, 4, 5)

    assert before == Note(0, row=2, early=0, since={"events": 0})
    assert slot.note(at) == Note(0, row=2, since={"events": 0})


@pytest.mark.parametrize("text", ["", "{", "0", "[]", '["a"]', "[0,1,2,[3]]", "-something", "[0,1.5]"])
def test_other_texts_are_no_notes(text: str) -> None:
    assert read_note(text) is None


def test_a_note_that_is_too_long_for_a_broker_leaves_out_where_to_read_from() -> None:
    topics = [f"{i}-{'x' * 200}" for i in range(20)]
    slot = Slot({(topics[0], 0): [features(1)]}, config_of(*topics))

    slot.reads((topics[0], 0), 0, 1)

    assert slot.note((topics[0], 0)) == Note(0, row=0)
    assert len(slot.pipeline.note((topics[0], 0))) < NOTE_BYTES_MAX
    taken = {(topic, 0): Taken(50, slot.note((topic, 0))) for topic in topics}
    assert {one.start for one in adoption(taken, 1, (), ())} == {0}


# What has to be read


def test_what_stays_ours_is_not_read_again() -> None:
    taken = {F: Taken(50, Note(0, 10, since={"features": 10, "labels": 5})), L: Taken(40, Note(0))}

    assert adoption(taken, 0, {F}, ()) == ()


def test_what_another_slot_had_is_read_from_where_its_notes_say() -> None:
    taken = {
        F: Taken(50, Note(1, 10, since={"features": 9, "labels": 5})),
        L: Taken(40, Note(1, None, 30, since={"features": 7, "labels": 30})),
    }

    assert adoption(taken, 0, (), ()) == (
        Adopted("features", 0, 7, 50, 10, 50),
        Adopted("labels", 0, 5, 40, 40, 30),
    )


def test_where_nothing_waits_only_the_places_of_topics_with_the_same_keys_are_told() -> None:
    pair = {F: Taken(50, Note(1)), L: Taken(40, Note(1))}

    assert adoption(pair, 0, (), ()) == (Adopted(*F, 50, 50, 50, 50), Adopted(*L, 40, 40, 40, 40))
    assert adoption({F: pair[F]}, 0, (), ()) == ()


def test_a_partition_that_we_gave_up_is_read_again_though_nobody_else_has_committed_it() -> None:
    taken = {F: Taken(50, Note(0, 10, since={"features": 10, "labels": 5})), L: Taken(40, Note(0))}

    assert adoption(taken, 0, (), {F}) == (Adopted(*F, 10, 50, 10, 50), Adopted(*L, 5, 40, 40, 40))


def test_what_we_hold_of_a_partition_that_another_slot_had_meanwhile_is_gathered_anew() -> None:
    """The other one has learnt labels only, so that beside the features our own note still stands."""
    taken = {F: Taken(50, Note(0, 10, since={"features": 10, "labels": 5})), L: Taken(40, Note(1))}

    assert adoption(taken, 0, {F}, ()) == (Adopted(*F, 10, 50, 10, 50), Adopted(*L, 5, 40, 40, 40))


def test_what_we_hold_stays_where_notes_are_gone() -> None:
    """After a rollback, say."""
    taken = {F: Taken(50, None), L: Taken(40, None)}

    assert adoption(taken, 0, {F}, ()) == (Adopted(*L, 40, 40, 40, 40),)


def test_partitions_of_other_numbers_are_no_matter() -> None:
    one = ("features", 1)
    taken = {F: Taken(50, Note(1, 10, since={"features": 10})), one: Taken(60, Note(0, 3, since={"features": 3}))}

    assert adoption(taken, 0, {one}, ()) == (Adopted(*F, 10, 50, 10, 50),)


def test_what_retention_took_is_not_read() -> None:
    adopted = Adopted(*F, 10, 50, 12, 50)

    assert adopted.from_there(0) == adopted
    assert adopted.from_there(20) == Adopted(*F, 20, 50, 12, 50)
    assert adopted.from_there(70) == Adopted(*F, 50, 50, 12, 50)


# What waits then


def test_features_without_a_label_wait_and_labels_without_features_from_where_they_waited() -> None:
    slot = Slot({
        F: [features(1), features(2), features(3, label=1), {"features": {"a": 1.0}}, features(4, weight=0.0)],
        L: [label(7), label(2), label(8), label(9, weight=0.0), label(3)],
    })  # fmt: skip

    asked = slot.adopts(Adopted(*F, 0, 5, 0, 5), Adopted(*L, 0, 5, 5, 2))

    assert asked == [Range(*F, 0, 5), Range(*L, 0, 5)]
    assert slot.waiting("first") == {"1": True, "8": False}
    assert slot.waiting("second") == {"1": True}


def test_features_that_were_done_with_do_not_wait_again() -> None:
    slot = Slot({F: [features(1), features(2)], L: []})

    slot.adopts(Adopted(*F, 0, 2, 1, 2), Adopted(*L, 0, 0, 0, 0))

    assert slot.waiting() == {"2": True}


def test_a_label_that_is_no_label_settles_nothing() -> None:
    slot = Slot({F: [features(1)], L: [label(1) | {"label": "high"}]})

    slot.adopts(Adopted(*F, 0, 1, 0, 1), Adopted(*L, 0, 1, 1, 1))

    assert slot.waiting() == {"1": True}


def test_the_label_of_features_that_another_slot_predicted_is_learnt_and_not_measured() -> None:
    slot = Slot({F: [features(1), features(2)], L: [label(1)]})

    slot.adopts(Adopted(*F, 0, 2, 0, 2), Adopted(*L, 0, 0, 0, 0))
    done = slot.reads(L, 0, 1)

    model = slot.models["first"]
    assert model.weights()["x1"] > 0.0 and model.waiting.joined == 1
    assert (model.tally.labelled, model.tally.updates) == (0, 1)
    assert [result.rows.counts.unmeasured for result in done.results] == [1, 1]
    assert not done.outcomes
    assert slot.waiting() == {"2": True}


def test_a_label_that_has_been_learnt_elsewhere_is_a_duplicate_here() -> None:
    slot = Slot({F: [features(1)], L: [label(1), label(1)]})

    slot.adopts(Adopted(*F, 0, 1, 0, 1), Adopted(*L, 0, 1, 1, 1))
    done = slot.reads(L, 1, 2)

    assert done.joined.unmatched == {("first", "duplicate"): 1}
    assert not slot.models["first"].weights().get("x1")


def test_what_waited_here_of_a_partition_that_comes_is_gathered_anew() -> None:
    slot = Slot({F: [features(1), features(2)], L: [label(1)]})
    slot.reads(F, 0, 2)

    slot.adopts(Adopted(*F, 0, 2, 0, 2), Adopted(*L, 0, 1, 1, 1))

    assert slot.waiting() == {"2": True}
    assert not any(
        entry.is_measured for entry in slot.models["first"].waiting.entries.values() if isinstance(entry, Row)
    )


def test_what_leaves_waits_no_more_and_what_stays_does() -> None:
    one = ("features", 1)
    slot = Slot({F: [features(1)], one: [features(2)], L: [label(3)]})
    for at in (F, one, L):
        slot.reads(at, 0, 1)

    slot.pipeline.move([F, L], (), lambda _: iter(()))

    assert slot.waiting() == {"2": True}
    assert slot.pipeline.away() == {F, L}
    assert slot.pipeline.held() == {one}


def test_topics_stand_where_they_were_taken_over() -> None:
    slot = Slot({F: [features(i) for i in range(9)], L: []})

    slot.adopts(Adopted(*F, 8, 8, 8, 8), Adopted(*L, 500, 500, 500, 500))
    slot.reads(F, 8, 9)

    assert slot.note(F) == Note(0, row=8, since={"features": 8, "labels": 500})


@pytest.mark.parametrize("seed", range(8))
def test_what_is_left_over_does_not_depend_on_the_order_of_the_records_or_their_batches(seed: int) -> None:
    rng = random.Random(seed)
    ids = range(60)
    has_features = {i for i in ids if rng.random() < 0.8}
    has_label = {i for i in ids if rng.random() < 0.6}
    topics: dict[Partition, list[Any]] = {
        F: [features(i, rng.randrange(1000)) for i in rng.sample(sorted(has_features), len(has_features))],
        L: [label(i, rng.randrange(1000)) for i in rng.sample(sorted(has_label), len(has_label))],
    }
    rows, labels = rng.randrange(len(topics[F])), rng.randrange(len(topics[L]))
    adopted = (
        Adopted(*F, 0, len(topics[F]), rows, len(topics[F])),
        Adopted(*L, 0, len(topics[L]), len(topics[L]), labels),
    )

    slots = [Slot(topics) for _ in range(3)]
    for slot, size in zip(slots, (1, 7, 500), strict=True):
        slot.adopts(*adopted, size=size)

    expected = {str(m["id"]): True for m in topics[F][rows:] if m["id"] not in has_label}
    expected |= {str(m["id"]): False for m in topics[L][labels:] if m["id"] not in has_features}
    assert slots[0].waiting() == expected
    assert len({tuple(model.digest() for model in slot.models.values()) for slot in slots}) == 1
    assert len({slot.pipeline.note(at) for slot in slots for at in (F,)}) == 1


def test_no_more_is_kept_than_may_wait() -> None:
    slot = Slot({F: [features(i, i) for i in range(50)], L: []}, config_of(pending_max=5))

    slot.adopts(Adopted(*F, 0, 50, 0, 50), Adopted(*L, 0, 0, 0, 0))

    assert slot.waiting() == dict.fromkeys(("45", "46", "47", "48", "49"), True)


@pytest.mark.parametrize("seed", range(6))
def test_from_slot_to_slot_what_waits_stays_the_same(seed: int) -> None:
    """Each reads a part of the stream; a slot that has read all of it tells what has to wait."""
    rng = random.Random(seed)
    owed: list[int] = []
    topics: dict[Partition, list[Any]] = {F: [], L: []}
    turns: list[tuple[Partition, int, int]] = []
    for i in range(200):
        for at, id_ in _said(rng, owed, i):
            made = features(id_, 10 * i) if at == F else label(id_, 10 * i)
            topics[at].append(made)
            turns.append((at, len(topics[at]) - 1, len(topics[at])))
    one = Slot(topics)
    slots = [Slot(topics, config_of(slot=slot)) for slot in range(3)]

    ours, stands = slots[0], {F: 0, L: 0}
    for at, start, end in turns:
        if rng.random() < 0.05:
            taken = {at: Taken(stands[at], ours.note(at)) for at in topics}
            ours.pipeline.move(list(topics), (), lambda _: iter(()))
            ours = rng.choice(slots)
            adopted = adoption(taken, ours.config.slot, ours.pipeline.held(), ours.pipeline.away())
            ours.adopts(*(each.from_there(0) for each in adopted))
            assert ours.waiting() == one.waiting()
        ours.reads(at, start, end)
        one.reads(at, start, end)
        stands[at] = end

    assert sum(slot.models["first"].waiting.joined for slot in slots) == one.models["first"].waiting.joined
    learnt = [name for slot in slots for name, weight in slot.models["first"].weights().items() if weight]
    assert sorted(learnt) == sorted(name for name, weight in one.models["first"].weights().items() if weight)


def _said(rng: random.Random, owed: list[int], i: int) -> list[tuple[Partition, int]]:
    """Features, or a label that comes first; and sometimes what is still owed, as a negative number if features."""
    said: list[tuple[Partition, int]] = []
    if rng.random() < 0.8:
        said.append((F, i))
        owed.append(i + 1)
    else:
        said.append((L, i))
        owed.append(-i - 1)
    if rng.random() < 0.7:
        late = owed.pop(rng.randrange(len(owed)))
        said.append((L, late - 1) if late > 0 else (F, -late - 1))
    return said
