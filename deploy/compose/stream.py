"""Orders of a shop without end, one JSON line each, for `olstream send CONFIG -`.

What makes customers send an order back changes at once after every PHASE orders. Each start tells the same story.
"""

from __future__ import annotations

import json
import random
import sys
import time

PHASE = 20_000
NUMBERS = ("price", "weight", "distance", "hour")
SHOPS = ("north", "south", "east", "west")


def main() -> None:
    rng = random.Random(7)
    started_s = int(time.time())
    number = 0
    while True:
        rule = {name: rng.gauss(0, 1) for name in NUMBERS}
        shops = {shop: rng.gauss(0, 0.5) for shop in SHOPS}
        for _ in range(PHASE):
            features: dict[str, float | str] = {name: round(rng.gauss(0, 1), 4) for name in NUMBERS}
            shop = rng.choice(SHOPS)
            score = sum(rule[name] * float(features[name]) for name in NUMBERS) + shops[shop] + rng.gauss(0, 0.3)
            label = "returned" if score > 0 else "kept"
            order = {"id": f"{started_s}-{number}", "features": features | {"shop": shop}, "label": label}
            sys.stdout.write(json.dumps(order) + "\n")
            number += 1


if __name__ == "__main__":
    try:
        main()
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(0)
