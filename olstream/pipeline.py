"""Decode, route, predict then update, encode: what one chunk of records becomes.

The loop, recovery and `replay` all learn through here, so they cannot differ. Nothing in here
depends on how records were cut into chunks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal, TypeAlias

from olstream.checkpoint import Partition
from olstream.config import Config
from olstream.decode import Decoder, by_name
from olstream.encode import LONGEST_BYTES, Encoder, dead_letter, first_of, outcomes
from olstream.handover import adopt, note_of
from olstream.join import NOTHING_JOINED, Beside, Join, Joined, Step
from olstream.journal import Adopted, Range
from olstream.messages import Chunk, Example, Headers, Outgoing, Reason, Records, Reject, Tombstone
from olstream.model import NO_ROWS, Model, Rows
from olstream.rivals import compare
from olstream.route import Route, Router
from olstream.waiting import Row

Role: TypeAlias = Literal["champion", "shadow"]


@dataclass(slots=True)
class Result:
    """What one model made of its rows; `positions` says which records of the chunk they were.

    `late`, by row: those whose label came by itself; nothing is predicted of them here.
    """

    model: Model
    rows: Rows
    positions: Sequence[int]
    published: bool
    role: Role = "champion"
    late: Mapping[int, Row] = field(default_factory=dict)
    label_ms: Mapping[int, int | None] = field(default_factory=dict)  # of these, the times that their messages gave


@dataclass(slots=True)
class Processed:
    """What a chunk became. `predictions` is aligned to the chunk, None where there is none."""

    chunk: Chunk
    predictions: list[bytes | None]
    shadows: list[tuple[list[int], list[bytes | None]]] = field(default_factory=list)
    outcomes: dict[int, bytes] = field(default_factory=dict)  # by position of the label
    outgoing: list[Records] = field(default_factory=list)
    dead_letters: list[Outgoing] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    rejects: dict[int, Reject] = field(default_factory=dict)
    tombstones: int = 0
    joined: Joined = field(default_factory=lambda: NOTHING_JOINED)
    event_times: list[int | None] = field(default_factory=list)  # the messages' own, where they have one


class Pipeline:
    """The models of a slot and the way records reach them."""

    def __init__(
        self,
        config: Config,
        models: Mapping[str, Model],
        publishes: bool = True,
        timed: Callable[[str, Callable[..., Any]], Callable[..., Any]] = lambda _stage, function: function,
        offsets: Mapping[Partition, int] | None = None,
    ) -> None:
        """`publishes` is off while learning again: nothing is encoded then. `timed` wraps a stage to measure it.

        `offsets`: how far the models have learnt.
        """
        self.config = config
        self.models = dict(models)
        self.publishes = publishes
        self.offsets = dict(offsets or {})
        self.router = Router(config.routes, list(config.learners))
        limit = config.input.max_message_bytes
        decoder = Decoder(config.input.fields, config.input.exclude, limit, carry=self.router.carry)
        self.encoders = {
            (name, role): Encoder(name, config.output.scores, role == "shadow")
            for name in models
            for role in ("champion", "shadow")
        }
        self._decode = timed("decode", decoder.decode)
        self._encode = timed("encode", _encode_rows)
        self._learn_rows = {name: timed("learn", model.predict_then_update) for name, model in models.items()}
        for name, model in models.items():
            model.vectorize = timed("vectorize", model.vectorize)
            topics = [topic for topic in config.input.topics if name in self.router.reaches(topic)]
            join = config.join
            model.waiting.bind(int(join.ttl_s * 1000), join.pending_max, join.pending_bytes_max, topics)

    def process(self, chunk: Chunk, examples: Sequence[Example | Reject | Tombstone] | None = None) -> Processed:
        """Everything that follows from these records. `examples` where a file's reader has decoded them already."""
        decoded = _less_long_keys(chunk.keys, self._decode(chunk.values) if examples is None else examples)
        done = Processed(chunk, [None] * len(chunk))
        common, waits = self.router.common, any(len(model.waiting) for model in self.models.values())
        if common is not None and not waits and _are_ordinary(decoded):
            self._learn(common, list(range(len(decoded))), decoded, done)
        else:
            self._by_routes(chunk, decoded, waits or _begin_to_wait(decoded), done)
        self.offsets[chunk.topic, chunk.partition] = chunk.offsets[-1] + 1
        self._address(done)
        return done

    def move(
        self, left: Collection[Partition], adopted: Sequence[Adopted], read: Callable[[Range], Iterator[Chunk]]
    ) -> None:
        """Partitions went to other slots, or came from them: what waits for labels goes and comes with them."""
        for model in self.models.values():
            model.waiting.leave(left)
        if adopted:
            adopt(adopted, self.config.input.topics, self.models, read, self._routed)
            self.offsets |= {(one.topic, one.partition): one.end for one in adopted}

    def held(self) -> set[Partition]:
        """Of which partitions of the input anything waits. What a model began with from elsewhere goes nowhere."""
        found = set[Partition]().union(*(model.waiting.held() for model in self.models.values()))
        return {at for at in found if at[0] in self.config.input.topics}

    def away(self) -> set[Partition]:
        """Partitions that were given up, and what waited of them."""
        return set().union(*(model.waiting.away for model in self.models.values()))

    def note(self, at: Partition) -> str:
        """What a slot that gets this partition has to know of what waits here."""
        return note_of(at, self.config.slot, self.config.input.topics, self.models.values())

    def _routed(self, chunk: Chunk) -> Iterator[tuple[int, Example, Route]]:
        """The records of a chunk that lead to a model."""
        for i, example in enumerate(_less_long_keys(chunk.keys, self._decode(chunk.values))):
            if isinstance(example, Example):
                route = self.router.route(example, chunk, i)
                if isinstance(route, Route):
                    yield i, example, route

    def _by_routes(self, chunk: Chunk, decoded: Sequence[Any], joins: bool, done: Processed) -> None:
        routes = [self._route(i, example, done) for i, example in enumerate(decoded)]
        if joins:
            done.event_times += [at_ms for one in decoded if (at_ms := getattr(one, "ts_ms", None)) is not None]
            join = Join(self.models, chunk, self._beside(chunk), lambda steps: self._run(steps, done))
            done.joined = join.go_through(decoded, routes)
            done.rejects |= done.joined.rejects
            return
        groups: dict[Route, list[int]] = {}
        for i, route in enumerate(routes):
            if route is not None:
                groups.setdefault(route, []).append(i)
        runs: Iterable[tuple[Route, list[int]]] = groups.items()
        if len(groups) > 1 and _share_a_model(groups):
            runs = _runs(groups)
        for route, positions in runs:
            self._learn(route, positions, decoded, done)

    def _beside(self, chunk: Chunk) -> Beside:
        """Where the topics stand, or as far back as something waits there that may meet what now comes; -1: unknown."""
        rows: list[int] = []
        labels: list[int] = []
        for topic in self.config.input.topics:
            at = topic, chunk.partition
            stands = chunk.offsets[0] if topic == chunk.topic else self.offsets.get(at, -1)
            for found, early in ((rows, True), (labels, False)):
                found.append(min(model.waiting.since(at, stands, early) for model in self.models.values()))
        return Beside(tuple(rows), tuple(labels))

    def _route(self, i: int, example: object, done: Processed) -> Route | None:
        """Where record i goes; what reaches no model is noted in `done`."""
        if isinstance(example, Example):
            route = self.router.route(example, done.chunk, i)
            if isinstance(route, Route):
                return route
            done.rejects[i] = route
        elif isinstance(example, Reject):
            done.rejects[i] = example
        else:
            done.tombstones += 1
        return None

    def _learn(self, route: Route, positions: list[int], decoded: Sequence[Any], done: Processed) -> None:
        """The champion first: what it refuses is a dead letter, and no shadow sees it."""
        examples: list[Example] = [decoded[i] for i in positions]
        done.event_times += [example.ts_ms for example in examples if example.ts_ms is not None]
        of_champion = self._rows("champion", route.learner, positions, examples, done)
        refused = {r.positions[k]: reject for r in of_champion for k, reject in r.rows.rejects.items()}
        if refused:
            done.rejects |= refused
            examples = [example for i, example in zip(positions, examples, strict=True) if i not in refused]
            positions = [position for position in positions if position not in refused]
        ids = [str(example.id) for example in examples if example.id is not None and example.weight > 0.0]
        self.models[route.learner].waiting.settle_all(ids)
        for shadow in route.shadows:
            of_shadow = self._rows("shadow", shadow, positions, examples, done)
            self.models[shadow].waiting.settle_all(ids)
            compare(route.learner, of_champion, of_shadow)

    def _run(self, steps: Mapping[str, list[Step]], done: Processed) -> None:
        """What the join has put on the lists of the models."""
        results: defaultdict[tuple[str, str], list[Result]] = defaultdict(list)
        for name, of_model in steps.items():
            for champion, run in groupby(of_model, key=lambda step: step.champion):
                some = list(run)
                late = {k: step.late for k, step in enumerate(some) if step.late is not None}
                waits = {k: step.waits for k, step in enumerate(some) if step.waits is not None}
                role: Role = "champion" if champion == name else "shadow"
                # Of one form, what was kept and what just came, so that they go on together.
                examples = [by_name(step.example) if late else step.example for step in some]
                positions = [step.position for step in some]
                results[champion, name] += self._rows(role, name, positions, examples, done, late, waits)
        for (champion, name), of_shadow in results.items():
            if name != champion:
                compare(champion, results.get((champion, champion), []), of_shadow)

    def _rows(
        self,
        role: Role,
        name: str,
        positions: list[int],
        examples: list[Example],
        done: Processed,
        late: Mapping[int, Row] = NO_ROWS,
        waits: Mapping[int, Row] = NO_ROWS,
    ) -> list[Result]:
        """What the model made of these records; as many at once as the model takes."""
        model, results = self.models[name], []
        published = self.publishes and (role == "champion" or self.config.output.shadows is not None)
        start = 0
        while start < len(positions):
            end = min(len(positions), start + model.room)
            some = examples[start:end]
            if late or waits:
                joined = {"late": _within(late, start, end), "waits": _within(waits, start, end)}
                rows: Rows = self._learn_rows[name](some, **joined)
            else:
                rows = self._learn_rows[name](some)
            result = Result(model, rows, positions[start:end], published, role)
            if late:
                result.late = _within(late, start, end)
                result.label_ms = {k: some[k].ts_ms for k in result.late}
            results.append(result)
            if published:
                self._publish(name, result, some, done)
            start = end
        done.results += results
        return results

    def _publish(self, name: str, result: Result, examples: list[Example], done: Processed) -> None:
        positions = list(result.positions)
        values: list[bytes | None] = self._encode(
            self.encoders[name, result.role], done.chunk, positions, examples, result.rows
        )
        for k in result.late:
            values[k] = None
        if result.role == "shadow":
            done.shadows.append((positions, values))
            return
        for position, value in zip(positions, values, strict=True):
            if value is not None:
                done.predictions[position] = value
        if result.late and self.config.output.outcomes is not None:
            done.outcomes |= outcomes(name, done.chunk, positions, examples, result.rows, result.late)

    def _address(self, done: Processed) -> None:
        """Say where each record goes: key of the input, chosen headers copied."""
        if not self.publishes:
            return
        chunk, output = done.chunk, self.config.output
        headers = self._copied_headers(chunk)
        if any(value is not None for value in done.predictions):
            done.outgoing.append(Records(output.predictions, chunk.keys, done.predictions, headers))
        if done.outcomes:
            joined = [done.outcomes.get(i) for i in range(len(chunk))]
            done.outgoing.append(Records(output.outcomes or "", chunk.keys, joined, headers))
        for positions, values in done.shadows:
            keys = [chunk.keys[i] for i in positions]
            picked = [headers[i] for i in positions] if headers else None
            done.outgoing.append(Records(output.shadows or "", keys, values, picked))
        for i in sorted(done.rejects):
            key, value, dead_headers = dead_letter(chunk, i, done.rejects[i])
            done.dead_letters.append(Outgoing(output.dead_letters, key, value, dead_headers))

    def _copied_headers(self, chunk: Chunk) -> list[Headers | None] | None:
        wanted = self.config.output.copy_headers
        if not wanted:
            return None
        copied: list[Headers | None] = [
            first_of([(name, value) for name, value in headers if name in wanted]) if headers else None
            for headers in chunk.headers
        ]
        return copied if any(copied) else None


def _less_long_keys(
    keys: Sequence[bytes | None], decoded: Sequence[Example | Reject | Tombstone]
) -> Sequence[Example | Reject | Tombstone]:
    """A prediction has its record's key: one that no topic would take is refused before anything is learnt."""
    if max(map(len, filter(None, keys)), default=0) <= LONGEST_BYTES:
        return decoded
    return [
        Reject(Reason.TOO_LARGE, f"its key has {len(key)} bytes, the limit is {LONGEST_BYTES}")
        if key and len(key) > LONGEST_BYTES and not isinstance(one, Tombstone)
        else one
        for key, one in zip(keys, decoded, strict=True)
    ]


def _encode_rows(
    encoder: Encoder, chunk: Chunk, positions: Sequence[int], examples: Sequence[Example], rows: Rows
) -> list[bytes | None]:
    return encoder.encode(chunk, positions, examples, rows)


def _within(rows: Mapping[int, Row], start: int, end: int) -> Mapping[int, Row]:
    """Those of the rows from start to end, counted from there."""
    return {k - start: row for k, row in rows.items() if start <= k < end} if rows else rows


def _are_ordinary(decoded: Sequence[Any]) -> bool:
    """Whether all are rows that name no learner and wait for no label: what most batches are made of."""
    if not {Reject, Tombstone}.isdisjoint(map(type, decoded)):
        return False
    return all(
        example.learner is None and example.features is not None and (example.label is not None or example.id is None)
        for example in decoded
    )


def _begin_to_wait(decoded: Sequence[Any]) -> bool:
    """Whether one of them is a label without features, or features with an id that have no label."""
    return any(
        isinstance(one, Example) and (one.features is None or (one.label is None and one.id is not None))
        for one in decoded
    )


def _share_a_model(routes: Iterable[Route]) -> bool:
    """Whether some model is reached by two of these routes."""
    reached = [name for route in routes for name in (route.learner, *route.shadows)]
    return len(reached) > len(set(reached))


def _runs(routed: Mapping[Route, list[int]]) -> Iterator[tuple[Route, list[int]]]:
    """The same positions as runs of one route in stream order: a shared model must meet its rows in order."""
    in_order = sorted((i, route) for route, positions in routed.items() for i in positions)
    for route, run in groupby(in_order, key=itemgetter(1)):
        yield route, [i for i, _ in run]
