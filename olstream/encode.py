"""What a model says about a row -> the bytes of a prediction; a refused record -> its dead letter.

No time of day stands in a prediction: equal input and state give equal bytes. A number that
is not finite would be written as null (msgspec), never as NaN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from olstream.messages import Chunk, Example, Headers, Label, Outgoing, Reject
from olstream.rows import Rows
from olstream.waiting import Row, delay_of

LONGEST_BYTES: Final = 900_000  # of a key, or a dead letter's value: below the 1 MB that brokers take by default
CUT_BYTES: Final = 1024
HEADERS_MAX_BYTES: Final = 16 * 1024

_CORRECT: Final = (False, True, None)  # by 0, 1, -1


class Prediction(msgspec.Struct, gc=False):
    """The record that is published; keys in this order, all of them always."""

    id: str | int | None
    learner: str
    prediction: Any
    score: float
    probability: float
    label: Label | None
    loss: float
    correct: bool | None
    updated: bool
    updates: int
    topic: str
    partition: int
    offset: int
    ts: int | None


class ScoredPrediction(Prediction, gc=False):
    """With `output.scores`."""

    scores: dict[str, float] | None
    probabilities: dict[str, float] | None


class ShadowPrediction(Prediction, gc=False):
    """What a shadow says."""

    shadow: bool = True


class ScoredShadowPrediction(ScoredPrediction, gc=False):
    """What a shadow says, with `output.scores`."""

    shadow: bool = True


class Outcome(msgspec.Struct, gc=False):
    """A late label beside the prediction that was made when its features came."""

    id: str | int | None
    learner: str
    prediction: Any
    score: float
    label: Label | None
    loss: float
    correct: bool | None
    delay_ms: int | None


class Encoder:
    """Writes the predictions of one learner in one role."""

    def __init__(self, learner: str, scores: bool, shadow: bool) -> None:
        self.learner = learner
        self.scores = scores
        plain, scored = (ShadowPrediction, ScoredShadowPrediction) if shadow else (Prediction, ScoredPrediction)
        self._record: type[Prediction] = scored if scores else plain
        self._encode = msgspec.json.Encoder().encode

    def encode(
        self, chunk: Chunk, positions: Sequence[int], examples: Sequence[Example], rows: Rows
    ) -> list[bytes | None]:
        """A value for each row, None at a refused one. `positions`: the rows' places in the chunk."""
        record, encode, learner = self._record, self._encode, self.learner
        topic, partition, offsets, timestamps = chunk.topic, chunk.partition, chunk.offsets, chunk.timestamps
        scores = rows.score.tolist()
        columns = zip(
            positions, examples, _predictions(rows, scores), scores, rows.probability.tolist(),
            _labels(examples, rows), rows.loss.tolist(), rows.correct.tolist(), rows.updated.tolist(),
            rows.updates.tolist(), self._extras(rows), strict=True,
        )  # fmt: skip
        values: list[bytes | None] = [
            encode(
                record(
                    example.id, learner, prediction, score, probability, label, loss, _CORRECT[correct],
                    updated == 1, updates, topic, partition, offsets[i],
                    timestamps[i] if example.ts_ms is None else example.ts_ms, *extras,
                )
            )
            for i, example, prediction, score, probability, label, loss, correct, updated, updates, extras in columns
        ]  # fmt: skip
        for row in rows.rejects:
            values[row] = None
        return values

    def _extras(self, rows: Rows) -> Sequence[tuple[Any, ...]]:
        if not self.scores:
            return [()] * len(rows)
        return [
            (None, None) if row in rows.rejects else (rows.scores_of(row), rows.probabilities_of(row))
            for row in range(len(rows))
        ]


def outcomes(
    learner: str,
    chunk: Chunk,
    positions: Sequence[int],
    examples: Sequence[Example],
    rows: Rows,
    late: Mapping[int, Row],
) -> dict[int, bytes]:
    """By position in the chunk, of each late row that this slot had predicted."""
    values: dict[int, bytes] = {}
    scores, labels = rows.score.tolist(), _labels(examples, rows)
    predictions = _predictions(rows, scores)
    for k, row in late.items():
        if row.is_measured:
            delay_ms = delay_of(row, examples[k].ts_ms, chunk.timestamps[positions[k]])
            loss, correct = float(rows.loss[k]), _CORRECT[int(rows.correct[k])]
            outcome = Outcome(row.id, learner, predictions[k], scores[k], labels[k], loss, correct, delay_ms)
            values[positions[k]] = msgspec.json.encode(outcome)
    return values


def dead_letter(chunk: Chunk, i: int, reject: Reject) -> tuple[bytes | None, bytes | None, Headers]:
    """Key, value and headers of the dead letter for record i: as received, and why it is one."""
    timestamp = chunk.timestamps[i]
    why: Headers = [
        ("olstream.reason", reject.reason.encode()),
        ("olstream.detail", reject.detail.encode()),
        ("olstream.topic", chunk.topic.encode()),
        ("olstream.partition", b"%d" % chunk.partition),
        ("olstream.offset", b"%d" % chunk.offsets[i]),
        ("olstream.timestamp", None if timestamp is None else b"%d" % timestamp),
    ]
    value = chunk.values[i]
    # A dead letter may be fed in once more on purpose, and fail again: what was said of it then makes way.
    ours = {name for name, _ in why}
    received = [(name, data) for name, data in chunk.headers[i] or [] if name not in ours]
    letter = Outgoing("", chunk.keys[i], value, first_of(received) + why)
    while max(len(letter.value or b""), len(letter.key or b"")) > LONGEST_BYTES:
        letter = cut(letter)
    return letter.key, letter.value, letter.headers


def cut(letter: Outgoing) -> Outgoing:
    """The same dead letter with the beginning of its value only, then of its key, and what their sizes were."""
    key, value = letter.key, letter.value
    if value is not None and len(value) > CUT_BYTES:
        return Outgoing(letter.topic, key, value[:CUT_BYTES], _with(letter.headers, "olstream.size", len(value)))
    if key is not None and len(key) > CUT_BYTES:
        return Outgoing(letter.topic, key[:CUT_BYTES], value, _with(letter.headers, "olstream.key_size", len(key)))
    return letter


def _with(headers: Headers, name: str, size: int) -> Headers:
    return [*((other, data) for other, data in headers if other != name), (name, b"%d" % size)]


def first_of(headers: Headers, size_max: int = HEADERS_MAX_BYTES) -> Headers:
    """The first headers that fit together; the rest is left out."""
    kept: Headers = []
    size = 0
    for name, value in headers:
        size += len(name.encode()) + len(value or b"")
        if size > size_max:
            break
        kept.append((name, value))
    return kept


def _predictions(rows: Rows, scores: list[float]) -> list[Any]:
    """The predicted class in its JSON form, None for the place -1; in a regression the score."""
    if rows.task == "regression":
        return scores
    forms = [*rows.classes, None]
    return [forms[k] for k in rows.predicted.tolist()]


def _labels(examples: Sequence[Example], rows: Rows) -> list[Label | None]:
    """Labels as sent; in a regression all are numbers of one kind."""
    if rows.task != "regression":
        return [example.label for example in examples]
    return [
        None if example.label is None or row in rows.rejects else float(example.label)
        for row, example in enumerate(examples)
    ]
