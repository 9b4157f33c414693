"""Late labels by their rules, one record after the other, with a copy of the learner for each prediction that waits.

What the loss of a prediction is, is asked of the learner as it was when it predicted: it is given the same features
once more, with the label. Of the learners themselves nothing is written anew here; they get one row at a time.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from olstream.alarms import Alarms
from olstream.config import Config
from olstream.decode import Decoder, plain
from olstream.evaluate import Tally
from olstream.messages import Chunk, Example, Reject
from olstream.model import Model
from olstream.route import Route, Router
from olstream.watched import watched

ROW_BYTES = 512  # of what waits, beside its texts and its scores
LARGEST = 1.7976931348623157e308


@dataclass
class Wait:
    """Features without a label, or a label without features."""

    example: Example
    record_ms: int
    place: tuple[str, int]
    since_ms: int
    champion: str | None = None  # of features: who led
    then: Any = None  # of features: the learner as it was
    nbytes: int = 0

    @property
    def is_features(self) -> bool:
        return self.champion is not None


@dataclass
class Learner:
    """One learner, what waits for it, and what it was measured by."""

    name: str
    config: Config
    topics: list[str]
    waits: dict[str, Wait] = field(default_factory=dict)  # the oldest first
    settled: list[set[str]] = field(default_factory=lambda: [set(), set()])
    times: dict[tuple[str, int], list[int]] = field(default_factory=lambda: defaultdict(list))
    unmatched: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        config, monitor = self.config.learners[self.name], self.config.monitor
        self.model = Model(self.name, config, monitor)
        self.tally = Tally(config.task != "regression", monitor.window, monitor.fading, len(config.classes or ()))
        self.alarms = Alarms(watched(monitor, config.task))
        self.seen = self.updates = self.joined = 0

    def refuses(self, example: Example) -> Reject | None:
        return self.model.refusals([example]).get(0)

    # What waits

    def is_settled(self, key: str) -> bool:
        return any(key in some for some in self.settled)

    def settle(self, key: str) -> None:
        self.waits.pop(key, None)
        self.settled[1].add(key)
        if len(self.settled[1]) >= self.config.join.pending_max:
            self.settled = [self.settled[1], set()]

    def now_ms(self, place: tuple[str, int]) -> float:
        """The median of the last five times, or the lower of two in the middle; never less than before."""
        times = self.times[place]
        fives = [sorted(times[max(0, end - 5) : end]) for end in range(1, len(times) + 1)]
        return max((five[(len(five) - 1) // 2] for five in fives), default=-math.inf)

    def tick(self, place: tuple[str, int], time_ms: int, begins: bool = False) -> None:
        if not self.waits and not begins:
            return
        self.times[place].append(time_ms)
        now_ms = min(self.now_ms((topic, place[1])) for topic in self.topics)
        for key, wait in list(self.waits.items()):
            if wait.place[1] == place[1] and wait.since_ms < now_ms - self.config.join.ttl_s * 1000:
                self._drop(key)

    def wait(self, key: str, wait: Wait) -> None:
        wait.since_ms = int(self.now_ms(wait.place))
        self.waits[key] = wait
        join = self.config.join
        while len(self.waits) > join.pending_max or sum(w.nbytes for w in self.waits.values()) > join.pending_bytes_max:
            self._drop(next(iter(self.waits)))

    def _drop(self, key: str) -> None:
        self.unmatched["expired" if self.waits.pop(key).is_features else "unknown"] += 1

    def features_bytes(self, example: Example) -> int:
        text = json.dumps(example.features, separators=(",", ":"), ensure_ascii=False)
        several = self.model.task == "multiclass" and self.model.classes is not None
        known = len(self.model.classes.forms) if several and self.model.classes is not None else 0
        return ROW_BYTES + len(text.encode()) + 8 * known * (1 if self.model.variances() is None else 2)

    # What is predicted, measured and learnt

    def meets(self, example: Example) -> Any:
        """A row that is predicted here, and measured and learnt where it has a label."""
        rows = self.model.predict_then_update([example])
        self.seen += 1
        self._measured(rows, rows)
        return rows

    def meets_late(self, example: Example, then: Any) -> Any:
        """A row that was predicted as `then` tells, and is learnt now."""
        config, monitor = self.config.learners[self.name], self.config.monitor
        was = Model.restore(self.name, config, monitor, *then).predict_then_update([example])
        self.joined += 1
        rows = self.model.predict_then_update([example])
        self._measured(rows, was)
        return was

    def _measured(self, rows: Any, was: Any) -> None:
        """`was`: who predicted. What class the label is, the learner of today says."""
        self.updates += int(rows.updated[0])
        if not rows.measured[0]:
            return
        classify = self.model.classes is not None
        right = np.array([classify and was.predicted[0] == rows.truth[0] >= 0], np.int8)
        off = np.zeros(0) if classify else np.minimum(np.abs(rows.target - was.score), LARGEST)
        self.alarms.add(rows.measured, right, was.loss, self.tally.labelled)
        if classify:
            self.tally.margins.add(rows.measured, rows.margin, rows.margin_after)
        updates = np.array([self.updates])
        classes = len(self.model.classes.forms) if self.model.classes is not None else 0
        self.tally.add(rows.measured, rows.truth, was.predicted, was.loss, off, updates, classes)


class SlowJoin:
    """A slot, record by record. What it makes is in the lists."""

    def __init__(self, config: Config, topics: dict[str, list[str]]) -> None:
        """`topics`: whose records can reach each learner."""
        self.config = config
        self.learners = {name: Learner(name, config, topics[name]) for name in config.learners}
        self.router = Router(config.routes, list(config.learners))
        self.decoder = Decoder(config.input.fields, [], config.input.max_message_bytes, False, self.router.carry)
        self.predictions: list[dict[str, Any]] = []
        self.shadows: list[dict[str, Any]] = []
        self.outcomes: list[dict[str, Any]] = []
        self.letters: list[tuple[int, str]] = []
        self.unmatched: Counter[tuple[str, str]] = Counter()

    def meet(self, chunk: Chunk) -> None:
        """One record."""
        (example,) = self.decoder.decode(chunk.values)
        route = self.router.route(example, chunk, 0) if isinstance(example, Example) else example
        self.place, self.offset = (chunk.topic, chunk.partition), chunk.offsets[0]
        self.record_ms = chunk.timestamps[0] or 0
        if isinstance(route, Reject):
            self._dead(route)
        elif isinstance(example, Example) and isinstance(route, Route):
            self._label(example, route) if example.features is None else self._features(plain(example), route)

    def total_unmatched(self) -> Counter[tuple[str, str]]:
        own = {(name, why): n for name, learner in self.learners.items() for why, n in learner.unmatched.items()}
        return self.unmatched + Counter(own)

    def _dead(self, why: Reject) -> None:
        self.letters.append((self.offset, str(why.reason)))

    def _time_ms(self, example: Example) -> int:
        return self.record_ms if example.ts_ms is None else example.ts_ms

    def _features(self, example: Example, route: Route) -> None:
        champion = self.learners[route.learner]
        if (why := champion.refuses(example)) is not None:
            self._dead(why)
            return
        key = str(example.id) if example.id is not None and example.weight > 0.0 else None
        if key is not None and example.label is None and not champion.is_settled(key):
            example = self._with_early(key, example, champion)
        for name in (route.learner, *route.shadows):
            learner = self.learners[name]
            if learner.refuses(example) is None:
                self._predicted(learner, key, example, route.learner)
            if key is not None and example.label is not None:
                learner.settle(key)

    def _with_early(self, key: str, example: Example, champion: Learner) -> Example:
        for learner in [champion, *(other for other in self.learners.values() if other is not champion)]:
            early = learner.waits.get(key)
            if early is None or early.is_features:
                continue
            if learner is not champion and early.example.learner not in (None, champion.name):
                continue
            del learner.waits[key]
            weight = min(example.weight * early.example.weight, LARGEST)
            labelled = msgspec.structs.replace(example, label=early.example.label, weight=weight)
            if champion.refuses(labelled) is None:
                return labelled
            learner.unmatched["unknown"] += 1
        return example

    def _predicted(self, learner: Learner, key: str | None, example: Example, champion: str) -> None:
        begins = key is not None and example.label is None and key not in learner.waits and not learner.is_settled(key)
        learner.tick(self.place, self._time_ms(example), begins)
        then, nbytes = learner.model.state(), learner.features_bytes(example)
        rows = learner.meets(example)
        said = self._said(learner, example, rows) | {"updated": bool(rows.updated[0]), "updates": learner.updates}
        probability = float(rows.probability[0])
        said |= {"topic": self.place[0], "partition": self.place[1], "offset": self.offset}
        said |= {"ts": self._time_ms(example), "probability": None if math.isnan(probability) else probability}
        if learner.name == champion:
            self.predictions.append(said)
        else:
            self.shadows.append(said | {"shadow": True})
        waits = key is not None and example.label is None and key not in learner.waits and not learner.is_settled(key)
        if waits and key is not None:
            learner.wait(key, Wait(example, self.record_ms, self.place, 0, champion, then, nbytes))

    def _said(self, learner: Learner, example: Example, was: Any, truth: Any = None) -> dict[str, Any]:
        classes = learner.model.classes
        score, at = float(was.score[0]), int(was.predicted[0])
        prediction = score if classes is None else classes.forms[at] if at >= 0 else None
        told = {"id": example.id, "learner": learner.name, "prediction": prediction, "score": score}
        label = example.label if classes is not None or example.label is None else float(example.label)
        if label is None:
            return told | {"label": None, "loss": None, "correct": None}
        right = None if classes is None else at >= 0 and classes.find(label) == at
        return told | {"label": label, "loss": float(was.loss[0]), "correct": right}

    def _label(self, label: Example, route: Route) -> None:
        if label.weight == 0.0:
            return
        key = str(label.id)
        holding = [learner for learner in self.learners.values() if key in learner.waits]
        meant = [route.learner, *self.learners] if label.learner is None else [route.learner, label.learner]
        found = [self.learners[name] for name in meant if key in self.learners[name].waits]
        led = [learner.waits[key].champion for learner in found if learner.waits[key].is_features]
        if not (self._late(key, label, led[0]) if led and led[0] else self._early(key, label, route, meant)):
            return
        for learner in holding:
            learner.tick(self.place, self._time_ms(label))

    def _late(self, key: str, label: Example, champion: str) -> bool:
        """Whether the label is accepted."""
        waits = {name: learner.waits.get(key) for name, learner in self.learners.items()}
        ours = {name: wait for name, wait in waits.items() if wait is not None and wait.champion == champion}
        rows = {
            name: msgspec.structs.replace(
                wait.example, label=label.label, weight=min(wait.example.weight * label.weight, LARGEST)
            )
            for name, wait in ours.items()
        }
        if champion in rows and (why := self.learners[champion].refuses(rows[champion])) is not None:
            self._dead(why)
            return False
        for name, example in rows.items():
            learner, wait = self.learners[name], ours[name]
            if learner.refuses(example) is None:
                was = learner.meets_late(example, wait.then)
                if name == champion:
                    begins_ms = wait.record_ms if wait.example.ts_ms is None else wait.example.ts_ms
                    delay_ms = self._time_ms(label) - begins_ms
                    self.outcomes.append(self._said(learner, example, was) | {"delay_ms": delay_ms})
            learner.settle(key)
        return True

    def _early(self, key: str, label: Example, route: Route, meant: list[str]) -> bool:
        """Whether the label is accepted: it waits, or its id has one already."""
        if any(key in self.learners[name].waits or self.learners[name].is_settled(key) for name in meant):
            self.unmatched[route.learner, "duplicate"] += 1
            return True
        learner = self.learners[route.learner]
        assert label.label is not None
        if (why := learner.model.refusal_of_label(label.label)) is not None:
            self._dead(why)
            return False
        learner.tick(self.place, self._time_ms(label), begins=True)
        learner.wait(key, Wait(label, self.record_ms, self.place, 0, nbytes=ROW_BYTES + len(str(label.label))))
        return True
