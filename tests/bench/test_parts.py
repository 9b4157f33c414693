"""What the parts that need no Kafka measure, on little."""

from __future__ import annotations

import importlib

import pytest

from olstream.bench import PARTS, learner, memory, svm
from olstream.bench.part import Bench
from olstream.bench.rivals import HOW
from olstream.bench.span import Instant, Span, together
from olstream.model import Model


def small(records: int) -> Bench:
    return Bench(kafka={}, prefix="bench", records=records, repetitions=1, rivals=None, say=lambda _: None)


@pytest.mark.parametrize("name", PARTS)
def test_every_part_can_be_measured(name: str) -> None:
    assert callable(importlib.import_module(f"olstream.bench.{name}").measure)


def test_the_kernel_and_the_library_do_the_same_work() -> None:
    part = learner.measure(small(1000))

    wrong = {way["what"]: way["wrong"] for way in part.numbers["ours"]}
    assert wrong["olstream AROW, kernel"] == wrong["olstream AROW, learn_many"]
    assert wrong["olstream PA-I, kernel"] == wrong["olstream PA-I, learn_many"]
    assert all(0 < share < 0.3 for share in wrong.values())
    assert all(way["us"] > 0 for way in part.numbers["ours"])


def test_without_competitors_the_table_says_how_to_get_them() -> None:
    part = learner.measure(small(100))

    assert [row.what for row in part.rows if row.measured == HOW] == list(learner.PROGRAMS)
    assert part.numbers["rivals"] == []


def test_the_batch_solver_is_as_near_to_the_optimum_as_it_says() -> None:
    part = svm.measure(small(0))

    assert [row.measured == HOW for row in part.rows] == [False, True, False, True]
    assert all(0.05 < way["wrong"] < 0.4 and way["us"] > 0 for way in part.numbers["ours"])
    assert [way["above"] <= accuracy for way, accuracy in zip(part.numbers["ours"], svm.ACCURACIES, strict=True)]


@pytest.mark.parametrize("n", [1, 20, 45, 10_001])
def test_a_model_grows_to_just_so_many_features(n: int) -> None:
    config = memory.of_features(n)
    model = Model("model", config.learners["model"], config.monitor)

    memory.grow(model, n)

    assert model.n_features == n


@pytest.mark.skipif(not memory.STATUS.exists(), reason="only Linux tells resident memory")
def test_more_features_take_more_memory_and_a_checkpoint_more_still() -> None:
    part = memory.measure(small(0), sizes=(100, 50_000))

    found = part.numbers["50000"]
    held = found["full"] - found["empty"]
    assert 24 * 50_000 < held < 1000 * 50_000
    assert found["peak"] >= found["full"] > part.numbers["100"]["full"]


def test_processes_side_by_side_count_from_the_first_start_to_the_last_end() -> None:
    first = Span(10, Instant(0.0, 0.0), Instant(3.0, 1.5))
    second = Span(30, Instant(1.0, 0.0), Instant(4.0, 3.0))

    assert together([first, second]) == 4.0 / 40 * 1e6
    assert (first.us, first.cpu_us) == (3.0 / 10 * 1e6, 1.5 / 10 * 1e6)
