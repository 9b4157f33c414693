"""What the parts that need no Kafka measure, on little."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from olstream.bench import PARTS, drift, forms, learner, memory, svm
from olstream.bench.part import Bench, Part
from olstream.bench.rivals import HOW
from olstream.bench.span import Instant, Span, together
from olstream.drift import NAMES
from olstream.learners.base import TASKS, algorithms
from olstream.model import Model


def small(records: int) -> Bench:
    return Bench(kafka={}, prefix="bench", records=records, repetitions=1, rivals=None, say=lambda _: None)


@pytest.mark.parametrize("name", PARTS)
def test_every_part_can_be_measured(name: str) -> None:
    assert callable(importlib.import_module(f"olstream.bench.{name}").measure)


@pytest.fixture(scope="module")
def learnt() -> Part:
    return learner.measure(small(1000))


def test_the_kernel_and_the_library_do_the_same_work(learnt: Part) -> None:
    ways = learnt.numbers["sizes"]["20 numbers"]["ours"]
    wrong = {way["what"]: way["wrong"] for way in ways}

    assert wrong["olstream arow, kernel"] == wrong["olstream arow, learn_many"]
    assert wrong["olstream pa1, kernel"] == wrong["olstream pa1, learn_many"]
    assert 0.05 < wrong["olstream arow, kernel"] < 0.2 < wrong["olstream arow, 10 classes, kernel"] < 0.6
    assert all(way["us"] > 0 for way in ways)


@pytest.mark.parametrize("title", learner.SIZES)
def test_every_algorithm_is_measured_or_left_out_with_a_reason(learnt: Part, title: str) -> None:
    told = learnt.numbers["sizes"][title]

    measured = {way["what"] for way in told["ours"]} | set(told["left_out"])
    reasons = {row.measured for row in learnt.rows if row.what in told["left_out"]} - {HOW}
    assert {f"olstream {name}" for name in algorithms()} <= {what.split(",")[0] for what in measured}
    assert {f"{form.shown}, kernel" for form in forms.forms()} <= measured
    assert all(reason.startswith("left out: ") or reason.endswith("/s") for reason in reasons)


def test_all_covariances_of_many_features_are_left_out(learnt: Part) -> None:
    few, many = (learnt.numbers["sizes"][title]["left_out"] for title in learner.SIZES)

    assert few == []
    assert "olstream arow, full covariance, kernel" in many
    assert "left out: it keeps 2,000 features apart" in {row.measured for row in learnt.rows}


@pytest.mark.parametrize("names", learner.SIZES.values())
def test_a_row_never_names_a_feature_twice(names: int) -> None:
    rows = forms.problem(300, names)

    assert all(len(set(row)) == 20 for row in rows.columns.tolist())
    assert 0 <= rows.columns.min() <= rows.columns.max() < names
    assert rows.first(7).columns.shape == (7, 20) == rows.first(7).values.shape
    assert {task: len(target) for task, target in rows.first(7).targets.items()} == dict.fromkeys(TASKS, 7)


def test_without_competitors_the_table_says_how_to_get_them(learnt: Part) -> None:
    assert [row.what for row in learnt.rows if row.measured == HOW] == 2 * list(learner.PROGRAMS)
    assert [of_size["rivals"] for of_size in learnt.numbers["sizes"].values()] == [[], []]


def test_the_batch_solver_is_as_near_to_the_optimum_as_it_says() -> None:
    part = svm.measure(small(0))

    assert [row.measured == HOW for row in part.rows] == [False, True, False, True]
    assert all(0.05 < way["wrong"] < 0.4 and way["us"] > 0 for way in part.numbers["ours"])
    assert [way["above"] <= accuracy for way, accuracy in zip(part.numbers["ours"], svm.ACCURACIES, strict=True)]


def test_every_detector_is_measured_on_every_kind_of_stream() -> None:
    part = drift.measure(small(0))

    ours = {of["what"]: of for of in part.numbers["ours"]}
    assert tuple(ours) == NAMES
    assert len(part.rows) == 3 * (1 + len(NAMES))
    assert all(of[kind]["found"] >= 10 and of[kind]["delay"] >= 0 for of in ours.values() for kind in drift.CHANGES)
    assert all(of["us"] > 0 for of in ours.values())
    # what the detectors are known for
    assert ours["hddm_w"]["abrupt"]["delay"] < ours["adwin"]["abrupt"]["delay"] < ours["ddm"]["abrupt"]["delay"]
    assert ours["adwin"]["false_alarms"] < 0.1 < ours["eddm"]["false_alarms"]


@pytest.mark.parametrize(("over", "before", "after"), [(1, 0.2, 0.4), (2000, 0.2, 0.4), (None, 0.2, 0.2)])
def test_errors_become_twice_as_many_at_their_row(over: int | None, before: float, after: float) -> None:
    mean = np.mean([drift.stream(over, seed) for seed in range(drift.STREAMS)], axis=0)

    assert mean[: drift.CHANGE].mean() == pytest.approx(before, abs=0.01)
    assert mean[drift.CHANGE + (over or 0) :].mean() == pytest.approx(after, abs=0.01)
    if over == 2000:
        assert mean[drift.CHANGE : drift.CHANGE + over].mean() == pytest.approx(0.3, abs=0.01)


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
    few = part.numbers["100"]
    assert found["peak"] > found["full"]
    assert held > few["full"] - few["empty"]  # not so without the empty process: the first one may have to compile


def test_processes_side_by_side_count_from_the_first_start_to_the_last_end() -> None:
    first = Span(10, Instant(0.0, 0.0), Instant(3.0, 1.5))
    second = Span(30, Instant(1.0, 0.0), Instant(4.0, 3.0))

    assert together([first, second]) == 4.0 / 40 * 1e6
    assert (first.us, first.cpu_us) == (3.0 / 10 * 1e6, 1.5 / 10 * 1e6)
