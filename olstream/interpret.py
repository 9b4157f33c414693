"""A parsed JSON value -> Example: where each thing is, and what may stand there.

`input.fields` says where. A path is first looked for as a name with dots in it, then as
names inside names; null is "absent" everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from olstream.config import FieldsConfig
from olstream.instant import rfc3339_ms
from olstream.messages import Example, Label, Reason, Reject
from olstream.parse import INTEGER_MAX, INTEGER_MIN, nfc
from olstream.values import TEXT_MAX

TS_MAX: Final = 2**63 - 1
_SHOWN_MAX: Final = 64  # characters of a name
WHOLE: Final = "."  # the whole message is the features object
_OPTIONAL: Final = ("weight", "ts", "learner")


class CarryingExample(Example, gc=False):
    """An example that carries what routes of the form `field.<path>` look at."""

    carried: dict[str, Any] = {}  # noqa: RUF012  (a struct copies it)


class _RefusedError(Exception):
    def __init__(self, reason: Reason, detail: str) -> None:
        self.reject = Reject(reason, detail)


class Interpreter:
    """The field mapping of one configuration. `carry`: paths whose values the example brings along."""

    def __init__(self, fields: FieldsConfig, exclude: Sequence[str], carry: Sequence[str] = ()) -> None:
        self.whole = fields.features == WHOLE
        self.paths = _mapped(fields, self.whole)
        self.carry = {path: nfc(path) for path in carry}
        self.hidden = _hidden(fields.features, self.paths, exclude)
        self._hidden_inside = [path for path in self.hidden if "." in path]

    def interpret(self, tree: object) -> Example | Reject:
        """What the value means, or the first rule that it breaks."""
        if not isinstance(tree, dict):
            return Reject(Reason.NOT_OBJECT, f"{_kind(tree)} instead of an object")
        try:
            return self._example(tree)
        except _RefusedError as refused:
            return refused.reject

    def _example(self, tree: dict[str, Any]) -> Example:
        found = {field: find(tree, path) for field, path in self.paths.items()}
        features = self._features(tree, found.pop("features", None))
        label = _label(found["label"])
        id_ = _id(found["id"])
        if features is None and (label is None or id_ is None):
            lack = "neither features nor label" if label is None else "a label, but neither features nor id"
            raise _RefusedError(Reason.MISSING_FIELDS, lack)
        learner, weight, ts_ms = _learner(found.get("learner")), _weight(found.get("weight")), _ts(found.get("ts"))
        values = (id_, features, label, learner, weight, ts_ms)
        if self.carry:
            return CarryingExample(*values, {name: find(tree, path) for name, path in self.carry.items()})
        return Example(*values)

    def _features(self, tree: dict[str, Any], found: Any) -> dict[str, float | str] | list[float] | None:
        if self.whole:
            rest = self._visible(tree)
            return _object_features(rest) if rest else None
        if found is None:
            return None
        if isinstance(found, dict):
            return _object_features(self._visible(found) if self.hidden else found)
        if isinstance(found, list):
            return _array_features(found)
        raise _RefusedError(Reason.BAD_FEATURES, f"features are {_kind(found)}, not an object or an array")

    def _visible(self, members: dict[str, Any]) -> dict[str, Any]:
        rest = {name: value for name, value in members.items() if name not in self.hidden}
        for path in self._hidden_inside:
            rest = without(rest, path)
        return rest


def find(tree: Mapping[str, Any], path: str) -> Any:
    """The value at a path, None where there is none."""
    if path in tree:
        return tree[path]
    for head, tail in _splits(path):
        inner = tree.get(head)
        if isinstance(inner, dict):
            found = find(inner, tail)
            if found is not None:
                return found
    return None


def without(tree: dict[str, Any], path: str) -> dict[str, Any]:
    """The tree less what is at a path; an object that this empties goes too. The same tree where nothing is there."""
    if path in tree:
        return {name: value for name, value in tree.items() if name != path}
    for head, tail in _splits(path):
        inner = tree.get(head)
        if isinstance(inner, dict):
            less = without(inner, tail)
            if less is not inner:
                return {**tree, head: less} if less else without(tree, head)
    return tree


def _splits(path: str) -> Iterator[tuple[str, str]]:
    """`a.b.c` as (a.b, c), then (a, b.c)."""
    cut = path.rfind(".")
    while cut >= 0:
        yield path[:cut], path[cut + 1 :]
        cut = path.rfind(".", 0, cut)


def _mapped(fields: FieldsConfig, whole: bool) -> dict[str, str]:
    """Path by field. In a message that is all features, optional fields are read only where they were mapped."""
    names = ["id", "label", *(name for name in _OPTIONAL if not whole or name in fields.model_fields_set)]
    paths = {name: nfc(getattr(fields, name)) for name in names}
    return paths if whole else {"features": nfc(fields.features), **paths}


def _hidden(features: str, paths: Mapping[str, str], exclude: Sequence[str]) -> frozenset[str]:
    """Paths, seen from the features object, of what is no feature: `exclude`, and fields mapped in there."""
    excluded = [nfc(path) for path in exclude]
    mapped = [path for field, path in paths.items() if field != "features"]
    if features == WHOLE:
        return frozenset([*excluded, *mapped])
    prefix = nfc(features) + "."
    inside = [path.removeprefix(prefix) for path in (*excluded, *mapped) if path.startswith(prefix)]
    return frozenset([*excluded, *inside])


def _object_features(members: Mapping[str, Any]) -> dict[str, float | str]:
    features: dict[str, float | str] = {}
    for name, value in members.items():
        kind = type(value)
        if kind is float or kind is str:
            features[name] = value
        elif kind is int or kind is bool:
            features[name] = float(value)
        elif value is not None:
            which = repr(name) if len(name) <= _SHOWN_MAX else f"number {list(members).index(name) + 1}"
            raise _RefusedError(Reason.BAD_FEATURES, f"feature {which} is {_kind(value)}")
    if "" in members:
        raise _RefusedError(Reason.BAD_FEATURES, "a feature with an empty name")
    return features


def _array_features(values: list[Any]) -> list[float]:
    if not values:
        raise _RefusedError(Reason.BAD_FEATURES, "an empty array of features")
    for position, value in enumerate(values):
        if not isinstance(value, (float, int)):
            raise _RefusedError(Reason.BAD_FEATURES, f"the value at index {position} is {_kind(value)}, not a number")
    return list(map(float, values))


def _label(value: Any) -> Label | None:
    """Whether the label suits the task is for the model to say; an array suits none."""
    if isinstance(value, str) and not 1 <= len(value) <= TEXT_MAX:
        raise _RefusedError(Reason.BAD_LABEL, f"label of {len(value)} characters, 1 to {TEXT_MAX} are allowed")
    if isinstance(value, (dict, list)):
        raise _RefusedError(Reason.BAD_LABEL, f"label is {_kind(value)}")
    label: Label | None = value
    return label


def _id(value: Any) -> str | int | None:
    if value is None or (isinstance(value, str) and 1 <= len(value) <= TEXT_MAX):
        return value
    if type(value) is int and INTEGER_MIN <= value <= INTEGER_MAX:
        return value
    if isinstance(value, str):
        raise _RefusedError(Reason.BAD_ID, f"id of {len(value)} characters, 1 to {TEXT_MAX} are allowed")
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    kind = "a number, but no integer of 64 bits" if is_number else f"{_kind(value)}, not text or an integer"
    raise _RefusedError(Reason.BAD_ID, f"id is {kind}")


def _learner(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise _RefusedError(Reason.UNKNOWN_LEARNER, f"learner is {_kind(value)}, not a name")


def _weight(value: Any) -> float:
    if value is None:
        return 1.0
    if isinstance(value, (float, int)) and not isinstance(value, bool) and value >= 0:
        return float(value)
    raise _RefusedError(Reason.BAD_WEIGHT, f"weight is {_kind(value)}, not a number of at least 0")


def _ts(value: Any) -> int | None:
    if value is None:
        return None
    if type(value) is int and INTEGER_MIN <= value <= TS_MAX:
        return value
    ts_ms = rfc3339_ms(value) if isinstance(value, str) else None
    if ts_ms is not None:
        return ts_ms
    if isinstance(value, str):
        raise _RefusedError(Reason.BAD_TS, "ts is text, but not RFC 3339 with an offset, as 2026-11-30T10:00:00Z is")
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    kind = "a number, but no" if is_number else f"{_kind(value)}, neither text nor"
    raise _RefusedError(Reason.BAD_TS, f"ts is {kind} integer of epoch milliseconds in 64 bits")


def _kind(value: object) -> str:
    """What a person calls such a value; never the value itself, which stays out of logs."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "text" if value else "an empty text"
    if isinstance(value, (int, float)):
        return "a negative number" if value < 0 else "a number"
    return "an array" if isinstance(value, list) else "an object"
