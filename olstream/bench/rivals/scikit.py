"""scikit-learn's partial_fit: PA-I, which is SGDClassifier's learning rate "pa1" now, and its default rate.

    python scikit.py ROWS.npz

A chunk is predicted before it is learnt, by the model as it was before the chunk. Slow ways on fewer rows.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import SGDClassifier

CHUNK = 500
SLOW_ROWS_MAX = 10_000
ROW_BY_ROW_MAX = 500
DENSE_MAX = 100  # columns; of more it is given sparse rows


def measure(what: str, x: Any, y: Any, chunk: int, **given: Any) -> dict[str, Any]:
    model, mistakes = SGDClassifier(**{"loss": "hinge", "penalty": None, **given}), 0
    model.partial_fit(x[:1], y[:1], classes=np.unique(y))
    start_s = time.process_time()
    for i in range(1, len(y), chunk):
        rows, truths = x[i : i + chunk], y[i : i + chunk]
        mistakes += int((model.predict(rows) != truths).sum())
        model.partial_fit(rows, truths)
    us = (time.process_time() - start_s) / len(y) * 1e6
    return {"what": f"scikit-learn {what}", "records": len(y), "us": us, "wrong": mistakes / len(y)}


def matrix(saved: Any) -> Any:
    """The rows as a caller would have them."""
    columns, values, names = saved["columns"], saved["values"], int(saved["names"])
    n, filled = values.shape
    x = csr_matrix((values.ravel(), columns.ravel(), np.arange(0, (n + 1) * filled, filled)), (n, names))
    return x.toarray() if names <= DENSE_MAX else x


def main(path: str) -> None:
    saved = np.load(path)
    x, y, classes = matrix(saved), saved["binary"], saved["multiclass"]
    pa = {"learning_rate": "pa1", "eta0": 1.0}
    told = [
        measure(f"PA-I, chunks of {CHUNK}", x, y, CHUNK, **pa),
        measure(f"SGD, chunks of {CHUNK}", x, y, CHUNK),
        measure(f"SGD, log loss, chunks of {CHUNK}", x, y, CHUNK, loss="log_loss"),
        measure(f"SGD, 10 classes, chunks of {CHUNK}", x[:SLOW_ROWS_MAX], classes[:SLOW_ROWS_MAX], CHUNK),
        measure("PA-I, row by row", x[:ROW_BY_ROW_MAX], y[:ROW_BY_ROW_MAX], 1, **pa),
    ]
    print(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1])
