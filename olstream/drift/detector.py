"""A detector by name: values in, levels out, its state for a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from olstream import intact
from olstream.drift.adwin import METHOD as ADWIN
from olstream.drift.base import DRIFT, EVENTS, KNOWN, LEVEL, STATISTIC, THRESHOLD, Memory, Method, watching
from olstream.drift.ddm import METHOD as DDM
from olstream.drift.eddm import METHOD as EDDM
from olstream.drift.hddm_a import METHOD as HDDM_A
from olstream.drift.hddm_w import METHOD as HDDM_W
from olstream.drift.kswin import METHOD as KSWIN
from olstream.drift.page_hinkley import METHOD as PAGE_HINKLEY
from olstream.errors import ConfigError
from olstream.learners._jit import F64, U8
from olstream.learners._params import Value
from olstream.learners.base import nearest

_LISTED: Final = (ADWIN, DDM, EDDM, HDDM_A, HDDM_W, PAGE_HINKLEY, KSWIN)
METHODS: Final[dict[str, Method]] = {method.name: method for method in _LISTED}
NAMES: Final = tuple(METHODS)


def check(name: str, params: Mapping[str, object]) -> dict[str, Value]:
    """The detector's parameters in full, defaults put in; ConfigError names what is wrong."""
    method = METHODS.get(name) if isinstance(name, str) else None
    if method is None:
        raise ConfigError(f"drift detector {name!r} is not known{nearest(name, METHODS)}: take {', '.join(NAMES)}")
    known = {param.name: param for param in method.params}
    for given in params:
        if given not in known:
            takes = f"its parameters: {', '.join(known)}"
            raise ConfigError(f"{name}.{given}: {name} has no such parameter{nearest(given, known)}; {takes}")
    try:
        checked = {key: param.check(params.get(key, param.default), None) for key, param in known.items()}
    except ConfigError as error:
        raise ConfigError(f"{name}.{str(error).removeprefix('params.')}") from None
    method.together(checked)
    return checked


class Detector:
    """Watches the mean of a stream: `update` gives 0 (stable), 1 (warning) or 2 (drift).

    Higher is worse: errors as 0 and 1, or losses. After a drift the next update begins anew;
    adwin and kswin keep the newest part of their window. `ConfigError` (a ValueError) for what `check` refuses.
    """

    def __init__(self, name: str, /, **params: object) -> None:
        self.name = name
        self.params = check(name, params)
        method = METHODS[name]
        plan = method.build(self.params)
        self._possible = plan.possible
        self.binary = method.binary
        self._kept = Memory(plan)
        self._watch = watching(plan)

    def update(self, value: float) -> int:
        """The level after one more value. ValueError for one that it cannot take; the state is as before."""
        given = np.asarray(value)
        if given.ndim or given.dtype.kind not in "buif":
            raise ValueError(f"{self.name} takes numbers, not {value!r:.50}")
        return int(self.update_many(np.array([given], np.float64))[0])

    def update_many(self, values: F64) -> U8:
        """The level after each of (n,) values: what `update` would have said one by one."""
        values = np.ascontiguousarray(values, np.float64)
        if values.ndim != 1:
            raise ValueError(f"values must be a row of numbers, not an array of {values.ndim} dimensions")
        if self.binary:
            if not np.all((values == 0.0) | (values == 1.0)):
                raise ValueError(f"{self.name} takes errors only: 0 or 1")
        elif not np.all(np.isfinite(values)):
            raise ValueError(f"{self.name} takes finite numbers only")
        return self._watch(self._kept, values)

    def __repr__(self) -> str:
        return f"Detector({', '.join([repr(self.name), *(f'{key}={value!r}' for key, value in self.params.items())])})"

    @property
    def level(self) -> int:
        """Of the last update."""
        return int(self._kept.n[LEVEL])

    @property
    def statistic(self) -> float | None:
        """What the last update compared with `threshold`; None where there was nothing to compare yet."""
        return float(self._kept.f[STATISTIC]) if self._kept.n[KNOWN] else None

    @property
    def threshold(self) -> float | None:
        return float(self._kept.f[THRESHOLD]) if self._kept.n[KNOWN] else None

    @property
    def window_events(self) -> int | None:
        """How many values the last decision rests on: those in the window, or since it began anew."""
        return int(self._kept.n[EVENTS]) or None

    def state(self) -> dict[str, NDArray[Any]]:
        """Copies of all that it keeps; their size never changes."""
        held = self._kept
        window = {"window": held.w.copy()} if held.w.size else {}
        return {"numbers": held.f.copy(), "counts": held.n.copy(), **window}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from a saved state to the same bit; ValueError where it is of another detector or window."""
        own = self.state()
        shapes = {key: np.shape(array) for key, array in arrays.items()}
        if shapes != {key: array.shape for key, array in own.items()}:
            raise ValueError(f"this is no state of {self.name} with {self.params}")
        given = {key: _array(arrays[key], array.dtype) for key, array in own.items()}
        for key, array in own.items():
            intact.array(given, key, array.dtype, array.shape)
        counts = given["counts"]
        if np.any(counts < 0) or counts[LEVEL] > DRIFT or not self._possible(counts, self._kept.w):
            raise ValueError(f"no {self.name} can have counted so")
        for key, held in (("numbers", self._kept.f), ("counts", self._kept.n), ("window", self._kept.w)):
            if key in own:
                held[...] = given[key]


def _array(saved: Any, kind: np.dtype[Any]) -> NDArray[Any]:
    """An array as it is, or lists that went through JSON."""
    return saved if isinstance(saved, np.ndarray) else np.array(saved, kind)
