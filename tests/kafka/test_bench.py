"""The benchmark runs; what it measures is for people to judge."""

from __future__ import annotations

import json

from olstream.families import STAGES
from tests.kafka.service import olstream


def test_the_benchmark_compares_pairs_and_names_the_stages(kafka: str) -> None:
    done = olstream("bench", "--bootstrap", kafka, "--records", "10000", "--repetitions", "1", "--json")

    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["records"], len(document["bare_us"]), len(document["olstream_us"])) == (10_000, 1, 1)
    assert set(document["stages_us"]) == {*STAGES, "other"}
    assert document["ratio"]["median"] > 0
