"""A made-up stream whose rule drifts, for where the flights cannot be had."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from typing import Final

from olstream.demo.stream import Stream

TOTAL: Final = 300_000
NUMBERS: Final = 6
SHOPS: Final = ["north", "south", "east", "west"]

EXPLAINED: Final = [
    "A synthetic stream: six numbers and a shop, and a noisy linear rule that says yes or no.",
    "The rule turns slowly all the time, and jumps once in the middle: a model that stops learning goes bad.",
]


def synthetic(seed: int = 7) -> Stream:
    return Stream(
        title="a synthetic stream that drifts",
        explained=EXPLAINED,
        classes=("no", "yes"),
        category=[],
        total=TOTAL,
        messages=_messages(random.Random(seed)),
    )


def _messages(rng: random.Random) -> Iterator[tuple[bytes, bytes]]:
    shops = {shop: rng.gauss(0, 0.5) for shop in SHOPS}
    for i in range(TOTAL):
        x = [rng.gauss(0, 1) for _ in range(NUMBERS)]
        shop = rng.choice(SHOPS)
        score = sum(a * b for a, b in zip(_rule(i), x, strict=True)) + shops[shop] - 1.0 + rng.gauss(0, 0.5)
        features: dict[str, float | str] = {f"x{j}": round(value, 4) for j, value in enumerate(x)}
        message = {"id": i, "features": features | {"shop": shop}, "label": "yes" if score > 0 else "no"}
        yield shop.encode(), json.dumps(message, separators=(",", ":")).encode()


def _rule(i: int) -> list[float]:
    """Weights on a circle: one turn in TOTAL rows, and half a turn at once in the middle."""
    angle = 2 * math.pi * i / TOTAL + (math.pi if i > TOTAL // 2 else 0.0)
    return [math.cos(angle + j) for j in range(NUMBERS)]
