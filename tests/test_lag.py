"""How far behind: records and seconds, of what is ours."""

from __future__ import annotations

from olstream.lag import Lag

A, B = ("events", 0), ("events", 1)


class Clock:
    at_s = 1000.0

    def __call__(self) -> float:
        return self.at_s


def test_nothing_is_known_before_it_is_measured() -> None:
    lag = Lag(Clock())

    lag.assigned([A])

    assert lag.by_partition() == {}
    assert lag.by_topic() == {}


def test_an_empty_topic_has_no_lag() -> None:
    lag = Lag(Clock())

    lag.measured({A: (0, 0)})

    assert lag.by_partition() == {("events", "0"): 0}
    assert lag.by_topic() == {("events",): 0.0}


def test_a_position_or_an_end_that_is_not_known_gives_no_sample() -> None:
    lag = Lag(Clock())

    lag.measured({A: (-1001, 5), B: (5, -1001)})

    assert lag.by_partition() == {}
    assert lag.by_topic() == {}


def test_lag_is_never_negative() -> None:
    lag = Lag(Clock())

    lag.measured({A: (7, 5)})

    assert lag.by_partition() == {("events", "0"): 0}


def test_a_partition_that_leaves_takes_its_lag_along() -> None:
    lag = Lag(Clock())
    lag.measured({A: (0, 3), B: (0, 4)})

    lag.assigned([B])

    assert lag.by_partition() == {("events", "1"): 4}


def test_lag_in_seconds_is_that_of_the_slowest_partition() -> None:
    clock = Clock()
    lag = Lag(clock)

    lag.consumed(A, 990.0)
    lag.consumed(B, 940.0)
    lag.measured({A: (1, 2), B: (1, 2)})
    clock.at_s += 5.0

    assert lag.by_topic() == {("events",): 65.0}


def test_a_record_after_a_long_pause_has_not_waited_through_the_pause() -> None:
    clock = Clock()
    lag = Lag(clock)
    lag.consumed(A, 1000.0)

    clock.at_s = 5000.0
    lag.measured({A: (1, 1)})
    clock.at_s = 5001.0
    lag.measured({A: (1, 2)})

    assert lag.by_topic() == {("events",): 1.0}


def test_a_topic_that_was_not_read_yet_has_lag_in_records_only() -> None:
    lag = Lag(Clock())

    lag.measured({A: (0, 7)})

    assert lag.by_partition() == {("events", "0"): 7}
    assert lag.by_topic() == {}
