"""The kinds of number: what is there, what is absent, and what a batch adds."""

from __future__ import annotations

import math
import sys
from threading import Thread

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Histogram
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import CollectorRegistry

from olstream.series import Counters, Gauges, Histograms, Readings

BOUNDS = (0.0, 0.5, 2.0)


def lines(registry: CollectorRegistry) -> list[str]:
    return [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]


def test_counters_are_there_at_zero() -> None:
    registry = CollectorRegistry()

    Counters(registry, "n_total", "N.", {"a": ("x", "y"), "b": ("1",)})

    assert lines(registry) == ['n_total{a="x",b="1"} 0.0', 'n_total{a="y",b="1"} 0.0']


def test_a_counter_takes_no_label_that_was_not_declared() -> None:
    counters = Counters(CollectorRegistry(), "n_total", "N.", {"a": ("x",)})

    with pytest.raises(KeyError):
        counters.at("hostile")


def test_a_sum_past_the_doubles_stays_at_the_largest() -> None:
    registry = CollectorRegistry()
    number = Counters(registry, "loss_total", "L.").at()

    for amount in (1e308, 1e308, math.nan, math.inf):
        number.add(amount)

    assert number.value == sys.float_info.max


def test_a_gauge_is_absent_until_it_is_known_and_again_when_it_is_not() -> None:
    registry = CollectorRegistry()
    gauge = Gauges(registry, "g", "G.")

    before = lines(registry)
    gauge.set(3)
    known = lines(registry)
    gauge.set(math.nan)

    assert (before, known, lines(registry)) == ([], ["g 3.0"], [])


def test_a_reading_shows_only_what_is_a_number() -> None:
    registry = CollectorRegistry()

    Readings(registry, "r", "R.", lambda: {("a",): 1.5, ("b",): None, ("c",): math.inf, ("d",): math.nan}, ("which",))

    assert lines(registry) == ['r{which="a"} 1.5']


@given(st.lists(st.lists(st.integers(-16, 16).map(lambda quarters: quarters / 4))))
def test_a_batch_at_a_time_gives_the_histogram_of_one_at_a_time(batches: list[list[float]]) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    histogram = Histograms(ours, "h", "H.", BOUNDS).at()
    one_at_a_time = Histogram("h", "H.", buckets=BOUNDS, registry=theirs)

    for batch in batches:
        histogram.observe_many(np.array(batch))
        for value in batch:
            one_at_a_time.observe(value)

    assert lines(ours) == [line for line in lines(theirs) if "_created" not in line]


def test_a_margin_of_one_is_in_the_bucket_of_one_in_spite_of_rounding() -> None:
    histogram = Histograms(CollectorRegistry(), "h", "H.", (0.0, 1.0, 2.0)).at()

    histogram.observe_many(np.array([1.0, np.nextafter(1.0, 2.0), 1.0000001]))

    assert dict(histogram.read()[0]) == {"0.0": 0, "1.0": 2, "2.0": 3, "+Inf": 3}


def test_values_that_are_no_numbers_are_in_no_bucket() -> None:
    histogram = Histograms(CollectorRegistry(), "h", "H.", (1.0,)).at()

    histogram.observe_many(np.array([math.nan, math.inf, -math.inf, 0.5, 1e308, 1e308]))

    assert histogram.read() == ([("1.0", 1), ("+Inf", 3)], sys.float_info.max)


def test_threads_lose_no_count() -> None:
    number = Counters(CollectorRegistry(), "n_total", "N.").at()

    def count() -> None:
        for _ in range(2000):
            number.add(1)

    threads = [Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert number.value == 8000
