"""What a detector is made of: a paper, parameters, and one step over numbers that it keeps.

A detector is one file of this folder with a `METHOD`; `detector` lists them. All share the pass over
a batch and the form of what is kept:

    p  parameters, as the step reads them
    f  numbers: statistic, threshold, then the detector's own from NUMBERS on
    n  whole numbers: level, events, known, then the detector's own from COUNTS on
    w  a table, of a detector that keeps a window; else (0, 0)

All are zero at first, never nan or infinite, and no update makes any of them larger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np

from olstream.learners._jit import F64, I64, U8, Kernel, bound, kernel, lent, no_part
from olstream.learners._params import Param, Value

Params: TypeAlias = Mapping[str, Any]

STABLE, WARNING, DRIFT = 0, 1, 2
STATISTIC, THRESHOLD, NUMBERS = 0, 1, 2
# events: those that the decision rests on; known: whether there are a statistic and a threshold
LEVEL, EVENTS, KNOWN, COUNTS = 0, 1, 2, 3
MODES: Final = {"up": 1.0, "down": -1.0, "both": 0.0}  # which changes are told: the sign of those that count
LIMIT: Final = 1e140  # a larger value counts as this: squares of values, summed over any stream, stay finite


def _any(params: Params) -> None:
    """Any parameters that are good by themselves go together."""


@kernel
def anew(p: F64, f: F64, n: I64, w: F64) -> None:
    """What most detectors do after a drift: they begin again."""
    f[:] = 0.0
    n[:] = 0


def _always(n: I64, w: F64) -> bool:
    """Counts that lead nowhere."""
    return True


@dataclass(frozen=True)
class Plan:
    """A detector made ready: `step(p, f, n, w, x)` gives the level; the sizes are of its own part of each array.

    `possible` says of saved counts, none of them below 0, whether the step stays inside of its window with them.
    """

    step: Kernel
    p: F64
    numbers: int = 0
    counts: int = 0
    table: tuple[int, int] = (0, 0)
    reset: Kernel = anew  # what comes before the update that follows a drift
    possible: Callable[[I64, F64], bool] = _always


@dataclass(frozen=True)
class Method:
    """One name under `drift:` in the configuration. `build` takes checked parameters; `together` refuses some."""

    name: str
    title: str
    paper: str
    formulas: str
    params: tuple[Param, ...]
    build: Callable[[Params], Plan]
    together: Callable[[Params], None] = field(default=_any)  # ConfigError where they do not go together
    binary: bool = False  # takes errors only: 0 or 1

    def defaults(self) -> dict[str, Value]:
        return {param.name: param.default for param in self.params}


class Memory:
    """What a detector keeps."""

    def __init__(self, plan: Plan) -> None:
        self.f = np.zeros(NUMBERS + plan.numbers)
        self.n = np.zeros(COUNTS + plan.counts, np.int64)
        self.w = np.zeros(plan.table)


def watching(plan: Plan) -> Callable[[Memory, F64], U8]:
    """One pass over values, in order: the level after each."""
    run = bound(_run, step=plan.step, reset=plan.reset)

    def watch(kept: Memory, values: F64) -> U8:
        levels = np.empty(values.size, np.uint8)
        run(plan.p, kept.f, kept.n, kept.w, values, levels)
        return levels

    return watch


@kernel
def tell(f: F64, n: I64, statistic: float, threshold: float) -> None:
    f[STATISTIC] = statistic
    f[THRESHOLD] = threshold
    n[KNOWN] = 1


@kernel
def tell_nearer(f: F64, n: I64, statistic: float, threshold: float) -> None:
    """Of two sides, what the one says that is nearer to a drift."""
    if n[KNOWN] == 0 or statistic - threshold > f[STATISTIC] - f[THRESHOLD]:
        tell(f, n, statistic, threshold)


# What stands for a detector's own parts in the template below
step: Kernel = no_part
reset: Kernel = anew


def _run(p: F64, f: F64, n: I64, w: F64, values: F64, levels: U8) -> None:
    p, f, n, w, values, levels = lent((p, f, n, w, values, levels))
    for i in range(values.size):
        if n[LEVEL] == DRIFT:
            reset(p, f, n, w)
            n[LEVEL] = STABLE
        n[LEVEL] = step(p, f, n, w, min(max(values[i], -LIMIT), LIMIT))
        levels[i] = n[LEVEL]
