"""Values of records -> examples, or why not. The exact reader decides; the fast one only agrees with it."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from olstream.config import FieldsConfig
from olstream.interpret import WHOLE, Interpreter
from olstream.messages import TOMBSTONE, Example, Reject, Tombstone
from olstream.parse import Parser
from olstream.shapes import FeaturesStruct, Shapes


class Decoder:
    """Reads messages under one field mapping. `carry`: paths whose values the examples bring along for routes."""

    def __init__(
        self,
        fields: FieldsConfig,
        exclude: Sequence[str],
        max_message_bytes: int,
        fast: bool = True,
        carry: Sequence[str] = (),
    ) -> None:
        self.size_max = max_message_bytes
        self.parser = Parser(max_message_bytes)
        self.interpreter = Interpreter(fields, exclude, carry)
        self.shapes = Shapes(self.interpreter) if fast and not carry and _may_be_fast(self.interpreter) else None

    def decode(self, values: Sequence[bytes | None]) -> list[Example | Reject | Tombstone]:
        """What each value says, in order."""
        at_once = None if self.shapes is None else self.shapes.find_all(values, self.size_max)
        if at_once is not None:
            return [*at_once]
        return [self._decode_one(value) for value in values]

    def interpret(self, tree: object) -> Example | Reject:
        """What an already parsed value says; readers of other file forms make such trees."""
        return self.interpreter.interpret(tree)

    def _decode_one(self, value: bytes | None) -> Example | Reject | Tombstone:
        if value is None:
            return TOMBSTONE
        if self.shapes is not None and len(value) <= self.size_max and b"\\" not in value:
            example = self.shapes.find(value)
            if example is not None:
                return example
        return self._decode_exactly(value)

    def _decode_exactly(self, value: bytes) -> Example | Reject:
        tree = self.parser.parse(value)
        if isinstance(tree, Reject):
            return tree
        example = self.interpreter.interpret(tree)
        if self.shapes is not None and isinstance(example, Example):
            self.shapes.watch(tree)
        return example


def plain(example: Example) -> Example:
    """The example with its features in the exact reader's form, whichever reader made it."""
    features = example.features
    if isinstance(features, FeaturesStruct):
        features = features.shape.plain(features)
    return Example(example.id, features, example.label, example.learner, example.weight, example.ts_ms)


def kept(example: Example) -> bytes:
    """Its features as JSON, names in order: what is kept of them until their label comes.

    A copy, because the text as it is written holds on to eight kilobytes, however short it is.
    """
    return bytes(memoryview(orjson.dumps(plain(example).features, option=orjson.OPT_SORT_KEYS)))


def by_name(example: Example) -> Example:
    """The same with features in the order of their names, as they are kept for a late label."""
    if not isinstance(example.features, FeaturesStruct):
        return example
    told = plain(example)
    told.features = dict(sorted(told.features.items()))
    return told


def _may_be_fast(interpreter: Interpreter) -> bool:
    """Whether each key of a message has one meaning that does not depend on what else is in it."""
    paths = interpreter.paths
    inside = paths.get("features", WHOLE) + "."
    return len(set(paths.values())) == len(paths) and not any(path.startswith(inside) for path in paths.values())
