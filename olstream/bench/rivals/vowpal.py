"""Vowpal Wabbit's own learner (adaptive, normalised SGD, hinge loss): the nearest that it has to AROW and PA.

    python vowpal.py ROWS.npz

Once with parsed examples in memory, called from Python, and once by its own driver from its binary cache.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from vowpalwabbit import Workspace

LEARNER = "--quiet --loss_function hinge --binary"


def from_python(lines: list[str], truths: list[int]) -> dict[str, Any]:
    workspace = Workspace(LEARNER)
    examples = [workspace.example(line) for line in lines]
    start_s = time.process_time()
    for example in examples:
        workspace.learn(example)  # it predicts first
    us = (time.process_time() - start_s) / len(lines) * 1e6
    predicted = [example.get_simplelabel_prediction() for example in examples]
    wrong = sum(p != truth for p, truth in zip(predicted, truths, strict=True)) / len(lines)
    for example in examples:
        workspace.finish_example(example)
    workspace.finish()
    return {"what": "Vowpal Wabbit, from Python", "records": len(lines), "us": us, "wrong": wrong}


def by_its_driver(lines: list[str]) -> dict[str, Any]:
    with TemporaryDirectory() as directory:
        data = Path(directory, "rows.vw")
        data.write_text("\n".join(lines) + "\n")
        files = f"-d {data} --cache_file {directory}/rows.cache"
        Workspace(f"{LEARNER} {files} -k").finish()
        start_s = time.process_time()
        workspace = Workspace(f"{LEARNER} {files}")
        us = (time.process_time() - start_s) / len(lines) * 1e6
        wrong = workspace.get_sum_loss() / workspace.get_weighted_examples()
        workspace.finish()
    return {"what": "Vowpal Wabbit, own driver, cached", "records": len(lines), "us": us, "wrong": wrong}


def main(path: str) -> None:
    saved = np.load(path)
    truths = saved["y"].tolist()
    lines = [
        f"{truth} | " + " ".join(f"feature_{j}:{value}" for j, value in enumerate(row))
        for truth, row in zip(truths, saved["x"].tolist(), strict=True)
    ]
    print(json.dumps([from_python(lines, truths), by_its_driver(lines)]))


if __name__ == "__main__":
    main(sys.argv[1])
