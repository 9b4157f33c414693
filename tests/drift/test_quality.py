"""How soon a detector tells of a change, and how often of none; and that no bit depends on the compiler."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from olstream.drift import NAMES, Detector
from tests.drift.streams import abrupt, back_and_forth, real_valued, stationary
from tests.drift.test_detector import COMPILED, detector

ROOT = Path(__file__).parents[2]
# By name: rows until a change is seen (the median), and false alarms in 24,000 rows; at the most
KNOWN = {
    "adwin": (60, 0),
    "ddm": (45, 6),
    "eddm": (30, 80),
    "hddm_a": (20, 0),
    "hddm_w": (20, 9),
    "page_hinkley": (100, 0),
    "kswin": (30, 0),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_change_is_seen_in_time_and_few_that_are_none(name: str) -> None:
    late, most = KNOWN[name]
    delays, alarms = [], 0
    for seed in range(8):
        changed = np.flatnonzero(Detector(name).update_many(abrupt(seed, 2000, 0.1, 0.6)) == 2)
        delays += [int(row) - 1000 for row in changed if row >= 1000][:1]
        still = np.flatnonzero(Detector(name).update_many(stationary(seed, 2000)) == 2)
        alarms += int(np.count_nonzero(changed < 1000)) + still.size

    assert len(delays) == 8
    assert median(delays) <= late
    assert alarms <= most


def bits() -> dict[str, str]:
    """A digest of all that each detector told and keeps after a stream."""
    found = {}
    for name in NAMES:
        one = detector(name)
        levels = one.update_many(back_and_forth(1, 600))
        if not one.binary:
            levels = np.concatenate([levels, one.update_many(real_valued(1, 300))])
        parts = [levels, *(array for _, array in sorted(one.state().items()))]
        found[name] = sha256(b"".join(part.tobytes() for part in parts)).hexdigest()
    return found


@pytest.mark.skipif(not COMPILED, reason="compared by the compiled run")
def test_the_compiler_changes_no_bit() -> None:
    code = "import json; from tests.drift.test_quality import bits; print(json.dumps(bits()))"
    without = {**os.environ, "NUMBA_DISABLE_JIT": "1"}

    done = subprocess.run(
        [sys.executable, "-c", code], env=without, cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert json.loads(done.stdout) == bits()
