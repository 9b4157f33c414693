"""Examples that can be checked on paper, and what each detector is known for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from olstream.drift import Detector
from olstream.drift.adwin import FILLED, ROWS
from olstream.drift.kswin import least_distance, random_bits
from olstream.learners._jit import F64


def levels(name: str, values: Any, **params: Any) -> list[int]:
    return [int(level) for level in Detector(name, **params).update_many(np.array(values, np.float64))]


def zeros_then_ones(zeros: int, ones: int) -> F64:
    return np.repeat([0.0, 1.0], [zeros, ones])


def test_ddm_by_hand() -> None:
    detector = Detector("ddm", min_samples=3)

    told = detector.update_many(np.array([1.0, 0.0, 0.0, 0.0, *10 * [1.0]]))

    # stored at n = 4: p = 1/4, s = √(3/64). Then p + s = 0.619, 0.704, ... and at 11 of 14 and 12 of 15:
    assert told.tolist() == [0, 0, 0, 0, 0, *9 * [1]]
    s = math.sqrt(3 / 64)
    assert detector.statistic == pytest.approx(11 / 14 + math.sqrt(11 / 14 * 3 / 14 / 14))
    assert detector.threshold == pytest.approx(0.25 + 3 * s)
    assert detector.update(1.0) == 2
    assert detector.statistic == pytest.approx(12 / 15 + math.sqrt(12 / 15 * 3 / 15 / 15))


def test_ddm_says_nothing_of_a_stream_without_errors_and_drift_at_its_first_error() -> None:
    assert levels("ddm", zeros_then_ones(500, 1)) == [*500 * [0], 2]


def test_ddm_waits_for_so_many_errors() -> None:
    told = levels("ddm", zeros_then_ones(500, 40), min_errors=5)

    # stored at the fifth: 5 of 505, 0.0099 + 0.0044; the threshold is 0.0231, and the ninth is there: 0.0177 + 0.0058
    assert told.index(2) == 500 + 8
    assert levels("ddm", zeros_then_ones(500, 4), min_errors=5) == 504 * [0]


def test_ddm_begins_anew_after_a_drift() -> None:
    detector = Detector("ddm")
    detector.update_many(zeros_then_ones(40, 1))

    assert (detector.level, detector.window_events) == (2, 41)
    assert detector.update(0.0) == 0
    assert (detector.window_events, detector.statistic, detector.threshold) == (1, None, None)


def test_eddm_by_hand() -> None:
    detector = Detector("eddm", min_samples=1, min_errors=1, drift=0.5, warning=0.999)

    # distances 4 4 4 4, and 1: mean 3.4, deviation 1.2, and 5.8 is a new maximum
    assert not detector.update_many(np.array([*4 * [0.0, 0.0, 0.0, 1.0], 1.0, 0.0, 0.0, 0.0])).any()
    assert (detector.statistic, detector.threshold) == (0.0, 0.5)

    # one more of 4: 3.5 + 2 √1.25 = 5.736; its warning is up until the next error, which is a warning of its own
    assert detector.update_many(np.array([1.0, 0.0, 0.0, 0.0, 1.0, 0.0])).tolist() == 6 * [1]
    assert detector.statistic == pytest.approx(1 - (25 / 7 + 2 * math.sqrt(54 / 49)) / 5.8)

    # one of 20, a new maximum: the warning is off
    assert detector.update_many(np.array([*18 * [0.0], 1.0, 0.0])).tolist() == [*18 * [1], 0, 0]


def test_hddm_a_by_hand() -> None:
    # the lowest mean is that of the zeros: j / (40 + j) ≥ √(j / (2 (40 + j) 40) ln 2000) from j = 4.2 on
    assert levels("hddm_a", zeros_then_ones(40, 5)) == [*43 * [0], 1, 2]


def test_hddm_w_by_hand() -> None:
    detector = Detector("hddm_w", **{"lambda": 0.5})

    detector.update_many(np.array([0.0, 0.0, 1.0, 0.0]))

    # b of the first sample: 1/4 + 1/4 = 1/2 after two zeros; of the second: 1, then 1/2. Its mean: 1, then 1/2
    assert detector.statistic == 0.5
    assert detector.threshold == pytest.approx(math.sqrt((0.5 + 0.5) * math.log(1000) / 2))


@pytest.mark.parametrize("name", ["hddm_a", "hddm_w"])
def test_a_fall_is_a_drift_of_the_two_sided_only(name: str) -> None:
    ones_then_zeros = 1.0 - zeros_then_ones(300, 100)

    assert levels(name, ones_then_zeros) == 400 * [0]
    assert levels(name, ones_then_zeros, two_sided=True).index(2) == levels(name, 1.0 - ones_then_zeros).index(2)


def test_page_hinkley_by_hand() -> None:
    params = {"delta": 0.0, "lambda": 1.0, "alpha": 1.0, "min_samples": 1}

    # means 0 0 1/3 1/2: U is 0, 0, 2/3, 7/6
    assert levels("page_hinkley", [0, 0, 1, 1], **params) == [0, 0, 0, 2]
    assert levels("page_hinkley", [1, 1, 0, 0], **params) == [0, 0, 0, 0]
    assert levels("page_hinkley", [1, 1, 0, 0], **params, mode="down") == [0, 0, 0, 2]
    assert levels("page_hinkley", [1, 1, 0, 0], **params, mode="both") == [0, 0, 0, 2]
    assert levels("page_hinkley", [0, 0, 1, 1], **params | {"min_samples": 5}) == [0, 0, 0, 0]


def test_adwin_keeps_buckets_of_powers_of_two() -> None:
    detector = Detector("adwin", delta=1e-9)
    shapes = []
    for _ in range(18):
        detector.update(1.0)
        filled = detector.state()["counts"][FILLED : FILLED + ROWS]
        shapes.append(np.trim_zeros(filled, "b").tolist())

    # five of one value at most, the oldest last
    assert shapes[4:8] == [[5], [4, 1], [5, 1], [4, 2]]
    assert shapes[14:18] == [[5, 5], [4, 4, 1], [5, 4, 1], [4, 5, 1]]


def test_adwin_keeps_the_newest_side_and_finds_the_next_change_sooner() -> None:
    detector = Detector("adwin")

    first = detector.update_many(zeros_then_ones(1000, 64)).tolist()
    kept = detector.window_events
    assert first.index(2) == 1023  # the first look after the change
    assert kept is not None and 40 < kept < 200

    detector.update_many(np.ones(1000))
    assert detector.window_events is not None and detector.window_events > 1000
    assert 2 in detector.update_many(np.zeros(64)).tolist()


def test_adwin_looks_only_when_its_clock_says() -> None:
    told = np.array(levels("adwin", zeros_then_ones(200, 100), clock=50))

    assert set(np.flatnonzero(told == 2) % 50) == {49}


def test_kswin_draws_with_splitmix64() -> None:
    # the numbers that its authors' code gives for this seed
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]

    assert [int(random_bits(1234567.0, k)) for k in range(1, 6)] == known


def test_kswin_thresholds_by_hand() -> None:
    told = {"stat": 30, "alpha": 0.005, "threshold": "river"}

    assert least_distance(told) == 14  # p = 0.0025; of 13 it is 0.0065
    assert least_distance({**told, "alpha": 0.9999, "stat": 100}) == 11  # above a tenth
    assert least_distance({**told, "threshold": "paper"}) == 13  # √(5.298 / 30) = 0.4202 < 13 / 30
    assert least_distance({**told, "stat": 3}) == 4  # none: 2 of C(6, 3) = 20 is as rare as it gets


def test_kswin_keeps_the_newest_after_a_drift() -> None:
    detector = Detector("kswin")
    told = detector.update_many(zeros_then_ones(200, 14))

    assert told.tolist() == [*213 * [0], 2]
    assert (detector.window_events, detector.statistic, detector.threshold) == (100, 14 / 30, 14 / 30)
    assert detector.update(1.0) == 0
    assert (detector.window_events, detector.statistic) == (31, None)


def test_another_seed_draws_others() -> None:
    values = np.random.default_rng(0).random(300)
    one, same, other = (Detector("kswin", seed=seed) for seed in (1, 1, 2))
    seen: list[list[float | None]] = [[], [], []]
    for x in values.tolist():
        for detector, statistics in zip((one, same, other), seen, strict=True):
            detector.update(x)
            statistics.append(detector.statistic)

    assert seen[0] == seen[1] != seen[2]
