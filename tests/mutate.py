"""Messages made at random and then damaged at random: food for comparing two readers."""

from __future__ import annotations

import json
import random
from typing import Any, TypeAlias

from olstream.config import FieldsConfig

Key: TypeAlias = tuple[str, list[str] | None]

NAMES = ("a", "b", "x", "price", "a:b", "feature_12", "é", "ts_ms", "id", "label", "weight", "f0", "shape", "d.e")
INSTANTS = ("2026-11-30T10:00:00Z", "2026-11-30T10:00:00.5+09:00", "1969-12-31T23:59:59.999Z", "2016-12-31T23:59:60Z")
TEXTS = ("a", "red", "x:y", "::", "é", INSTANTS[0])
ODD_TEXTS = ("", "\u0001", "\\", '"', "ok" * 150, "2026-11-30T10:00:00")
VALUES = r"""
    0 -0 -0.0 1 7 1.0 1e2 1.5 -3 1e999 -1e999 1e-400 5e-324 01 1. .5 +1 NaN true false null [] {} [1]
    9007199254740993 9223372036854775807 9223372036854775808 18446744073709551615 18446744073709551616
    -9223372036854775808 -9223372036854775809 123456789012345678901234567890 0.1000000000000000055511151
    1.7976931348623157e308 1.7976931348623159e308 2.2250738585072011e-308
    "1" "" {"a":1} "\u0061" "\ud800" "a:b"
"""
LITERALS = (*VALUES.split(), "9" * 400)
PIECES = rb"""
    null true NaN 1e999 -0 1234567890123456789 " , : { } [ ] \ \u003a "a":1, "label":1, ,"id":"q" ,"weight":2
"""
SPLICES = (
    *PIECES.split(),
    *(b"\xef\xbb\xbf", b"\x00", b"\x1f", b"\x7f", b"\xc3\xa9", b"e\xcc\x81", b"\xc0\xaf", b"\xed\xa0\x80"),
    *(b" ", b"\r", b"\t", b"\n", b"\x0b"),
)
ORDINARY = ("number", "number", "number", "int", "text", "boolean")
KINDS = {  # of what is mostly a field, so that most messages are good ones
    **dict.fromkeys(("id", "key", "meta.id"), ("int", "text")),
    **dict.fromkeys(("ts", "d.e"), ("int", "ts")),
    "learner": ("text",),
    "weight": ("weight",),
}
MAPPINGS = (
    (FieldsConfig(), ()),
    (FieldsConfig(), ("x", "features.price")),
    (FieldsConfig(features="."), ("price",)),
    (FieldsConfig(features=".", weight="weight", ts="ts"), ()),
    (FieldsConfig(id="key", label="features.a", features="features"), ()),
    (FieldsConfig(id="meta.id", label="y", features="data.x", ts="d.e"), ()),
    (FieldsConfig(id="x", label="x"), ()),
)


def literal(rng: random.Random) -> str:
    """A JSON value or nearly one, mostly an ordinary number."""
    choice = rng.random()
    if choice < 0.7:
        return rng.choice([repr(rng.gauss(0, 1)), str(rng.randrange(100)), f"{rng.gauss(0, 1):.3f}"])
    if choice < 0.9:
        return rng.choice(LITERALS)
    return json.dumps(rng.choice(TEXTS + ODD_TEXTS), ensure_ascii=rng.random() < 0.2)


def template(rng: random.Random, fields: FieldsConfig) -> list[Key]:
    """Keys of a message in order: each a name and, for the features object, the names inside."""
    inside = rng.sample(NAMES, rng.randrange(1, 8))
    names = rng.sample(["source", "x", "n"], rng.randrange(2))
    names += [getattr(fields, field) for field in ("id", "label", "weight", "ts", "learner") if rng.random() < 0.5]
    if fields.features == ".":
        names += inside
    keys: list[Key] = [(name, None) for name in dict.fromkeys(names) if name != fields.features]
    if fields.features != ".":
        keys.append((fields.features, inside))
    rng.shuffle(keys)
    return keys


def message(rng: random.Random, keys: list[Key], kinds: dict[str, Any]) -> bytes:
    """A message with these keys. `kinds` remembers what sort of value each name has, so that a shape repeats."""
    comma, colon = rng.choice([(",", ":"), (", ", ": "), (",\n", " : ")])

    def member(name: str, inside: list[str] | None) -> str:
        text = json.dumps(name, ensure_ascii=False)
        if inside is None:
            return text + colon + _value(rng, kinds.setdefault(name, rng.choice(KINDS.get(name, ORDINARY))))
        if kinds.setdefault("array", rng.random() < 0.15):
            return text + colon + "[" + comma.join(_value(rng, "number") for _ in inside) + "]"
        return text + colon + "{" + comma.join(member(key, None) for key in inside) + "}"

    return ("{" + comma.join(member(*key) for key in keys) + "}").encode()


def _value(rng: random.Random, kind: str) -> str:
    if kind == "any" or rng.random() < 0.01:
        return literal(rng)
    if kind == "weight":
        return rng.choice(["0", "1", "2.5", "1e3", "0.0"])
    if kind == "ts":
        return json.dumps(rng.choice(INSTANTS))
    if kind == "text":
        return json.dumps(rng.choice(TEXTS), ensure_ascii=False)
    if kind == "boolean":
        return rng.choice(["true", "false"])
    return str(rng.randrange(-5, 100)) if kind == "int" else repr(round(rng.gauss(0, 10), rng.randrange(17)))


def mutated(rng: random.Random, data: bytes) -> bytes:
    """The message with up to three small damages, mostly one."""
    body = bytearray(data)
    for _ in range(rng.choice((0, 1, 1, 1, 1, 2, 3))):
        i, j = rng.randrange(len(body) + 1), rng.randrange(len(body) + 1)
        damage = rng.choice((0, 1, 2, 2, 3, 4, 5, 6, 6, 6))
        if damage == 0 and i < len(body):
            body[i] = rng.choice(b'0123456789.eE+-"{},: \n\t\\\x00\x7f\xc3ntfa')
        elif damage == 1:
            del body[i : i + rng.choice([1, 1, 2, 8, 30])]
        elif damage == 2:
            body[i:i] = rng.choice(SPLICES)
        elif damage == 3 and rng.random() < 0.3:
            del body[i:]
        elif damage == 4:
            body[i:i] = body[j : j + rng.choice([3, 5, 16, 22])]
        elif damage == 5:
            members = bytes(body).split(b",")
            k = rng.randrange(len(members))
            members.insert(rng.randrange(len(members) + 1), members[k])
            body = bytearray(b",".join(members))
        else:
            head, colon, tail = bytes(body[i:]).partition(b":")
            rest = tail[len(tail.split(b",")[0].rstrip(b"}")) :]
            body[i:] = head + colon + literal(rng).encode() + rest if colon else body[i:]
    return bytes(body)
