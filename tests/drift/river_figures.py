"""Where River says drift on our streams, as a file: `test_river` holds ours against it.

River stands in the environment of the benchmark alone:

    make .venv-bench/made
    .venv-bench/bin/python -m tests.drift.river_figures > tests/drift/river.json
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise, product
from operator import attrgetter
from typing import Any

import numpy as np

from tests.drift.streams import EVERY, F64

SEEDS = range(2)
STREAMS = ("abrupt", "gradual", "stationary", "back_and_forth", "alternating", "flawless_then_not")
# By the name of the figure: River's detector with its defaults, except for what stands here
DETECTORS: dict[str, tuple[str, dict[str, Any]]] = {
    "adwin": ("ADWIN", {}),
    "ddm": ("binary.DDM", {}),
    "eddm": ("binary.EDDM", {}),
    "hddm_a": ("binary.HDDMA", {}),
    "hddm_a two_sided": ("binary.HDDMA", {"two_sided_test": True}),
    "hddm_w": ("binary.HDDMW", {}),
    "page_hinkley": ("PageHinkley", {"threshold": 8.0}),
    "page_hinkley up": ("PageHinkley", {"threshold": 8.0, "mode": "up"}),
    "kswin": ("KSWIN", {"seed": 1}),
}


def digest(values: F64) -> str:
    """So that a stream that has become another is no puzzle."""
    return hashlib.sha256(values.tobytes()).hexdigest()[:16]


def stream_of(name: str, seed: int) -> F64:
    """`jump`: where it does not matter which of the older values KSWIN draws."""
    return np.repeat([0.0, 1.0], 200) if name == "jump" else EVERY[name](seed)


def told(levels: Sequence[int]) -> dict[str, list[int]]:
    """Each drift, and where warnings begin."""
    pairs = list(enumerate(pairwise([0, *levels])))
    return {
        "drift": [i for i, (_, level) in pairs if level == 2],
        "warning": [i for i, (before, level) in pairs if level == 1 != before],
    }


def levels_of(make: Callable[[], Any], values: F64) -> list[int]:
    detector, levels = make(), []
    for x in values.tolist():
        detector.update(int(x))
        warned = getattr(detector, "warning_detected", False)
        levels.append(2 if detector.drift_detected else int(warned))
    return levels


def figures() -> Iterator[dict[str, Any]]:
    from river import drift

    for name, (path, params) in DETECTORS.items():
        make = partial(attrgetter(path)(drift), **params)
        for stream, seed in [("jump", 0)] if name == "kswin" else product(STREAMS, SEEDS):
            values = stream_of(stream, seed)
            of = {"detector": name, "stream": stream, "seed": seed, "digest": digest(values)}
            yield {**of, **told(levels_of(make, values))}


if __name__ == "__main__":
    import river

    lines = ",\n".join(f"  {json.dumps(figure)}" for figure in figures())
    source = "python -m tests.drift.river_figures"
    print(f'{{"river": "{river.__version__}", "made_by": "{source}", "figures": [\n{lines}\n]}}')
