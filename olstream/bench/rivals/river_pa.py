"""River's PA-I classifier, row by row.

python river_pa.py ROWS.npz
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
from river.linear_model import PAClassifier


def main(path: str) -> None:
    saved = np.load(path)
    rows = [{f"feature_{j}": value for j, value in enumerate(row)} for row in saved["x"].tolist()]
    truths = (saved["y"] > 0).tolist()
    model, mistakes = PAClassifier(C=1.0, mode=1), 0
    start_s = time.process_time()
    for row, truth in zip(rows, truths, strict=True):
        mistakes += model.predict_one(row) != truth
        model.learn_one(row, truth)
    us = (time.process_time() - start_s) / len(rows) * 1e6
    print(json.dumps([{"what": "River PA-I", "records": len(rows), "us": us, "wrong": mistakes / len(rows)}]))


if __name__ == "__main__":
    main(sys.argv[1])
