"""Decode, route, predict then update, encode: what one chunk of records becomes.

The loop, recovery and `replay` all learn through here, so they cannot differ. Nothing in here
depends on how records were cut into chunks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal, TypeAlias

from olstream.config import Config
from olstream.decode import Decoder
from olstream.encode import LONGEST_BYTES, Encoder, dead_letter, first_of
from olstream.messages import Chunk, Example, Headers, Outgoing, Reason, Records, Reject, Tombstone
from olstream.model import Model, Rows
from olstream.route import Route, Router

Role: TypeAlias = Literal["champion", "shadow"]


@dataclass(slots=True)
class Result:
    """What one model made of its rows; `positions` says which records of the chunk they were."""

    model: Model
    rows: Rows
    positions: Sequence[int]
    published: bool


@dataclass(slots=True)
class Processed:
    """What a chunk became. `predictions` is aligned to the chunk, None where there is none."""

    chunk: Chunk
    predictions: list[bytes | None]
    shadows: list[tuple[list[int], list[bytes | None]]] = field(default_factory=list)
    outgoing: list[Records] = field(default_factory=list)
    dead_letters: list[Outgoing] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    rejects: dict[int, Reject] = field(default_factory=dict)
    tombstones: int = 0
    unmatched: Counter[str] = field(default_factory=Counter)  # label-only records by learner
    event_times: list[int | None] = field(default_factory=list)  # the messages' own, where they have one


class Pipeline:
    """The models of a slot and the way records reach them."""

    def __init__(
        self,
        config: Config,
        models: Mapping[str, Model],
        publishes: bool = True,
        timed: Callable[[str, Callable[..., Any]], Callable[..., Any]] = lambda _stage, function: function,
    ) -> None:
        """`publishes` is off while learning again: nothing is encoded then. `timed` wraps a stage to measure it."""
        self.config = config
        self.models = dict(models)
        self.publishes = publishes
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
        for model in models.values():
            model.vectorize = timed("vectorize", model.vectorize)

    def process(self, chunk: Chunk, examples: Sequence[Example | Reject | Tombstone] | None = None) -> Processed:
        """Everything that follows from these records. `examples` where a file's reader has decoded them already."""
        decoded = _less_long_keys(chunk.keys, self._decode(chunk.values) if examples is None else examples)
        done = Processed(chunk, [None] * len(chunk))
        routed = self._routed(chunk, decoded, done)
        groups: Iterable[tuple[Route, list[int]]] = routed.items()
        if len(routed) > 1 and _share_a_model(routed):
            groups = _runs(routed)
        for route, positions in groups:
            self._learn(route, positions, decoded, done)
        self._address(done)
        return done

    def _routed(self, chunk: Chunk, decoded: Sequence[object], done: Processed) -> dict[Route, list[int]]:
        """Positions by route, in stream order; what reaches no model is noted in `done`."""
        common = self.router.common
        if common is not None and _are_ordinary(decoded):
            return {common: list(range(len(decoded)))}
        groups: dict[Route, list[int]] = {}
        for i, example in enumerate(decoded):
            if isinstance(example, Reject):
                done.rejects[i] = example
            elif isinstance(example, Tombstone):
                done.tombstones += 1
            else:
                assert isinstance(example, Example)
                route = self.router.route(example, chunk, i)
                if isinstance(route, Reject):
                    done.rejects[i] = route
                elif example.features is None:
                    done.unmatched[route.learner] += 1
                elif route in groups:
                    groups[route].append(i)
                else:
                    groups[route] = [i]
        return groups

    def _learn(self, route: Route, positions: list[int], decoded: Sequence[Any], done: Processed) -> None:
        """The champion first: what it refuses is a dead letter, and no shadow sees it."""
        refused = self._rows("champion", route.learner, positions, decoded, done)
        done.event_times += [at_ms for i in positions if (at_ms := decoded[i].ts_ms) is not None]
        done.rejects |= refused
        if route.shadows:
            accepted = [position for position in positions if position not in refused]
            for shadow in route.shadows:
                self._rows("shadow", shadow, accepted, decoded, done)

    def _rows(
        self, role: Role, name: str, positions: list[int], decoded: Sequence[Any], done: Processed
    ) -> dict[int, Reject]:
        """What the model made of these records, and which of them it refused. As many at once as the model takes."""
        model, refused = self.models[name], dict[int, Reject]()
        while positions:
            taken, positions = positions[: model.room], positions[model.room :]
            rows: Rows = self._learn_rows[name]([decoded[i] for i in taken])
            published = self.publishes and (role == "champion" or self.config.output.shadows is not None)
            done.results.append(Result(model, rows, taken, published))
            if published:
                self._publish(role, name, taken, decoded, rows, done)
            refused |= {taken[i]: reject for i, reject in rows.rejects.items()}
        return refused

    def _publish(
        self, role: Role, name: str, taken: list[int], decoded: Sequence[Any], rows: Rows, done: Processed
    ) -> None:
        examples: list[Example] = [decoded[i] for i in taken]
        values: list[bytes | None] = self._encode(self.encoders[name, role], done.chunk, taken, examples, rows)
        if role == "shadow":
            done.shadows.append((taken, values))
        else:
            for position, value in zip(taken, values, strict=True):
                done.predictions[position] = value

    def _address(self, done: Processed) -> None:
        """Say where each record goes: key of the input, chosen headers copied."""
        if not self.publishes:
            return
        chunk, output = done.chunk, self.config.output
        headers = self._copied_headers(chunk)
        if any(value is not None for value in done.predictions):
            done.outgoing.append(Records(output.predictions, chunk.keys, done.predictions, headers))
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


def _are_ordinary(decoded: Sequence[Any]) -> bool:
    """Whether all are examples with features that name no learner: what most batches are made of."""
    if not {Reject, Tombstone}.isdisjoint(map(type, decoded)):
        return False
    return all(example.learner is None and example.features is not None for example in decoded)


def _share_a_model(routes: Iterable[Route]) -> bool:
    """Whether some model is reached by two of these routes."""
    reached = [name for route in routes for name in (route.learner, *route.shadows)]
    return len(reached) > len(set(reached))


def _runs(routed: Mapping[Route, list[int]]) -> Iterator[tuple[Route, list[int]]]:
    """The same positions as runs of one route in stream order: a shared model must meet its rows in order."""
    in_order = sorted((i, route) for route, positions in routed.items() for i in positions)
    for route, run in groupby(in_order, key=itemgetter(1)):
        yield route, [i for i, _ in run]
