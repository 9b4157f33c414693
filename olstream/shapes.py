"""The fast way to read: a stream mostly repeats one shape of message, and a struct made for it reads it in one go.

A Shape is a set of keys with the kind of each value. It answers only for messages that have
exactly these keys, each once, of these kinds; the exact reader has the last word on all others:

- every key is required and no other is taken, and outside texts a message holds one `:` a key,
  so as many `:` as keys means that no key came twice;
- a backslash could spell a key or a `:` another way, so whoever calls leaves such a message out;
- numbers are doubles to both readers; integers of fields are taken within int64 only.

`Shapes` keeps a few of them, and takes on a new one only after it has been seen many times:
a stream that never repeats itself must not make a type for each message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, TypeAlias, cast

import msgspec
import numpy as np
from msgspec import Meta
from msgspec.structs import astuple

from olstream.instant import rfc3339_ms
from olstream.interpret import TS_MAX, Interpreter
from olstream.messages import Example
from olstream.parse import INTEGER_MIN
from olstream.values import TEXT_MAX

Kind: TypeAlias = Literal["number", "text", "boolean", "null", "array", "object"]

SHAPES_MAX: Final = 8
NAMES_MAX: Final = 256  # a key out of order is looked for among all names
REPEATS: Final = 32  # on the slow path before a shape gets a struct
REPEATS_WHEN_FULL: Final = 4096
CANDIDATES_MAX: Final = 16
TOGETHER_MAX_BYTES: Final = 8 * 1024 * 1024
PAUSE_DOUBLINGS: Final = 4

_Integer = Annotated[int, Meta(ge=INTEGER_MIN, le=TS_MAX)]
_Text = Annotated[str, Meta(min_length=1, max_length=TEXT_MAX)]
_FEATURE: Final[Mapping[Kind, Any]] = {"number": float, "text": str, "boolean": bool}
_IGNORED: Final[Mapping[Kind, Any]] = {"number": _Integer | float, "text": str, "boolean": bool, "null": None}
_FIELD: Final[Mapping[str, Mapping[Kind, Any]]] = {
    "id": {"number": _Integer, "text": _Text, "null": None},
    "label": {"number": _Integer | float, "text": _Text, "boolean": bool, "null": None},
    "learner": {"text": str, "null": None},
    "weight": {"number": Annotated[float, Meta(ge=0.0)]},
    "ts_ms": {"number": _Integer, "text": str, "null": None},
    "features": {"array": Annotated[list[float], Meta(min_length=1)], "null": None, "object": None},
}
_COLON, _LINE_FEED = b":\n"
_BETWEEN: Final = np.array([[ord("}")], [ord("{")]], np.uint8)  # before and after a line feed between messages
_NONE: Final[Mapping[str, Any]] = {}
_ABSENT: Final = {"id": None, "label": None, "learner": None, "weight": 1.0, "ts_ms": None}


class Slot(NamedTuple):
    """A key of a message: whether it stands inside the features object, its name, the kind of its value."""

    inside: bool
    name: str
    kind: Kind


class _Part(NamedTuple):
    """A slot and what the struct makes of it."""

    slot: Slot
    attribute: str  # a field of Example, or feature<i>, or ignored<i>
    type: Any

    @property
    def is_feature(self) -> bool:
        return self.attribute.startswith("feature") and self.attribute != "features"


@dataclass(frozen=True, slots=True)
class FeaturesShape:
    """Names of the features that a struct holds, and the kinds of their values. Live shapes share equal ones."""

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]

    def values(self, features: FeaturesStruct) -> tuple[Any, ...]:
        """The values in the order of `names`."""
        return astuple(features)[: len(self.names)]

    def plain(self, features: FeaturesStruct) -> dict[str, float | str]:
        """The features as the exact reader gives them."""
        pairs = zip(self.names, self.values(features), strict=True)
        if "boolean" not in self.kinds:  # numbers are floats already
            return dict(pairs)
        return {name: value if isinstance(value, str) else float(value) for name, value in pairs}


class FeaturesStruct(msgspec.Struct, gc=False):
    """Base of the structs that hold features: their first attributes are those of `shape.names`."""

    shape: ClassVar[FeaturesShape]


class Shape:
    """One form of message: its keys, and the kind of each value."""

    def __init__(
        self, slots: Sequence[Slot], parts: Sequence[_Part], interpreter: Interpreter, others: Sequence[Shape]
    ) -> None:
        """`slots` in the order of a message, so that a struct finds each key where it looks first."""
        features = [part.slot for part in parts if part.is_feature]
        shape = FeaturesShape(tuple(slot.name for slot in features), tuple(slot.kind for slot in features))
        self.features: FeaturesShape = next((other.features for other in others if other.features == shape), shape)
        self.colons = len(slots) + sum(slot.name.count(":") for slot in slots)
        self.flat = interpreter.whole
        self._has_features = not self.flat or any(slot.name not in interpreter.hidden for slot in slots)
        dated = any(part.attribute == "ts_ms" and part.slot.kind == "text" for part in parts)
        self._is_unfinished = self.flat or dated
        self._texts = _texts_getter(parts)
        decoder = msgspec.json.Decoder(self._struct(parts))
        self._decode: Callable[[bytes], Any] = decoder.decode
        self._decode_lines: Callable[[bytes], list[Any]] = decoder.decode_lines

    @property
    def has_texts(self) -> bool:
        return self._texts is not None

    @classmethod
    def of(cls, slots: Sequence[Slot], interpreter: Interpreter, others: Sequence[Shape] = ()) -> Shape | None:
        """The shape of messages with these keys; None where a struct could not tell them for sure."""
        parts = [_part(i, slot, interpreter) for i, slot in enumerate(slots)]
        if len(slots) > NAMES_MAX or any(part is None for part in parts):
            return None
        known = [part for part in parts if part is not None]
        # What a struct inherits from Example can be spelt in a message too: such a key must be a field here.
        inherited = set() if interpreter.whole else {*_FIELD} - {part.attribute for part in known}
        if any(not slot.inside and slot.name in inherited for slot in slots):
            return None
        return cls(slots, known, interpreter, others)

    def read(self, data: bytes, colons: int) -> Example | None:
        """The message, holding that many colons, as an example; None where it is not of this shape for sure."""
        try:
            message: Any = self._decode(data)
        except msgspec.DecodeError:
            return None
        if self._texts is not None and colons != self.colons + "".join(self._texts(message)).count(":"):
            return None
        return self._example(message) if self._is_unfinished else message

    def read_all(self, values: Sequence[bytes]) -> list[Example] | None:
        """All of these messages at once; None where one of them is not of this shape for sure.

        They are joined by line feeds and read as one text, to which a line feed is white space like any other.
        But between `}` and `{` it can only stand between two messages, so where all do, as many messages as
        values means one in each. Each has `colons` at least: if all together have no more, none has more.
        """
        text = b"\n".join(values)
        if text[:1] != b"{" or text[-1:] != b"}" or b"\\" in text:
            return None
        codes = np.frombuffer(text, np.uint8)  # counting in here is several times faster than `bytes.count`
        feeds = np.flatnonzero(codes == _LINE_FEED)
        around = np.stack([codes[feeds - 1], codes[feeds + 1]])
        if len(feeds) != len(values) - 1 or np.any(around != _BETWEEN):
            return None
        surplus = int(np.count_nonzero(codes == _COLON)) - len(values) * self.colons
        if surplus < 0 or (surplus and self._texts is None):
            return None
        try:
            messages = self._decode_lines(text)
        except msgspec.DecodeError:
            return None
        if len(messages) != len(values) or surplus != self._colons_in_texts(messages):
            return None
        if not self._is_unfinished:
            return messages
        examples = [self._example(message) for message in messages]
        return None if None in examples else examples  # type: ignore[return-value]

    def _colons_in_texts(self, messages: list[Any]) -> int:
        if self._texts is None:
            return 0
        texts: list[Any] = list(map(self._texts, messages))
        return "".join(texts if isinstance(texts[0], str) else chain.from_iterable(texts)).count(":")

    def _example(self, message: Any) -> Example | None:
        """What the struct alone does not give: features apart from the rest, and the instant that a text is."""
        features = message if self._has_features else None
        if self.flat:
            message = Example(message.id, features, message.label, message.learner, message.weight, message.ts_ms)
        if isinstance(message.ts_ms, str):
            message.ts_ms = rfc3339_ms(message.ts_ms)
            if message.ts_ms is None:
                return None
        example: Example = message
        return example

    def _struct(self, parts: Sequence[_Part]) -> type[msgspec.Struct]:
        features_first = sorted(parts, key=lambda part: not part.is_feature)
        if self.flat:
            absent = {name: value for name, value in _ABSENT.items() if name not in {part.attribute for part in parts}}
            return _struct(FeaturesStruct, features_first, {"shape": self.features, **absent})
        within = [part for part in features_first if part.slot.inside]
        inside = _struct(FeaturesStruct, within, {"shape": self.features})
        outside = [part for part in parts if not part.slot.inside]
        return _struct(
            Example, [part._replace(type=inside) if part.slot.kind == "object" else part for part in outside]
        )


class Shapes:
    """The shapes that a reader remembers, the last used first, and those that it watches."""

    def __init__(self, interpreter: Interpreter) -> None:
        self.interpreter = interpreter
        self.live: list[Shape] = []
        self._keys: list[frozenset[Slot]] = []
        self.watched: dict[frozenset[Slot], int] = {}
        self._failures = 0  # in a row, of reading a batch at once
        self.pause = 0  # batches that are not tried for that

    def find(self, data: bytes) -> Example | None:
        """The message as the first shape reads it that can."""
        colons = data.count(b":")
        for i, shape in enumerate(self.live):
            if colons == shape.colons or (colons > shape.colons and shape.has_texts):
                example = shape.read(data, colons)
                if example is not None:
                    if i:
                        self._use(i)
                    return example
        return None

    def find_all(self, values: Sequence[bytes | None], size_max: int) -> list[Example] | None:
        """All messages, where all are of the shape used last. A stream that mixes its forms is not tried each time."""
        if self.pause > 0:
            self.pause -= 1
            return None
        sizes = [-1 if value is None else len(value) for value in values]
        read: list[Example] | None = None
        if self.live and sizes and min(sizes) > 0 and max(sizes) <= size_max and sum(sizes) <= TOGETHER_MAX_BYTES:
            read = self.live[0].read_all(cast(Sequence[bytes], values))
        self._failures = 0 if read is not None else min(self._failures + 1, PAUSE_DOUBLINGS)
        self.pause = 2**self._failures - 1
        return read

    def watch(self, tree: dict[str, Any]) -> None:
        """Count a message that the exact reader accepted; after enough of its kind, remember the shape."""
        slots = self._slots(tree)
        if slots is None:
            return
        key = frozenset(slots)
        seen = self.watched.pop(key, 0) + 1
        if seen >= (REPEATS if len(self.live) < SHAPES_MAX else REPEATS_WHEN_FULL):
            self._adopt(key, slots)
            return
        if len(self.watched) >= CANDIDATES_MAX:
            self.watched.pop(next(iter(self.watched)))
        self.watched[key] = seen

    def _adopt(self, key: frozenset[Slot], slots: list[Slot]) -> None:
        shape = Shape.of(slots, self.interpreter, self.live) if key not in self._keys else None
        if shape is not None:
            self.live[SHAPES_MAX - 1 :] = []
            self._keys[SHAPES_MAX - 1 :] = []
            self.live.insert(0, shape)
            self._keys.insert(0, key)

    def _use(self, i: int) -> None:
        self.live.insert(0, self.live.pop(i))
        self._keys.insert(0, self._keys.pop(i))

    def _slots(self, tree: dict[str, Any]) -> list[Slot] | None:
        """The keys of a message in its order; None where some value could not stand in a struct."""
        slots = []
        for name, value in tree.items():
            kind = _kind(value)
            is_features = not self.interpreter.whole and name == self.interpreter.paths["features"]
            if kind is None or (kind in ("object", "array") and not is_features):
                return None
            slots.append(Slot(False, name, kind))
            if kind == "object":
                for inner, inner_value in value.items():
                    inner_kind = _kind(inner_value)
                    if inner_kind is None or inner_kind in ("object", "array"):
                        return None
                    slots.append(Slot(True, inner, inner_kind))
        return slots


def _kind(value: Any) -> Kind | None:
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (float, int)):
        return "number"
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "object"
    return "array" if all(type(entry) in (float, int) for entry in value) else None


def _part(i: int, slot: Slot, interpreter: Interpreter) -> _Part | None:
    """What the i-th key is to the struct; None where its name or its kind fits none."""
    if any(character in '"\\' or character < " " for character in slot.name):
        return None
    fields = {path: field for field, path in interpreter.paths.items()}
    field = None if slot.inside else fields.get(slot.name)
    if field is not None:
        attribute = "ts_ms" if field == "ts" else field
        kinds = _FIELD[attribute]
    elif slot.inside is not interpreter.whole and slot.name not in interpreter.hidden and slot.kind != "null":
        attribute, kinds = f"feature{i}", _FEATURE
    else:
        attribute, kinds = f"ignored{i}", _IGNORED
    return _Part(slot, attribute, kinds[slot.kind]) if slot.kind in kinds else None


def _texts_getter(parts: Sequence[_Part]) -> Callable[[Any], Sequence[str]] | None:
    """The texts of a decoded message: only there can a `:` stand that ends no key."""
    paths = [
        f"features.{part.attribute}" if part.slot.inside else part.attribute
        for part in parts
        if part.slot.kind == "text"
    ]
    return attrgetter(*paths) if paths else None


def _struct(
    base: type[msgspec.Struct], parts: Sequence[_Part], constants: Mapping[str, Any] = _NONE
) -> type[msgspec.Struct]:
    """A struct that requires these keys and takes no other; `constants` are attributes of its class."""
    return msgspec.defstruct(
        base.__name__,
        [(part.attribute, part.type) for part in parts],
        bases=(base,),
        namespace=dict(constants),
        rename={part.attribute: part.slot.name for part in parts},
        kw_only=True,
        gc=False,
        forbid_unknown_fields=True,
    )
