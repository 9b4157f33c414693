"""The benchmark runs; what it measures is for people to judge."""

from __future__ import annotations

import json

import pytest

from olstream.bench import checkpoint, latency, recovery, workers
from olstream.bench.part import Bench
from olstream.bench.side import KINDS
from olstream.families import STAGES
from tests.kafka.service import olstream


@pytest.fixture
def bench(kafka: str, name: str) -> Bench:
    return Bench(
        kafka={"bootstrap.servers": kafka},
        prefix=name,
        records=10_000,
        repetitions=1,
        rivals=None,
        say=lambda _: None,
    )


def test_the_loop_is_compared_in_pairs_and_by_stages(kafka: str) -> None:
    options = ["--only", "loop", "--records", "10000", "--repetitions", "1", "--json"]
    done = olstream("bench", "--bootstrap", kafka, *options)

    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)["loop"]
    assert document["records"] == 10_000
    for way in ("bare", "exactly_once", "at_least_once"):
        assert [len(document[way][key]) for key in ("us", "cpu_us")] == [1, 1]
        assert document[way]["ratio"]["median"] > 0
    assert set(document["stages_us"]) == {*STAGES, "other"}
    assert 0 < document["wrong"] < 0.3


def test_latency_is_that_of_the_service_less_the_bare_loops(bench: Bench) -> None:
    part = latency.measure(bench, seconds=1.0)

    ((bare_p50, bare_p99),) = part.numbers["bare_ms"]
    ((p50, p99),) = part.numbers["olstream_ms"]
    assert 0 < bare_p50 <= bare_p99
    assert 0 < p50 <= p99
    assert part.numbers["added_ms"]["p50"] == pytest.approx(p50 - bare_p50, abs=0.2)


def test_recovery_learns_again_what_was_learnt_live(bench: Bench) -> None:
    part = recovery.measure(bench)

    (live_us,), (again_us,) = part.numbers["live_us"], part.numbers["again_us"]
    assert part.numbers["ratio"] == pytest.approx(live_us / again_us, rel=0.01)
    assert part.numbers["again_records"] > 9_000


def test_a_checkpoint_stops_the_loop_for_its_copy(bench: Bench) -> None:
    part = checkpoint.measure(bench, features=2_000, interval="20ms")

    numbers = part.numbers
    assert all(copy > 0 for copy in numbers["copies_ms"])
    assert min(*numbers["idle_us"], *numbers["writing_us"]) > 0
    assert numbers["longest_turn_ms"] > 0


def test_two_workers_share_the_work(bench: Bench) -> None:
    part = workers.measure(bench)

    for kind in KINDS:
        assert {count: len(us) for count, us in part.numbers[kind]["us"].items()} == {"1": 1, "2": 1}
        assert part.numbers[kind]["ratio"] > 0
