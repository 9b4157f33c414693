"""Lines of a file of examples -> what they say, as messages would have: the same for every command."""

from __future__ import annotations

from collections.abc import Sequence

from olstream.config import FieldsConfig, InputConfig
from olstream.decode import Decoder
from olstream.interpret import WHOLE
from olstream.io.lines import Line
from olstream.messages import Example, Reason, Reject


def decoder_of(format_: str, given: InputConfig, carry: Sequence[str] = ()) -> Decoder:
    """What reads the lines of that form. A row of CSV is features as a whole; libsvm has places of its own."""
    fields = given.fields
    if format_ == "csv":
        fields = fields.model_copy(update={"features": WHOLE})
    elif format_ == "libsvm":
        fields = FieldsConfig()
    return Decoder(fields, given.exclude, given.max_message_bytes, carry=carry)


def examples(decoder: Decoder, lines: Sequence[Line]) -> list[Example | Reject]:
    """What each line says, in order."""
    if all(line.tree is None for line in lines):
        return decoder.decode([line.data for line in lines])  # type: ignore[return-value]  # no value is null
    return [_example(decoder, line) for line in lines]


def _example(decoder: Decoder, line: Line) -> Example | Reject:
    if len(line.data) > decoder.size_max:
        return Reject(Reason.TOO_LARGE, f"{len(line.data)} bytes, the limit is {decoder.size_max}")
    return line.tree if isinstance(line.tree, Reject) else decoder.interpret(line.tree)
