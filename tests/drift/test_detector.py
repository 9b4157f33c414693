"""What every detector promises: its name and parameters, any split of a stream, its state, any number."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numba
import numpy as np
import pytest
from safetensors.numpy import load, save

from olstream.drift import NAMES, Detector, check
from olstream.drift.base import LIMIT
from olstream.drift.detector import METHODS
from olstream.errors import ConfigError
from olstream.learners._jit import F64
from tests.drift.streams import back_and_forth, real_valued

Arrays = Mapping[str, Any]

COMPILED = not numba.config.DISABLE_JIT  # type: ignore[attr-defined]
TWO_SIDED: dict[str, dict[str, Any]] = {
    "hddm_a": {"two_sided": True},
    "hddm_w": {"two_sided": True},
    "page_hinkley": {"lambda": 5.0, "mode": "both"},
    "kswin": {"alpha": 0.05, "window": 60, "stat": 20, "seed": 3},
}
every_detector = pytest.mark.parametrize("name", NAMES)


def detector(name: str) -> Detector:
    return Detector(name, **TWO_SIDED.get(name, {}))


def stream(name: str) -> F64:
    """On which every detector finds drift."""
    losses = real_valued(5, 600)
    return np.concatenate([back_and_forth(5, 1000), losses.round() if METHODS[name].binary else losses])


def seen(of: Detector) -> tuple[Any, ...]:
    return of.level, of.statistic, of.threshold, of.window_events


def same(a: Arrays, b: Arrays) -> bool:
    return a.keys() == b.keys() and all(a[key].tobytes() == b[key].tobytes() for key in a)


# Names and parameters


def test_the_detectors_have_their_usual_parameters() -> None:
    assert {name: check(name, {}) for name in NAMES} == {
        "adwin": {
            "delta": 0.002, "clock": 32, "max_buckets": 5, "min_window": 5, "min_samples": 10, "mode": "both",
        },
        "ddm": {"min_samples": 30, "warning": 2.0, "drift": 3.0, "min_errors": 0},
        "eddm": {"min_samples": 30, "min_errors": 30, "warning": 0.95, "drift": 0.9},
        "hddm_a": {"drift": 0.001, "warning": 0.005, "two_sided": False},
        "hddm_w": {"drift": 0.001, "warning": 0.005, "lambda": 0.05, "two_sided": False},
        "page_hinkley": {"delta": 0.005, "lambda": 50.0, "alpha": 0.9999, "min_samples": 30, "mode": "up"},
        "kswin": {"alpha": 0.005, "window": 100, "stat": 30, "seed": 0, "threshold": "river", "mode": "both"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "params", "reason"),
    [
        ("adwim", {}, r"drift detector 'adwim' is not known \(nearest: adwin\): take adwin, ddm"),
        ("adwin", {"detla": 0.1}, r"adwin.detla: adwin has no such parameter \(nearest: delta\); its parameters: "),
        ("adwin", {"signal": "loss"}, "adwin.signal: adwin has no such parameter"),
        ("adwin", {"delta": 1}, "adwin.delta must be a finite number > 0 and < 1, not 1"),
        ("adwin", {"delta": math.nan}, "adwin.delta must be a finite number"),
        ("adwin", {"clock": 0}, "adwin.clock must be a finite whole number >= 1, not 0"),
        ("adwin", {"clock": 2.5}, "adwin.clock must be a finite whole number"),
        ("adwin", {"max_buckets": 1}, "adwin.max_buckets must be a finite whole number >= 2 and <= 100, not 1"),
        ("adwin", {"min_window": "5"}, "adwin.min_window must be a whole number >= 1, not '5'"),
        ("adwin", {"mode": "sideways"}, "adwin.mode takes up | down | both, not 'sideways'"),
        ("ddm", {"warning": 4.0}, r"ddm.warning \(4\) must not be above drift \(3\)"),
        ("ddm", {"drift": math.inf}, "ddm.drift must be a finite number"),
        ("ddm", {"min_samples": True}, "ddm.min_samples must be a whole number >= 1, not True"),
        ("eddm", {"warning": 0.5}, r"eddm.warning \(0.5\) must not be below drift \(0.9\)"),
        ("eddm", {"drift": 1.0}, "eddm.drift must be a finite number > 0 and < 1"),
        ("hddm_a", {"drift": 0.01}, r"hddm_a.warning \(0.005\) must not be below drift \(0.01\)"),
        ("hddm_a", {"two_sided": 1}, "hddm_a.two_sided must be true or false, not 1"),
        ("hddm_w", {"warning": 1e-9}, r"hddm_w.warning \(1e-09\) must not be below drift"),
        ("hddm_w", {"lambda": 1.0}, "hddm_w.lambda must be a finite number > 0 and < 1"),
        ("page_hinkley", {"lambda": 0.0}, "page_hinkley.lambda must be a finite number > 0, not 0.0"),
        ("page_hinkley", {"alpha": 1.1}, "page_hinkley.alpha must be a finite number > 0 and <= 1"),
        ("page_hinkley", {"delta": -1}, "page_hinkley.delta must be a finite number >= 0"),
        ("kswin", {"window": 59}, r"kswin.window \(59\) must be at least twice stat \(30\)"),
        ("kswin", {"stat": 3, "alpha": 0.05}, r"kswin.stat \(3\) is too small for alpha 0.05: nothing would be"),
        ("kswin", {"seed": -1}, "kswin.seed must be a finite whole number >= 0"),
        ("kswin", {"threshold": "exact"}, r"kswin.threshold takes river \| paper, not 'exact'"),
    ],
)  # fmt: skip
def test_what_a_detector_cannot_take_is_refused_by_name(name: str, params: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        check(name, params)
    with pytest.raises(ValueError, match=reason):
        Detector(name, **params)


@every_detector
def test_parameters_are_told_in_full(name: str) -> None:
    assert Detector(name).params == check(name, {})
    assert Detector(name).name == name
    assert check(name, check(name, TWO_SIDED.get(name, {}))) == detector(name).params
    assert json.loads(json.dumps(detector(name).params)) == detector(name).params


@every_detector
def test_a_detector_names_its_paper_and_all_its_parameters_in_its_formulas(name: str) -> None:
    method = METHODS[name]

    authors = method.paper.split(". ")[0].split(", ")
    assert all(author in method.formulas for author in authors)
    names = [param.name for param in method.params]
    assert [name for name in names if {"lambda": "λ"}.get(name, name) not in method.formulas] == []


# Order and state


@every_detector
def test_the_streams_of_these_tests_have_drift_for_every_detector(name: str) -> None:
    levels = detector(name).update_many(stream(name))

    assert np.count_nonzero(levels == 2) >= 2


@every_detector
@pytest.mark.parametrize("size", [1, 64, 1000])
def test_splitting_a_stream_changes_no_bit(name: str, size: int) -> None:
    values = stream(name)
    whole, parts, single = detector(name), detector(name), detector(name)

    levels = whole.update_many(values)
    split = [parts.update_many(values[i : i + size]) for i in range(0, values.size, size)]
    alone = [single.update(x) for x in values[:300].tolist()]

    assert levels.dtype == np.uint8
    assert np.concatenate(split).tolist() == levels.tolist()
    assert alone == levels[:300].tolist()
    assert same(whole.state(), parts.state())
    assert seen(whole) == seen(parts)


def as_arrays(state: Arrays) -> Arrays:
    return state


def as_json(state: Arrays) -> Arrays:
    text = json.dumps({key: array.tolist() for key, array in state.items()}, allow_nan=False)
    return dict(json.loads(text))


def as_safetensors(state: Arrays) -> Arrays:
    return load(save(dict(state)))


@every_detector
@pytest.mark.parametrize("by", [as_arrays, as_json, as_safetensors])
def test_a_saved_detector_goes_on_to_the_same_bit(name: str, by: Callable[[Arrays], Arrays]) -> None:
    values = stream(name)
    straight = detector(name)
    levels = straight.update_many(values)
    drifts = np.flatnonzero(levels == 2)

    # also right before a drift, and right after one
    for cut in (31, int(drifts[0]), int(drifts[1]) + 1):
        first, second = detector(name), detector(name)
        first.update_many(values[:cut])
        second.update_many(values[:70])
        second.restore(by(first.state()))

        assert seen(second) == seen(first)
        assert second.update_many(values[cut:]).tolist() == levels[cut:].tolist()
        assert same(second.state(), straight.state())


@every_detector
def test_a_state_is_a_copy_of_plain_numbers_whose_size_never_changes(name: str) -> None:
    values, one = stream(name), detector(name)
    shapes = {key: array.shape for key, array in one.state().items()}
    one.update_many(values[:500])
    state = one.state()
    kept = {key: array.copy() for key, array in state.items()}
    one.update_many(values[500:])

    assert same(state, kept)
    assert {key: array.shape for key, array in one.state().items()} == shapes
    assert {array.dtype.name for array in state.values()} <= {"float64", "int64"}
    assert all(array.flags.c_contiguous and array.size for array in state.values())
    one.restore(state)
    one.update(1.0)
    assert same(state, kept)


@every_detector
def test_a_state_of_another_is_refused_and_changes_nothing(name: str) -> None:
    one = detector(name)
    one.update_many(stream(name)[:200])
    before = one.state()

    others = [Detector(other).state() for other in NAMES]
    wrong = [{}, {**before, "more": np.zeros(1)}, {**before, "numbers": np.zeros(1)}]
    for state in [*wrong, *(other for other in others if not fits(other, before))]:
        with pytest.raises(ValueError, match=f"this is no state of {name}"):
            one.restore(state)
        assert same(one.state(), before)


def fits(a: Arrays, b: Arrays) -> bool:
    return {key: array.shape for key, array in a.items()} == {key: array.shape for key, array in b.items()}


@every_detector
def test_nothing_is_told_before_the_first_value(name: str) -> None:
    one = detector(name)

    assert seen(one) == (0, None, None, None)
    assert one.update_many(np.zeros(0)).tolist() == []
    assert seen(one) == (0, None, None, None)


@every_detector
def test_a_statistic_reaches_its_threshold_where_there_is_drift_only(name: str) -> None:
    one, drifts = detector(name), 0
    for x in stream(name).tolist():
        level = one.update(x)
        if level == 2:
            drifts += 1
            assert one.statistic is not None and one.threshold is not None
            assert one.statistic >= one.threshold
        elif one.statistic is not None and one.threshold is not None:
            assert one.statistic <= one.threshold

    assert drifts >= 2


# Values


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@every_detector
def test_a_number_that_is_not_finite_is_refused_and_changes_nothing(name: str, bad: float) -> None:
    one = detector(name)
    one.update_many(stream(name)[:150])
    before = one.state()

    with pytest.raises(ValueError, match=name):
        one.update(bad)
    with pytest.raises(ValueError, match=name):
        one.update_many(np.array([0.0, 1.0, bad, 0.0]))

    assert same(one.state(), before)


@every_detector
def test_only_the_detectors_of_errors_refuse_what_is_neither_0_nor_1(name: str) -> None:
    assert detector(name).binary == (name in ("ddm", "eddm"))
    for value in (0.5, -1.0, 2.0, 1e-300):
        if detector(name).binary:
            with pytest.raises(ValueError, match=f"{name} takes errors only: 0 or 1"):
                detector(name).update(value)
        else:
            assert detector(name).update(value) == 0


@every_detector
def test_values_may_come_in_any_form_that_is_a_row_of_numbers(name: str) -> None:
    values = stream(name)[:300].round()
    levels, rows = detector(name).update_many(values).tolist(), np.stack([values, values])

    given: Any
    for given in (values.tolist(), values.astype(np.uint8), values.astype(bool), rows.T[:, 0], values.astype("f4")):
        assert detector(name).update_many(given).tolist() == levels
    with pytest.raises(ValueError, match="a row of numbers"):
        detector(name).update_many(rows)


def hostile(n: int, seed: int) -> F64:
    values = [0.0, -0.0, 1.0, 5e-324, -1e-310, 1e-9, 1e100, -1e139, 1e140, -1e200, 1.7976931348623157e308]
    values.append(-values[-1])
    return np.asarray(np.random.default_rng(seed).choice(values, n))


@pytest.mark.parametrize("name", [name for name in NAMES if not METHODS[name].binary])
@pytest.mark.parametrize("seed", range(3))
def test_no_value_puts_anything_but_finite_numbers_into_the_state(name: str, seed: int) -> None:
    one = detector(name)
    for value in hostile(500, seed).tolist():
        one.update(value)

        assert all(np.isfinite(array).all() for array in one.state().values())
        assert one.statistic is None or (math.isfinite(one.statistic) and math.isfinite(one.threshold or 0.0))
    clipped = detector(name)
    clipped.update_many(np.clip(hostile(500, seed), -LIMIT, LIMIT))
    assert same(clipped.state(), one.state())


@pytest.mark.parametrize("largest", [1e308, 1e140, 1e20])
def test_adwin_forgets_a_giant_once_it_is_out_of_the_window(largest: float) -> None:
    one = Detector("adwin", clock=1)
    one.update_many(np.repeat([largest, 0.0], [200, 400]))
    before = one.window_events or 0
    one.update_many(np.repeat([0.25, 0.75], [3000, 1000]))

    assert before < 450
    assert one.window_events is not None and 900 < one.window_events < 1200
    assert one.statistic is not None and one.statistic <= 1.0


def test_adwin_keeps_a_table_of_one_size_and_a_window_of_all_values() -> None:
    n = 1_000_000 if COMPILED else 20_000
    one = Detector("adwin", delta=1e-9)
    empty = one.state()
    for seed in range(10):
        one.update_many(np.random.default_rng(seed).random(n // 10))

    rows = np.count_nonzero(one.state()["window"].any(axis=1)) / 2
    assert one.window_events == n
    assert sum(array.nbytes for array in one.state().values()) == sum(array.nbytes for array in empty.values()) < 6000
    assert rows <= math.log2(n / 5) + 2


def test_the_detectors_load_no_kafka_client() -> None:
    code = "import sys, olstream.drift; sys.exit('confluent_kafka' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
