"""liblinear's dual coordinate descent, as scikit-learn runs it, to a given share above the optimum.

    python liblinear.py ROWS.npz ACCURACY

Its tolerance is another measure, so it is tightened until the objective is as near: the last fit alone counts.
"""

from __future__ import annotations

import json
import sys
import time
import warnings

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.svm import LinearSVC

TOLERANCES = [10.0 ** (-k / 2) for k in range(2, 21)]


def main(path: str, accuracy: float) -> None:
    saved = np.load(path)
    x, y, cost = csr_matrix(saved["x"]), saved["y"], float(saved["C"])
    for tolerance in TOLERANCES:
        model = LinearSVC(
            loss="hinge", dual=True, C=cost, fit_intercept=False, tol=tolerance, max_iter=1_000_000, random_state=0
        )
        start_s = time.process_time()
        model.fit(x, y)
        us = (time.process_time() - start_s) / len(y) * 1e6
        w = model.coef_[0]
        objective = 0.5 * w @ w + cost * np.maximum(0.0, 1.0 - y * (x @ w)).sum()
        if objective <= (1.0 + accuracy) * float(saved["optimum"]):
            wrong = float(np.mean(model.predict(x) != y))
            told = {"what": f"liblinear, to {accuracy:g}", "records": len(y), "us": us, "wrong": wrong}
            print(json.dumps([told]))
            return
    sys.exit(f"no tolerance is enough for {accuracy:g}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1], float(sys.argv[2]))
