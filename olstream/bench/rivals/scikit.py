"""scikit-learn's partial_fit: PA-I, which is SGDClassifier's learning rate "pa1" now, and its default rate.

    python scikit.py ROWS.npz

A chunk is predicted before it is learnt, by the model as it was before the chunk; row by row on fewer rows.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
from sklearn.linear_model import SGDClassifier

CHUNK = 500
ROW_BY_ROW_MAX = 2_000


def measure(what: str, x: Any, y: Any, chunk: int, **rate: Any) -> dict[str, Any]:
    model, mistakes = SGDClassifier(loss="hinge", penalty=None, **rate), 0
    model.partial_fit(x[:1], y[:1], classes=[-1, 1])
    start_s = time.process_time()
    for i in range(1, len(y), chunk):
        rows, truths = x[i : i + chunk], y[i : i + chunk]
        mistakes += int((model.predict(rows) != truths).sum())
        model.partial_fit(rows, truths)
    us = (time.process_time() - start_s) / len(y) * 1e6
    return {"what": f"scikit-learn {what}", "records": len(y), "us": us, "wrong": mistakes / len(y)}


def main(path: str) -> None:
    saved = np.load(path)
    x, y = saved["x"], saved["y"]
    pa = {"learning_rate": "pa1", "eta0": 1.0}
    told = [
        measure(f"PA-I, chunks of {CHUNK}", x, y, CHUNK, **pa),
        measure(f"SGD, chunks of {CHUNK}", x, y, CHUNK),
        measure("PA-I, row by row", x[:ROW_BY_ROW_MAX], y[:ROW_BY_ROW_MAX], 1, **pa),
    ]
    print(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1])
