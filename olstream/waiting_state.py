"""What waits as arrays, and back. It stands in a learner's state, and in its digest but for places and clocks."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import orjson
from numpy.typing import NDArray

from olstream import intact
from olstream.checkpoint import Partition
from olstream.config import FieldsConfig
from olstream.interpret import Interpreter
from olstream.messages import Reject
from olstream.waiting import NO_TIME, NOTHING, Clock, Early, Entry, Made, Row, Waiting

PREFIX: Final = "waiting."

_ROW, _UNMEASURED, _EARLY = range(3)
_MESSAGES: Final = Interpreter(FieldsConfig(), ())
_NUMBERS: Final = 4  # weight, score, variance, fresh
_CODES: Final = 4  # kind, ts_ms, predicted, known


def meta_of(waiting: Waiting) -> dict[str, Any]:
    entries = waiting.entries.values()
    return {
        "joined": waiting.joined,
        "away": sorted(waiting.away),
        "topics": sorted({entry.topic for entry in entries}),
        "learners": sorted({_learner(entry) for entry in entries}),
        "clocks": [[topic, p, clock.now_ms, clock.last] for (topic, p), clock in sorted(waiting.clocks.items())],
    }


def arrays_of(waiting: Waiting) -> dict[str, NDArray[Any]]:
    """Nothing where nothing waits and no label was ever met."""
    found = {}
    for name in ("settled", "settled_before"):
        if ids := getattr(waiting, name):
            found[name] = _bytes(orjson.dumps(list(ids)))
    if waiting.entries:
        found |= _entries(waiting)
    return {f"{PREFIX}{name}": array for name, array in found.items()}


def _entries(waiting: Waiting) -> dict[str, NDArray[Any]]:
    entries, meta = list(waiting.entries.values()), meta_of(waiting)
    topic = {name: i for i, name in enumerate(meta["topics"])}
    learner = {name: i for i, name in enumerate(meta["learners"])}
    made = [NOTHING if isinstance(entry, Early) else entry.made or NOTHING for entry in entries]
    texts = [json.dumps(entry.label).encode() if isinstance(entry, Early) else entry.features for entry in entries]
    beside = max(len(entry.beside) for entry in entries)
    return {
        "ids": _bytes(orjson.dumps([entry.id for entry in entries])),
        "texts": _bytes(b"\n".join(texts)),
        "numbers": np.array(
            [(e.weight, m.score, m.variance, m.fresh) for e, m in zip(entries, made, strict=True)], np.float64
        ),
        "codes": np.array(
            [
                (_kind(e), _number(e.ts_ms), m.predicted, m.known)
                for e, m in zip(entries, made, strict=True)
            ],
            np.int64,
        ),
        "scores": np.frombuffer(b"".join(m.scores for m in made), np.float64),
        "spreads": np.frombuffer(b"".join(m.spreads for m in made), np.float64),
        "score_ends": np.cumsum([len(m.scores) // 8 for m in made]),
        "spread_ends": np.cumsum([len(m.spreads) // 8 for m in made]),
        "places": np.array(
            [
                (topic[e.topic], e.partition, e.offset, learner[_learner(e)], e.at_ms, _number(e.record_ms))
                + e.beside
                + (-1,) * (beside - len(e.beside))
                for e in entries
            ],
            np.int64,
        ),
    }  # fmt: skip


def _number(time_ms: int | None) -> int:
    return NO_TIME if time_ms is None else time_ms


def _time(number: int) -> int | None:
    return None if number == NO_TIME else number


def _learner(entry: Entry) -> str:
    return entry.champion if isinstance(entry, Row) else entry.learner or ""


def _kind(entry: Entry) -> int:
    return _EARLY if isinstance(entry, Early) else _ROW if entry.is_measured else _UNMEASURED


def _bytes(text: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(text, np.uint8).copy()


def restore(waiting: Waiting, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], classes: int) -> None:
    """Take over what `meta_of` and `arrays_of` gave; ValueError where it cannot be of a learner of so many classes."""
    waiting.joined = intact.whole("joined", meta["joined"])
    waiting.away = {_partition(topic, p) for topic, p in meta["away"]}
    waiting.clocks = {_partition(topic, p): _clock(now, last) for topic, p, now, last in meta["clocks"]}
    waiting.settled, waiting.settled_before = _settled(arrays, "settled"), _settled(arrays, "settled_before")
    if f"{PREFIX}ids" not in arrays:
        return
    for entry in _restored(meta, arrays, classes):
        if waiting.get(str(entry.id)) is not None:
            raise ValueError("an id waits twice")
        waiting.put(str(entry.id), entry)


def _restored(meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], classes: int) -> list[Entry]:
    ids = orjson.loads(_text(arrays, "ids"))
    n = len(ids)
    numbers = intact.array(arrays, f"{PREFIX}numbers", np.float64, (n, _NUMBERS)).tolist()
    codes = intact.array(arrays, f"{PREFIX}codes", np.int64, (n, _CODES))
    places = intact.array(arrays, f"{PREFIX}places", np.int64, (n, None))
    intact.within("kinds", codes[:, 0], _ROW, _EARLY + 1)
    intact.within("predicted", codes[:, 2], -1, max(classes, 1))
    intact.within("known", codes[:, 3], 0, max(classes, 3) + 1)
    intact.within("topics", places[:, 0], 0, len(meta["topics"]))
    intact.within("learners", places[:, 3], 0, len(meta["learners"]))
    intact.within("partitions and offsets", places[:, 1:3], 0, 2**62)
    if any(variance < 0.0 or fresh < 0.0 for _, _, variance, fresh in numbers):
        raise ValueError("what waits has a variance below 0")
    scores, spreads = _parts(arrays, "score", n), _parts(arrays, "spread", n)
    texts = _text(arrays, "texts").split(b"\n")
    if len(texts) != n or any(
        len(own) not in (0, 8 * code[3]) or len(spread) not in (0, len(own))
        for own, spread, code in zip(scores, spreads, codes.tolist(), strict=True)
    ):
        raise ValueError("what waits has other texts or scores than ids")
    found: list[Entry] = []
    for id_, text, (weight, score, variance, fresh), (kind, ts_ms, predicted, known), place, own, spread in zip(
        ids, texts, numbers, codes.tolist(), places.tolist(), scores, spreads, strict=True
    ):
        i, partition, offset, learner, at_ms, record_ms, *beside = place
        topic, named, since = str(meta["topics"][i]), str(meta["learners"][learner]), tuple(beside)
        times = _time(ts_ms), _time(record_ms)
        said = _said(id_, "label" if kind == _EARLY else "features", text, weight)
        if kind == _EARLY:
            found.append(Early(id_, said, weight, *times, named or None, topic, partition, offset, since, at_ms))
            continue
        made = Made(score, variance, fresh, predicted, known, own, spread)
        row = Row(id_, text, weight, *times, named, topic, partition, offset, since, at_ms, made, kind == _ROW)
        row.made_bytes = len(own) + len(spread)
        found.append(row)
    return found


def _said(id_: Any, field: str, text: bytes, weight: float) -> Any:
    """The label or the features, where a message could say them."""
    said = json.loads(text)
    values = said.values() if isinstance(said, dict) else said if isinstance(said, list) else [said]
    if not weight > 0.0 or not all(math.isfinite(value) for value in values if isinstance(value, float)):
        raise ValueError("what waits has no weight, or a number that is not finite")
    if id_ is None or isinstance(_MESSAGES.interpret({"id": id_, field: said}), Reject):
        raise ValueError("what waits is nothing that a message could say")
    return said


def _parts(arrays: Mapping[str, NDArray[Any]], name: str, n: int) -> list[bytes]:
    numbers = intact.array(arrays, f"{PREFIX}{name}s", np.float64, (None,))
    if name == "spread" and np.any(numbers < 0.0):
        raise ValueError("what waits has a variance below 0")
    ends = intact.array(arrays, f"{PREFIX}{name}_ends", np.int64, (n,))
    intact.ends(f"{name}_ends", ends, numbers.size)
    return [numbers[start:end].tobytes() for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)]


def _settled(arrays: Mapping[str, NDArray[Any]], name: str) -> dict[str, None]:
    if f"{PREFIX}{name}" not in arrays:
        return {}
    return dict.fromkeys(map(str, orjson.loads(_text(arrays, name))))


def _text(arrays: Mapping[str, NDArray[Any]], name: str) -> bytes:
    return intact.array(arrays, f"{PREFIX}{name}", np.uint8, (None,)).tobytes()


def _partition(topic: Any, partition: Any) -> Partition:
    return str(topic), intact.whole("partition", partition, most=2**31)


def _clock(now_ms: Any, last: Any) -> Clock:
    return Clock([intact.whole("time", ms, NO_TIME) for ms in last], intact.whole("now", now_ms, NO_TIME))
