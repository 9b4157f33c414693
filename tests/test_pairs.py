"""Which partitions of several topics belong together, and how long half a pair is waited with."""

from __future__ import annotations

import logging

import pytest

from olstream.config import Config, parse
from olstream.errors import ConfigError
from olstream.pairs import Pairs, missing, refuse_unequal, unequal


class Clock:
    """A number that somebody moves."""

    at_s = 1000.0

    def __call__(self) -> float:
        return self.at_s


def config(more: str = "") -> Config:
    return parse(f"learners: {{a: }}\ngroup: g\ninput: {{topics: [features, labels]}}\n{more}", "c.yaml", {})


ALLOWED = "join: {allow_partition_mismatch: true}"


def pairs(more: str = "", features: int = 4, labels: int = 4) -> tuple[Pairs, Clock]:
    clock = Clock()
    made = Pairs(config(more), clock)
    made.count({"features": features, "labels": labels})
    return made, clock


def test_different_counts_are_refused_with_both_topics_and_both_counts() -> None:
    with pytest.raises(ConfigError) as caught:
        refuse_unequal(config(), {"features": 6, "labels": 4})

    assert caught.value.exit_code == 2
    assert "features has 6 partitions, labels has 4 partitions" in str(caught.value)
    assert "set join.allow_partition_mismatch: true" in str(caught.value)


def test_different_counts_that_are_allowed_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    refuse_unequal(config(ALLOWED), {"features": 6, "labels": 1})

    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "features has 6 partitions, labels has 1 partition: " in caplog.text


def test_equal_counts_are_nothing_to_speak_of(caplog: pytest.LogCaptureFixture) -> None:
    refuse_unequal(config(), {"features": 4, "labels": 4})

    assert unequal({"features": 4, "labels": 4}) is None
    assert not caplog.records


@pytest.mark.parametrize(
    ("ours", "lacking"),
    [
        ([], {}),
        ([("f", 0), ("l", 0)], {}),
        ([("f", 0), ("f", 1), ("l", 1)], {("f", 0): [("l", 0)]}),
        ([("f", 2)], {}),  # l has no partition 2
        ([("f", 0), ("l", 1)], {("f", 0): [("l", 0)], ("l", 1): [("f", 1)]}),
    ],
)
def test_what_is_missing_are_like_numbered_partitions_that_exist(
    ours: list[tuple[str, int]], lacking: dict[tuple[str, int], list[tuple[str, int]]]
) -> None:
    assert missing(set(ours), {"f": 3, "l": 2}) == lacking


def test_of_three_topics_all_three_belong_together() -> None:
    assert missing({("a", 0), ("b", 0)}, {"a": 1, "b": 1, "c": 1}) == {
        ("a", 0): [("c", 0)],
        ("b", 0): [("c", 0)],
    }


def test_one_topic_has_no_pairs() -> None:
    alone = Pairs(parse("learners: {a: }\ninput: {topics: [events]}", "c.yaml", {}))

    alone.look({("events", 0)})

    assert not alone.waiting


def test_half_a_pair_waits_until_the_other_half_is_there() -> None:
    made, _ = pairs()

    made.look({("features", 0), ("features", 1), ("labels", 1)})
    half = set(made.waiting)
    made.look({("features", 0), ("features", 1), ("labels", 1), ("labels", 0)})

    assert half == {("features", 0)}
    assert not made.waiting


def test_half_a_pair_is_refused_once_a_dead_member_could_not_hold_the_other_half_any_more() -> None:
    made, clock = pairs()  # sessions of 45 s, and 15 s to share out
    made.look({("features", 0)})

    clock.at_s += 59.0
    made.refuse_split()
    clock.at_s += 2.0

    with pytest.raises(ConfigError, match=r"given this slot features\[0\] without labels\[0\] for 60 s, so .* group g"):
        made.refuse_split()


def test_the_sessions_own_timeout_counts() -> None:
    made, clock = pairs("consumer: {session.timeout.ms: 6000}")
    made.look({("features", 0)})

    clock.at_s += 22.0

    with pytest.raises(ConfigError, match="for 21 s"):
        made.refuse_split()


def test_another_look_does_not_begin_the_wait_anew() -> None:
    made, clock = pairs()
    made.look({("features", 0)})
    clock.at_s += 50.0
    made.look({("features", 0), ("features", 1), ("labels", 1)})
    clock.at_s += 11.0

    with pytest.raises(ConfigError, match=r"features\[0\] without labels\[0\]"):
        made.refuse_split()


def test_a_pair_that_was_whole_meanwhile_has_all_the_time_again() -> None:
    made, clock = pairs()
    made.look({("features", 0)})
    clock.at_s += 50.0
    made.look({("features", 0), ("labels", 0)})
    made.look({("labels", 0)})
    clock.at_s += 50.0

    made.refuse_split()

    assert set(made.waiting) == {("labels", 0)}


def test_where_different_counts_are_allowed_no_pair_can_be_kept() -> None:
    made, clock = pairs(ALLOWED, features=6)

    made.look({("features", 2), ("labels", 0)})
    clock.at_s += 3600.0

    assert not made.waiting
    made.refuse_split()


def test_where_different_counts_would_be_allowed_equal_ones_keep_their_pairs() -> None:
    made, _ = pairs(ALLOWED)

    made.look({("features", 2)})

    assert set(made.waiting) == {("features", 2)}


def test_counts_that_come_to_differ_while_we_work_are_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    made, _ = pairs()

    for _ in range(2):
        made.count({"features": 6, "labels": 4})

    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "features has 6 partitions, labels has 4 partitions" in caplog.text
    assert "or the next start is refused" in caplog.text


def test_a_split_by_different_counts_says_so() -> None:
    made, clock = pairs(features=6)
    made.look({("features", 2)})

    clock.at_s += 61.0

    with pytest.raises(ConfigError, match=r"\(features has 6 partitions, labels has 4 partitions\)"):
        made.refuse_split()
