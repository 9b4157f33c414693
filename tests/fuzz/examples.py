"""How long the fuzzers run: a few seconds in the tests, N times as many examples with OLSTREAM_FUZZ=N (`make fuzz`)."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

from hypothesis import HealthCheck, settings

FACTOR: Final = int(os.environ.get("OLSTREAM_FUZZ", "1"))


def examples(count: int) -> Callable[[Any], Any]:
    """So many examples in the tests, the same ones each time; where more are asked for, other ones each time."""
    return settings(
        max_examples=count * FACTOR,
        derandomize=FACTOR == 1,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
    )
