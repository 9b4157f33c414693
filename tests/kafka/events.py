"""Streams that the tests feed: seeded, so that every run and every service sees the same bytes."""

from __future__ import annotations

import json
import random

WEIGHTS = {"amount": 1.5, "age": -1.0, "speed": 0.5, "load": -0.25}
FIRST_TS_MS = 1_764_460_800_000
UNLABELLED_EVERY = 5


def labelled(i: int) -> bool:
    return i % UNLABELLED_EVERY != 0


def events(n: int, seed: int = 1, first: int = 0) -> list[bytes]:
    """`n` messages with an id each, of which every fifth has no label: a noisy linear rule and a category."""
    rng = random.Random(seed)
    return [_event(i, rng) for i in range(first, first + n)]


def _event(i: int, rng: random.Random) -> bytes:
    features: dict[str, float | str] = {name: rng.gauss(0, 1) for name in WEIGHTS}
    score = sum(WEIGHTS[name] * float(value) for name, value in features.items()) + rng.gauss(0, 0.5)
    features["shop"] = rng.choice(["north", "south", "east"])
    message = {"id": f"e{i}", "features": features, "ts": FIRST_TS_MS + i}
    if labelled(i):
        message["label"] = int(score > 0)
    return json.dumps(message).encode()
