"""Writes the dashboards: python deploy/grafana/build.py [DIRECTORY]

The JSON in dashboards/ is what Grafana reads; quality.py and runtime.py are where it is changed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import quality
import runtime

BOARDS = {"quality": quality, "runtime": runtime}


def main() -> None:
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("dashboards")
    for name, board in BOARDS.items():
        (directory / f"{name}.json").write_text(json.dumps(board.built(), indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
