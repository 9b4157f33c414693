"""Two years of electricity prices at speed: drift and regret as people see them, on the page and in Prometheus."""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path

from tests.deploy.prometheus import Prometheus
from tests.kafka.service import ServiceFactory
from tests.kafka.topics import until

ROWS = 45_312
SOON_S = 60.0


def messages(path: Path) -> Iterator[bytes]:
    with gzip.open(path, "rt") as lines:
        for row in csv.DictReader(lines):
            label = row.pop("class")
            yield json.dumps({"features": {name: float(text) for name, text in row.items()}, "label": label}).encode()


def test_drift_marks_and_regret_are_seen_on_the_page_and_in_prometheus(service: ServiceFactory, data_dir: Path) -> None:
    classes = ["DOWN", "UP"]
    it = service(
        learners={
            "pa": {"algorithm": "pa1", "task": "binary", "classes": classes, "scale": "standard"},
            "arow": {"algorithm": "arow", "task": "binary", "classes": classes, "scale": "standard"},
        },
        routes=[{"learner": "pa", "shadows": ["arow"]}],
        monitor={"hindsight": {"window": 2000, "every": 1000}},
    ).make_topics()

    with Prometheus(it.directory, f"127.0.0.1:{it.config['http']['port']}") as prometheus:
        worker = it.start().until_ready()
        it.topics.produce(it.input, messages(data_dir / "electricity.csv.gz"))
        until(lambda: worker.counted("olstream_scored_events_total", learner="arow") == ROWS, "all are learnt", SOON_S)
        until(lambda: prometheus.has('olstream_regret{learner="arow"} and on() olstream_scored_events_total > 45000'),
              "they are scraped", SOON_S)  # fmt: skip
        page, status = worker.page("/"), json.loads(worker.page("/status.json"))
        detections = dict((of["learner"], n) for of, n in prometheus.query("olstream_drift_detections_total"))
        regret = dict((of["learner"], n) for of, n in prometheus.query("olstream_regret"))

    learners = status["learners"]
    assert 100 * learners["pa"]["error"]["total"] < 8.0 < 23.0 < 100 * learners["arow"]["error"]["total"]
    assert detections == {name: learner["drift"]["detections"] for name, learner in learners.items()}
    assert detections["arow"] > 10 > detections["pa"] >= 0
    assert regret["arow"] > 0.1 > regret["pa"]
    marked = set(re.findall(r"drift at row [\d,]+: adwin, error", page))
    assert len(marked) > 40
