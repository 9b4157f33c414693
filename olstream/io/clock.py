"""The machine's clocks."""

from __future__ import annotations

import time


class SystemClock:
    """Monotonic time for budgets, the calendar's for people."""

    now_s = staticmethod(time.monotonic)
    epoch_s = staticmethod(time.time)
