"""What one value of the configuration may be, and how it is written: durations, sizes, numbers, names."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, ValidationInfo

from olstream import configfile
from olstream.messages import label_text
from olstream.mistakes import wrong

Label: TypeAlias = str | int | float | bool

TEXT_MAX: Final = 256  # characters of a class, or of an id
CLASS_TWICE: Final = 'names a class twice (1, 1.0 and "1" are one class)'
CLASS_IS: Final = f"a class is text of 1 to {TEXT_MAX} characters, a whole number, true or false"

_UNITS_MS: Final = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}  # as they follow in 1h30m
_UNITS_BYTES: Final = {"B": 1, "kB": 1000, "MB": 1000**2, "GB": 1000**3, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
_QUANTITY: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)")
_DURATION: Final = re.compile(rf"(?:{_QUANTITY.pattern}\s*)+")
_GROUP: Final = re.compile(r"[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,199}")
_LEARNER: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_INTEGER_BITS_MAX: Final = 1100  # longer in digits than any class, and slow to write out
_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def _seconds(value: object, info: ValidationInfo) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool) and not (info.context or {}).get("file"):
        return float(value)
    parts = _QUANTITY.findall(value) if isinstance(value, str) and _DURATION.fullmatch(value.strip()) else []
    units = [unit for _, unit in parts]
    if not parts or units != [unit for unit in _UNITS_MS if unit in units]:
        raise wrong(f"must be a duration with its unit, such as 200ms, 30s, 5m or 1h30m, not {value!r}")
    return float(sum(Decimal(number) * _UNITS_MS[unit] for number, unit in parts) / 1000)


def seconds_text(value_s: float) -> str:
    if value_s.is_integer():
        return f"{int(value_s)}s"
    whole_ms = round(value_s * 1000)
    return f"{whole_ms}ms" if whole_ms / 1000 == value_s else f"{value_s!r}s"


def _bytes(value: object) -> object:
    match = _QUANTITY.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is not None and match[2] in _UNITS_BYTES:
        return int(float(match[1]) * _UNITS_BYTES[match[2]])
    value = _unquoted(value)
    if isinstance(value, str):
        raise wrong(f"must be a number of bytes, or text with a unit such as 256MiB, not {value!r}")
    return value


def _unquoted(value: object) -> object:
    """A number, whether or not it was written in quotes; `1E3` is a whole number too."""
    read = configfile.scalar(value.strip()) if isinstance(value, str) else value
    if isinstance(read, bool) or not isinstance(read, int | float):
        return value
    return int(read) if isinstance(read, float) and read.is_integer() else read


def _topic(value: str) -> str:
    if not _TOPIC.fullmatch(value) or value in (".", ".."):
        raise wrong(f"{value!r} is no topic name: 1 to 249 of letters, digits, '.', '_' and '-'")
    return value


def _group(value: str) -> str:
    if not _GROUP.fullmatch(value) or value in (".", ".."):
        raise wrong("must be 1 to 200 of letters, digits, '.', '_' and '-': a directory and a topic are named after it")
    return value


def _learner(value: str) -> str:
    if not _LEARNER.fullmatch(value):
        raise wrong("is no learner's name: 1 to 64 of letters, digits, '_', '.' and '-'")
    return value


def _dotted_path(value: str) -> str:
    if not all(value.split(".")):
        raise wrong(f"{value!r} is no path: write names joined by single dots, such as data.user.age")
    return value


def _class(value: object) -> object:
    if class_text(value) is None:
        raise wrong(f"{_told(value)} is no class: {CLASS_IS}")
    return value


def _told(value: object) -> str:
    if isinstance(value, str) and len(value) > TEXT_MAX:
        return f"a text of {len(value)} characters"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else f"{value!r}"


def _single(value: object) -> object:
    if not isinstance(value, str | int | float):
        raise wrong(f"must be text, a number, true or false, not {_told(value)}")
    return value


def _listed(value: object) -> object:
    return [value] if isinstance(value, str | int | float) else value


def _from_to(lengths: list[int]) -> list[int]:
    """One length is the shortest and the longest."""
    if not 1 <= len(lengths) <= 2 or lengths[0] > lengths[-1]:
        raise wrong(f"must be one length or [from, to], such as [1, 2], not {lengths}")
    return [lengths[0], lengths[-1]]


def _by_label(value: object) -> object:
    """A mapping by class text: the keys of a file are text, and `1.0` means the class 1."""
    if not isinstance(value, dict):
        return value
    by_text = {label_text(_class(_unquoted(key))): one for key, one in value.items()}
    if len(by_text) < len(value):
        raise wrong(CLASS_TWICE)
    return by_text


def _drift(value: object) -> object:
    """`adwin`, `[adwin, {ddm: {...}}]` or `{adwin: {...}}`, all as name -> parameters."""
    if value is None or value == "none":
        return {}
    detectors: dict[object, object] = {}
    for part in [value] if isinstance(value, str | dict) else value if isinstance(value, list) else [value]:
        if isinstance(part, str | dict):
            for name in [part] if isinstance(part, str) else part:
                if name in detectors:
                    raise wrong(f"names {name} twice: a detector watches one signal")
                detectors[name] = (part.get(name) if isinstance(part, dict) else None) or {}
        else:
            raise wrong("must be a list of detectors, such as [adwin], or {adwin: {delta: 0.002}}")
    return detectors


def _text(check: Callable[[str], str]) -> BeforeValidator:
    """The check of a text; what is no text is left for the type to refuse."""
    return BeforeValidator(lambda value: check(value) if isinstance(value, str) else value, json_schema_input_type=str)


Duration = Annotated[
    float,
    BeforeValidator(_seconds, json_schema_input_type=str),
    PlainSerializer(seconds_text, return_type=str, when_used="json"),
]
Size = Annotated[int, BeforeValidator(_bytes, json_schema_input_type=int | str)]
Whole = Annotated[int, BeforeValidator(_unquoted, json_schema_input_type=int)]
Real = Annotated[float, BeforeValidator(_unquoted, json_schema_input_type=float), Field(allow_inf_nan=False)]
Group = Annotated[str, _text(_group)]
LearnerName = Annotated[str, _text(_learner)]
Topic = Annotated[str, _text(_topic)]
DottedPath = Annotated[str, _text(_dotted_path)]
FeaturesPath = Annotated[str, _text(lambda value: value if value == "." else _dotted_path(value))]
Factors = Annotated[
    dict[str, Annotated[Real, Field(ge=0)]],
    BeforeValidator(_by_label, json_schema_input_type=dict[str, float]),
]
Detector = Literal["adwin", "ddm", "eddm", "hddm_a", "hddm_w", "page_hinkley", "kswin"]
Detectors = Annotated[
    dict[Detector, dict[str, Any]],
    BeforeValidator(
        _drift,
        json_schema_input_type=list[Detector | dict[Detector, dict[str, Any]]]
        | dict[Detector, dict[str, Any] | None]
        | None,
    ),
]
ClassLabel = Annotated[Label, BeforeValidator(_class, json_schema_input_type=Label)]
LabelOrMore = Annotated[
    list[Annotated[Label, BeforeValidator(_single, json_schema_input_type=Label)]],
    BeforeValidator(_listed, json_schema_input_type=list[Label] | Label),
]
Lengths = Annotated[
    list[Annotated[Whole, Field(ge=1, le=10)]],
    BeforeValidator(_listed, json_schema_input_type=list[int] | int),
    AfterValidator(_from_to),
]


def class_text(label: object) -> str | None:
    """The text of what a message could carry as a class; None for anything else."""
    if isinstance(label, float) and not label.is_integer():
        return None
    if isinstance(label, int) and label.bit_length() > _INTEGER_BITS_MAX:
        return None
    text = label_text(label) if isinstance(label, str | int | float) else ""
    return text if 1 <= len(text) <= TEXT_MAX and _is_writable(text) else None


def _is_writable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True
