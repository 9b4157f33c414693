"""Labels that come by themselves, joined with the features they are for: a chunk record by record, in order.

    features, no label    predicted; they wait for their label under their id
    label, no features    measured against the prediction made then, and learnt with those features; or it waits
    both                  predicted, learnt, and their id is settled

What each record does to those that wait is decided in the order of the stream. Models still get many rows at once:
a `Step` is put on the list of its model, and the lists are run when something has to be known of what they make. All
models of a record are asked whether they take it before it is on any list, so that they run it together. A record that
is refused changes nothing of what waits, not even what time it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec
import orjson

from olstream.admit import LARGEST
from olstream.decode import kept, plain
from olstream.messages import Chunk, Example, Reject, time_of
from olstream.model import Model
from olstream.route import Route
from olstream.waiting import Early, Row


class Beside(NamedTuple):
    """From where each input topic has to be read, to meet again what rows of a chunk will meet, and early labels."""

    rows: tuple[int, ...]
    labels: tuple[int, ...]


class Step(NamedTuple):
    """A row for one model."""

    position: int  # of its record in the chunk
    champion: str  # who leads; the model itself, or it is a shadow here
    example: Example
    late: Row | None = None  # its label came by itself, for these features
    waits: Row | None = None  # what is predicted has to be remembered here


@dataclass(slots=True)
class Joined:
    """What a chunk brought beside predictions."""

    rejects: dict[int, Reject] = field(default_factory=dict)
    label_only: Counter[str] = field(default_factory=Counter)  # by learner
    unmatched: Counter[tuple[str, str]] = field(default_factory=Counter)  # by learner and reason


NOTHING_JOINED: Final = Joined()  # of most chunks, and nobody writes there


class Join:
    """One chunk, gone through once."""

    def __init__(
        self,
        models: Mapping[str, Model],
        chunk: Chunk,
        beside: Beside,
        run: Callable[[Mapping[str, list[Step]]], None],
    ) -> None:
        self.models = models
        self.chunk = chunk
        self.beside = beside
        self.run = run
        self.done = Joined()
        self._steps: dict[str, list[Step]] = {}  # by model
        self._kept: bytes | None = None  # the features of the record in hand
        self._brings_news = False  # a row on the lists may make a class known

    def go_through(self, examples: Sequence[Any], routes: Sequence[Route | None]) -> Joined:
        """None for a record that leads to no model."""
        for i, (example, route) in enumerate(zip(examples, routes, strict=True)):
            if route is None:
                continue
            if example.features is None:
                self._label(i, example, route)
            else:
                self._features(i, example, route)
            if self._brings_news:
                self._flush()
        self._flush()
        self._tell_dropped()
        return self.done

    def _flush(self) -> None:
        steps, self._steps, self._brings_news = self._steps, {}, False
        if steps:
            self.run(steps)

    # Features

    def _features(self, i: int, example: Example, route: Route) -> None:
        key = str(example.id) if example.id is not None and example.weight > 0.0 else None
        if self._refused(i, route.learner, example):
            return
        if key is not None and example.label is None:
            example = self._with_early_label(key, example, route)
        shadows = [name for name in route.shadows if self._refusal(name, example) is None]
        self._kept = None
        for name in (route.learner, *shadows):
            self._add(name, Step(i, route.learner, example, waits=self._noted(name, i, example, route, key)))
        if key is not None and example.label is not None:
            for name in (route.learner, *route.shadows):
                self.models[name].waiting.settle(key)

    def _noted(self, name: str, i: int, example: Example, route: Route, key: str | None) -> Row | None:
        """The row, where it waits for its label from now on."""
        waiting = self.models[name].waiting
        begins = key is not None and example.label is None and waiting.expects(key)
        waiting.tick(self.chunk.topic, self.chunk.partition, self._time_ms(i, example), begins)
        if key is None or example.label is not None or not waiting.expects(key):
            return None
        assert example.id is not None
        if self._kept is None:
            self._kept = kept(example)
        row = Row(
            example.id, self._kept, example.weight, example.ts_ms, self.chunk.timestamps[i], route.learner,
            *self._place(i), self.beside.rows,
        )  # fmt: skip
        row.made_bytes = self.models[name].made_bytes
        waiting.add(key, row)
        return row

    def _has_early(self) -> bool:
        return any(model.waiting.early for model in self.models.values())

    def _with_early_label(self, key: str, example: Example, route: Route) -> Example:
        """The example with the label that came before it, if one did and the learner takes it."""
        if not self._has_early() or self.models[route.learner].waiting.is_settled(key):
            return example
        for name in self._names(route.learner):
            waiting = self.models[name].waiting
            early = waiting.get(key)
            if isinstance(early, Early) and (name == route.learner or early.learner in (None, route.learner)):
                waiting.take(key)
                labelled = msgspec.structs.replace(plain(example), label=early.label)
                labelled.weight = min(labelled.weight * early.weight, LARGEST)
                if self._refusal(route.learner, labelled) is None:
                    return labelled
                self.done.unmatched[name, "unknown"] += 1
        return example

    # Labels

    def _label(self, i: int, example: Example, route: Route) -> None:
        self.done.label_only[route.learner] += 1
        if not example.weight > 0.0:
            return
        key, time_ms = str(example.id), self._time_ms(i, example)
        holding = self._holding(key)
        champion = self._champion(key, example, route)
        if champion is None:
            self._without_features(i, example, route, key, time_ms)
        else:
            self._late(i, example, key, champion, holding)
        if i not in self.done.rejects:
            for name in holding:
                self.models[name].waiting.tick(self.chunk.topic, self.chunk.partition, time_ms)

    def _meant(self, example: Example, route: Route) -> Iterable[str]:
        """Whose features a label can be for: all, unless its message names its learner."""
        if example.learner is None:
            return self._names(route.learner)
        return dict.fromkeys([route.learner, example.learner])

    def _champion(self, key: str, example: Example, route: Route) -> str | None:
        """Who led when the features of that id came."""
        for name in self._meant(example, route):
            row = self.models[name].waiting.get(key)
            if isinstance(row, Row):
                return row.champion
        return None

    def _late(self, i: int, example: Example, key: str, champion: str, holding: Iterable[str]) -> None:
        rows = {name: row for name in holding if isinstance(row := self.models[name].waiting.get(key), Row)}
        rows = {name: row for name, row in rows.items() if row.champion == champion}
        late = {name: self._late_example(row, example) for name, row in rows.items()}
        if champion in late and self._refused(i, champion, late[champion]):
            return
        taken = [name for name in late if name == champion or self._refusal(name, late[name]) is None]
        for name in taken:
            self._add(name, Step(i, champion, late[name], late=rows[name]))
        for name in late:
            self.models[name].waiting.settle(key)

    def _late_example(self, row: Row, label: Example) -> Example:
        """The features as they were kept, with the label that came."""
        weight = min(row.weight * label.weight, LARGEST)
        return Example(row.id, orjson.loads(row.features), label.label, None, weight, label.ts_ms)

    def _without_features(self, i: int, example: Example, route: Route, key: str, time_ms: int | None) -> None:
        """It waits, unless its id has a label already."""
        assert example.id is not None and example.label is not None
        names = self._meant(example, route)
        if any(not self.models[name].waiting.expects(key) for name in names):
            self.done.unmatched[route.learner, "duplicate"] += 1
            return
        if not self.models[route.learner].knows_label(example.label):
            self._flush()
            refusal = self.models[route.learner].refusal_of_label(example.label)
            if refusal is not None:
                self.done.rejects[i] = refusal
                return
        waiting = self.models[route.learner].waiting
        waiting.tick(self.chunk.topic, self.chunk.partition, time_ms, begins=True)
        early = Early(
            example.id, example.label, example.weight, example.ts_ms, self.chunk.timestamps[i], example.learner,
            *self._place(i), self.beside.labels,
        )  # fmt: skip
        waiting.add(key, early)

    # Models

    def _add(self, name: str, step: Step) -> None:
        self._steps.setdefault(name, []).append(step)

    def _refused(self, i: int, champion: str, example: Example) -> bool:
        """Whether the learner that leads refuses: then the record is a dead letter, and no shadow sees it."""
        refusal = self._refusal(champion, example)
        if refusal is not None:
            self.done.rejects[i] = refusal
        return refusal is not None

    def _refusal(self, name: str, example: Example) -> Reject | None:
        """Why a model would not take this row after all that came before it."""
        model = self.models[name]
        if model.is_sure_of(example):
            return None
        self._flush()
        self._brings_news = True
        return model.refusals([example]).get(0)

    def _names(self, first: str) -> Iterator[str]:
        """That learner, then the others."""
        yield first
        yield from (name for name in self.models if name != first)

    def _holding(self, key: str) -> list[str]:
        return [name for name, model in self.models.items() if model.waiting.get(key) is not None]

    def _place(self, i: int) -> tuple[str, int, int]:
        return self.chunk.topic, self.chunk.partition, self.chunk.offsets[i]

    def _time_ms(self, i: int, example: Example) -> int | None:
        return time_of(example.ts_ms, self.chunk.timestamps[i])

    def _tell_dropped(self) -> None:
        for name, model in self.models.items():
            for reason, n in model.waiting.dropped.items():
                self.done.unmatched[name, reason] += n
            model.waiting.dropped.clear()
