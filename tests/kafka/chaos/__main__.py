"""Runs scenarios by name, on brokers of its own."""

from __future__ import annotations

import argparse
import random
import sys

from tests.kafka.chaos.scenario import perform, scenarios


def main() -> int:
    known = scenarios()
    parser = argparse.ArgumentParser(prog="python -m tests.kafka.chaos", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="Only these; all of them without.")
    parser.add_argument("--seed", type=int, help="Another run with the same seed does the same things.")
    parser.add_argument("--count", type=int, help="How many times a scenario hits, where it hits again and again.")
    parser.add_argument("--list", action="store_true", help="Say what there is, and do nothing.")
    arguments = parser.parse_args()
    if arguments.list:
        for name, one in known.items():
            print(f"{name:32} {one.told}")
        return 0
    unknown = [name for name in arguments.names if name not in known]
    if unknown:
        parser.error(f"no scenario {', '.join(unknown)}; --list says what there is")
    seed = random.SystemRandom().randrange(1_000_000) if arguments.seed is None else arguments.seed
    chosen = [known[name] for name in arguments.names or known]
    failed = perform(chosen, seed, arguments.count, lambda line: print(line, flush=True))
    print(f"{len(chosen) - failed} of {len(chosen)} scenarios good, seed {seed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
