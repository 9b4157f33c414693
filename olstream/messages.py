"""The shapes one message takes on its way: Chunk of records, Example or Reject, prediction.

Everything here is data. A record is bytes as Kafka gave them; an example is what the
bytes mean; a reject is why they mean nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

Headers: TypeAlias = list[tuple[str, bytes | None]]
Label: TypeAlias = str | int | float | bool


@dataclass(slots=True)
class Chunk:
    """Consecutive records of one partition, in columns. All lists have the same length."""

    topic: str
    partition: int
    offsets: list[int]
    timestamps: list[int | None]  # epoch milliseconds
    keys: list[bytes | None]
    values: list[bytes | None]
    headers: Sequence[Headers | None]

    def __len__(self) -> int:
        return len(self.offsets)


class Reason(StrEnum):
    """Why a message was refused: a closed set, one dead letter each."""

    EMPTY = "empty"
    TOO_LARGE = "too_large"
    BAD_ENCODING = "bad_encoding"
    BAD_JSON = "bad_json"
    TOO_DEEP = "too_deep"
    DUPLICATE_KEY = "duplicate_key"
    NOT_OBJECT = "not_object"
    MISSING_FIELDS = "missing_fields"
    BAD_FEATURES = "bad_features"
    NOT_FINITE = "not_finite"
    DIMENSION = "dimension"
    BAD_LABEL = "bad_label"
    UNKNOWN_LABEL = "unknown_label"
    BAD_WEIGHT = "bad_weight"
    BAD_ID = "bad_id"
    BAD_TS = "bad_ts"
    UNKNOWN_LEARNER = "unknown_learner"


@dataclass(frozen=True, slots=True)
class Reject:
    """A message that breaks a rule: the reason class, and one sentence for people."""

    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class SparseRow:
    """An array most of whose numbers are 0: the others, by position. It means what that array means."""

    size: int
    positions: NDArray[np.int64]  # ascending, each once
    values: NDArray[np.float64]

    def __len__(self) -> int:
        return self.size

    def dense(self) -> list[float]:
        row = np.zeros(self.size)
        row[self.positions] = self.values
        numbers: list[float] = row.tolist()
        return numbers


class Example(msgspec.Struct, gc=False):
    """What a message says. `features` is a mapping name -> number or category text, a list or a
    SparseRow (array form), a struct of the fast path, or None in a label-only message."""

    id: str | int | None = None
    features: Any = None
    label: Label | None = None
    learner: str | None = None
    weight: float = 1.0
    ts_ms: int | None = None


class Tombstone:
    """A null value: no effect, only counted."""

    __slots__ = ()


TOMBSTONE: Final = Tombstone()


@dataclass(slots=True)
class Outgoing:
    """A record on its way out; its bytes are kept until the outcome of their commit is known."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers = field(default_factory=list)


@dataclass(slots=True)
class Records:
    """Records on their way out to one topic, in columns; a value of None is left out."""

    topic: str
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[Headers | None] | None = None


def time_of(own_ms: int | None, record_ms: int | None) -> int | None:
    """When something happened: as its message says, else when its record was made; None where neither is known."""
    return record_ms if own_ms is None else own_ms


def label_text(label: object) -> str:
    """A class by its text, as messages are compared: 1, 1.0 and "1" are one class, true and "true" another."""
    if isinstance(label, bool):
        return "true" if label else "false"
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)
