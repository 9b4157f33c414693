"""Quix Streams + River: a PA-I classifier over a topic, predictions to another, a commit every 200 ms.

    python quix.py BOOTSTRAP INPUT OUTPUT GUARANTEE RECORDS

Timed from the first record to the last one's prediction; the last commit is left out, in its favour.
"""

from __future__ import annotations

import json
import sys
import time
import uuid
from typing import Any

from quixstreams import Application
from river.linear_model import PAClassifier


class Learning:
    """Predicts, then learns; the clock runs from the first record."""

    def __init__(self) -> None:
        self.model = PAClassifier(C=1.0, mode=1)
        self.start_s = self.end_s = 0.0
        self.mistakes = 0

    def step(self, message: dict[str, Any]) -> dict[str, Any]:
        self.start_s = self.start_s or time.perf_counter()
        truth = message["label"] > 0
        probability = self.model.predict_proba_one(message["features"])[True]
        self.model.learn_one(message["features"], truth)
        predicted = probability >= 0.5
        self.mistakes += predicted != truth
        self.end_s = time.perf_counter()
        return {
            "id": message["id"],
            "prediction": 1 if predicted else -1,
            "probability": probability,
            "label": message["label"],
            "correct": predicted == truth,
        }


def main(bootstrap: str, source: str, target: str, guarantee: str, count: str) -> None:
    records = int(count)
    learning = Learning()
    app = Application(
        broker_address=bootstrap,
        consumer_group=f"{source}-quix-{uuid.uuid4().hex[:8]}",
        processing_guarantee=guarantee,  # type: ignore[arg-type,unused-ignore]
        commit_interval=0.2,
        auto_offset_reset="earliest",
        auto_create_topics=False,
        loglevel="ERROR",
    )
    stream = app.dataframe(app.topic(source, value_deserializer="json"))
    stream.apply(learning.step).to_topic(app.topic(target, value_serializer="json"))
    app.run(count=records)
    us = (learning.end_s - learning.start_s) / records * 1e6
    what = f"Quix Streams + River PA-I, {guarantee}"
    print(json.dumps([{"what": what, "records": records, "us": us, "wrong": learning.mistakes / records}]))


if __name__ == "__main__":
    main(*sys.argv[1:])
