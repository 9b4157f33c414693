"""`olstream demo`, all of it, on the embedded broker and the synthetic stream."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from olstream.demo.flights import ARCHIVE


def test_the_demo_ends_by_itself_with_a_model_to_look_at(tmp_path: Path) -> None:
    cache = tmp_path / "cache" / "olstream" / "demo"
    cache.mkdir(parents=True)
    (cache / ARCHIVE).write_bytes(b"no flights here")  # so that none are fetched

    command = [sys.executable, "-m", "olstream", "demo", "--rows", "4000", "--seconds", "1", "--state", str(tmp_path)]
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache"), "COLUMNS": "120"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "keeps no guarantees" in " ".join(done.stdout.split())
    assert "A synthetic stream takes their place" in done.stdout
    assert re.search(r"arow \(predicts\).* 4,000 ", done.stdout)
    assert re.search(r"pa1 \(shadow\).* 4,000 ", done.stdout)
    assert "speaks for 'yes'" in done.stdout
    assert list(tmp_path.glob("*/state/*/0/*/manifest.json"))
