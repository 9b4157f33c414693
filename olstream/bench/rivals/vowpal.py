"""Vowpal Wabbit's own learner (adaptive, normalised SGD, hinge loss), the nearest that it has to AROW, and its SGD.

    python vowpal.py ROWS.npz

With parsed examples in memory, called from Python, and by its own driver from its binary cache. Features are named by
numbers, each of which has a weight of its own.
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

BINARY = "--quiet --loss_function hinge --binary"
PLAIN = f"{BINARY} --sgd"
MULTICLASS = "--quiet --loss_function hinge --oaa 10"


def from_python(lines: list[str], truths: list[int]) -> dict[str, Any]:
    workspace = Workspace(BINARY)
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


def by_its_driver(what: str, learner: str, lines: list[str]) -> dict[str, Any]:
    """Without its start, which is as long as some ten thousand rows."""
    (start_s, _), (seconds, wrong) = driven(learner, lines[:1]), driven(learner, lines)
    us = (seconds - start_s) / (len(lines) - 1) * 1e6
    return {"what": f"Vowpal Wabbit{what}, own driver, cached", "records": len(lines), "us": us, "wrong": wrong}


def driven(learner: str, lines: list[str]) -> tuple[float, float]:
    """Seconds of CPU, and the share of wrong predictions."""
    with TemporaryDirectory() as directory:
        data = Path(directory, "rows.vw")
        data.write_text("\n".join(lines) + "\n")
        files = f"-d {data} --cache_file {directory}/rows.cache"
        Workspace(f"{learner} {files} -k").finish()
        start_s = time.process_time()
        workspace = Workspace(f"{learner} {files}")
        seconds = time.process_time() - start_s
        wrong = workspace.get_sum_loss() / workspace.get_weighted_examples()
        workspace.finish()
    return seconds, wrong


def main(path: str) -> None:
    saved = np.load(path)
    truths, classes = saved["binary"].tolist(), (saved["multiclass"] + 1).tolist()
    rows = [
        " | " + " ".join(f"{j}:{value}" for j, value in zip(columns, values, strict=True))
        for columns, values in zip(saved["columns"].tolist(), saved["values"].tolist(), strict=True)
    ]
    lines = [f"{truth}{row}" for truth, row in zip(truths, rows, strict=True)]
    told = [
        from_python(lines, truths),
        by_its_driver("", BINARY, lines),
        by_its_driver(" --sgd", PLAIN, lines),
        by_its_driver(" --oaa 10", MULTICLASS, [f"{label}{row}" for label, row in zip(classes, rows, strict=True)]),
    ]
    print(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1])
