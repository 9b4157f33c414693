"""Late labels: whatever the batches were, all comes out as the rules say record by record."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np
import orjson
import pytest

from olstream.config import Config
from olstream.messages import Chunk
from olstream.model import Model
from olstream.pipeline import Pipeline
from tests.references.join import SlowJoin

N = 500
FIRST_MS = 1_764_460_800_000
LEARNERS: dict[str, Any] = {
    "many": {"algorithm": "scw1", "task": "multiclass", "classes_max": 4, "class_weights": {"v": 2.0}},
    "two": {"algorithm": "arow", "classes": ["u", "v"], "scale": "standard"},
    "full": {"algorithm": "arow", "task": "multiclass", "params": {"covariance": "full"}},
    "number": {"algorithm": "pa1", "task": "regression"},
    "numbers": {"algorithm": "arow", "task": "regression", "bias": False},
    "frozen": {"algorithm": "pa", "task": "multiclass", "classes": ["u", "v", "w"], "learn": False},
}
ROUTES: list[dict[str, Any]] = [
    {"when": {"learner": "number"}, "learner": "number", "shadows": ["numbers"]},
    {"when": {"field.kind": "odd"}, "learner": "full", "shadows": ["many", "frozen"]},
    {"when": {"learner": "frozen"}, "learner": "many"},
    {"when": {"learner": ["two", "full"]}},
    {"learner": "many", "shadows": ["two", "full"]},
]
BOUNDS: dict[str, dict[str, Any]] = {
    "wide": {},
    "few": {"pending_max": 7},
    "small": {"pending_bytes_max": 6000},
    "short": {"ttl_s": 25.0},
}
REASONS = {"expired", "unknown", "duplicate"}


def configured(join: dict[str, Any]) -> Config:
    return Config.model_validate({
        "input": {"topics": ["features", "labels"]}, "learners": LEARNERS, "routes": ROUTES, "join": join,
        "output": {"outcomes": "outcomes", "shadows": "shadows"},
        "monitor": {"window": 50, "fading": 0.9, "drift": ["ddm", "page_hinkley"]},
    })  # fmt: skip


def weight(rng: random.Random) -> dict[str, float]:
    return {"weight": rng.choice([0.0, 0.5, 3.0, 1e308])} if rng.random() < 0.15 else {}


@dataclass
class Stream:
    """Records one by one: (topic, partition, offset, time, message). What has no label yet is open."""

    seed: int
    open: list[tuple[Any, Any]] = field(default_factory=list)
    told: list[tuple[Any, Any]] = field(default_factory=list)

    def records(self, n: int) -> Iterator[tuple[str, int, int, int, object]]:
        self.rng = rng = random.Random(self.seed)
        offsets: Counter[tuple[str, int]] = Counter()
        topic, partition = "features", 0
        for i in range(n):
            if rng.random() < 0.08:
                topic, partition = rng.choice(["features", "features", "labels"]), rng.randrange(2)
            time_ms = FIRST_MS + 1000 * i + rng.choice([0, 0, 0, -40_000, 400_000, 7])
            yield topic, partition, offsets[topic, partition], time_ms, self._message(i, topic)
            offsets[topic, partition] += 1

    def _message(self, i: int, topic: str) -> object:
        rng = self.rng
        leads = rng.choice([{}, {}, {}, {"learner": "number"}, {"kind": "odd"}, {"learner": "frozen"}])
        x = {name: round(rng.gauss(0, 1), 3) for name in "abcde" if rng.random() < 0.8}
        y = "uvwxyz"[min(5, int(abs(x.get("a", 0.0)) * 2))] if rng.random() < 0.9 else rng.choice("uv")
        label: Any = round(x.get("a", 0.0) - x.get("b", 0.0), 2) if leads.get("learner") == "number" else y
        ts = {"ts": FIRST_MS + 1000 * i - 500} if rng.random() < 0.2 else {}
        features = {"features": x | ({"colour": rng.choice(["red", "blue"])} if rng.random() < 0.3 else {})}
        id_ = {"id": rng.choice([i, str(i), f"text {i}"])}
        kind = rng.random() * (0.8 if topic == "features" else 1.6) % 1.0
        if kind < 0.3:
            self.open.append((id_, label))
            return id_ | features | leads | ts | weight(rng)
        if kind < 0.65 and self.open:
            at = rng.randrange(len(self.open))
            id_, label = self.open.pop(at)
            self.told.append((id_, label))
            key = id_["id"]
            return {"id": rng.choice([key, str(key)]), "label": label, **ts, **weight(rng)}
        if kind < 0.7:  # a label that comes first
            self.told.append((id_, label))
            late = id_ | features | leads
            self.open.append((id_, label)) if rng.random() < 0.3 else self.told.append((late, None))
            return id_ | {"label": label} | (leads if rng.random() < 0.5 else {}) | weight(rng)
        if kind < 0.8 and self.told:  # once more, or the features of a label that came first
            again, label = rng.choice(self.told)
            return again | (features if rng.random() < 0.4 else {"label": label if label is not None else "u"})
        if kind < 0.9:
            self.told.append((id_, label))
            return id_ | features | {"label": label} | leads | weight(rng)
        return rng.choice([
            features | {"label": label} | leads, features | leads, id_ | features | {"label": []},
            id_ | {"label": "no such class"}, id_ | {"features": [1.0, 2.0]}, b"{", None, id_ | {"label": 0.5},
            id_ | features | {"label": "no such class"}, features | {"learner": "nobody"},
        ])  # fmt: skip


def chunk_of(records: list[tuple[str, int, int, int, object]]) -> Chunk:
    """Of one partition."""
    topics, partitions, offsets, times, messages = zip(*records, strict=True)
    values = [m if m is None or isinstance(m, bytes) else orjson.dumps(m) for m in messages]
    n = len(values)
    return Chunk(topics[0], partitions[0], list(offsets), list(times), [None] * n, values, [None] * n)


def chunks(records: list[tuple[str, int, int, int, object]], size: Callable[[], int]) -> Iterator[Chunk]:
    run: list[tuple[str, int, int, int, object]] = []
    most = size()
    for record in records:
        if run and (len(run) >= most or record[:2] != run[0][:2]):
            yield chunk_of(run)
            run, most = [], size()
        run.append(record)
    yield chunk_of(run)


class Fed:
    """A pipeline, and everything it made."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.pipeline = Pipeline(config, {n: Model(n, c, config.monitor) for n, c in config.learners.items()})
        self.made: dict[str, list[dict[str, Any]]] = {"predictions": [], "shadows": [], "outcomes": []}
        self.letters: list[tuple[int, str]] = []
        self.unmatched: Counter[tuple[str, str]] = Counter()
        self.joined: Counter[str] = Counter()

    def feed(self, chunk: Chunk) -> None:
        done = self.pipeline.process(chunk)
        of_chunk: dict[str, list[dict[str, Any]]] = {topic: [] for topic in self.made}
        for records in done.outgoing:
            of_chunk[records.topic] += [orjson.loads(value) for value in records.values if value is not None]
        for topic, made in of_chunk.items():
            self.made[topic] += made if topic != "shadows" else sorted(made, key=itemgetter("offset", "learner"))
        for letter in done.dead_letters:
            told = dict(letter.headers)
            self.letters.append((int(told["olstream.offset"] or b""), (told["olstream.reason"] or b"").decode()))
        self.unmatched += done.joined.unmatched
        for result in done.results:
            self.joined[result.model.name] += result.rows.counts.late
        for model in self.models.values():
            assert len(model.waiting) <= self.config.join.pending_max
            assert model.waiting.nbytes <= self.config.join.pending_bytes_max

    def restart(self) -> None:
        """Go on from what a checkpoint would hold."""
        restored = {
            name: Model.restore(name, model.config, self.config.monitor, *model.state())
            for name, model in self.models.items()
        }
        self.pipeline = Pipeline(self.config, restored, offsets=self.pipeline.offsets)

    @property
    def models(self) -> dict[str, Model]:
        return self.pipeline.models

    def digests(self) -> dict[str, str]:
        return {name: model.digest() for name, model in self.models.items()}


def fed(config: Config, seed: int, size: Callable[[], int], restarts: float = 0.0) -> Fed:
    made, rng = Fed(config), random.Random(seed)
    for chunk in chunks(list(Stream(seed).records(N)), size):
        made.feed(chunk)
        if rng.random() < restarts:
            made.restart()
    return made


def by_offset(predictions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(predictions, key=lambda p: (p["topic"], p["partition"], p["offset"], p["learner"]))


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_stream_comes_to_what_the_rules_say_record_by_record(seed: int, bounds: str) -> None:
    config = configured(BOUNDS[bounds])
    records = list(Stream(seed).records(N))
    slow = SlowJoin(config, {name: ["features", "labels"] for name in LEARNERS})

    for chunk in chunks(records, lambda: 1):
        slow.meet(chunk)
    done = fed(config, seed, lambda: 500)

    assert by_offset(done.made["predictions"]) == by_offset(slow.predictions)
    assert by_offset(done.made["shadows"]) == by_offset(slow.shadows)
    # Two variances in one sum, or each in its own, are the same but for the last bit.
    assert done.made["outcomes"] == [told | {"loss": pytest.approx(told["loss"], rel=1e-12)} for told in slow.outcomes]
    assert done.letters == slow.letters
    assert done.unmatched == slow.total_unmatched()
    for name, learner in slow.learners.items():
        assert_same(done.models[name], learner)
        assert done.joined[name] == learner.joined
    assert len(slow.outcomes) > 80 and len(slow.letters) > 20
    assert {why for _, why in done.unmatched} >= ({"duplicate"} if bounds == "wide" else REASONS)


def assert_same(model: Model, slow: Any) -> None:
    """What it has learnt, what it was measured by, and what waits for it."""
    assert (model.tally.seen, model.tally.updates, model.waiting.joined) == (slow.seen, slow.updates, slow.joined)
    (meta, arrays), (slow_meta, slow_arrays) = model.state(), slow.model.state()
    measured = slow.tally.state()
    measured["counts"][[0, 2]] = slow.seen, slow.updates
    expected = {key: a for key, a in slow_arrays.items() if not key.startswith(("tally.", "drift."))}
    expected |= {f"tally.{key}": array for key, array in measured.items()} | slow.alarms.state()
    del expected["drift.unanswered"]  # nothing follows from drift here
    for key, array in expected.items():
        assert arrays[key] == pytest.approx(array, rel=1e-12, abs=1e-12), (model.name, key)
    assert (meta["classes"], meta["vocabulary"]) == (slow_meta["classes"], slow_meta["vocabulary"])
    assert list(model.waiting.entries) == list(slow.waits)
    assert model.waiting.nbytes == sum(wait.nbytes for wait in slow.waits.values())
    assert model.waiting.early == sum(not wait.is_features for wait in slow.waits.values())


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("seed", [3])
def test_how_records_are_cut_and_where_a_state_is_saved_leave_no_trace(seed: int, bounds: str) -> None:
    config, rng = configured(BOUNDS[bounds]), random.Random(seed)

    whole = fed(config, seed, lambda: 500)
    singly = fed(config, seed, lambda: 1)
    anyhow = fed(config, seed, lambda: rng.randrange(1, 30), restarts=0.3)

    for other in (singly, anyhow):
        for topic, made in whole.made.items():
            assert other.made[topic] == made, topic
        assert (other.letters, other.unmatched, other.joined) == (whole.letters, whole.unmatched, whole.joined)
        assert other.digests() == whole.digests()
    for name, model in whole.models.items():
        for shadowed, versus in model.versus.items():
            assert np.array_equal(anyhow.models[name].versus[shadowed].sums, versus.sums)
