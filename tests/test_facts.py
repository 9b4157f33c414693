"""A state is believed only in the place where it was made."""

from __future__ import annotations

from typing import Any

import pytest

from olstream.errors import StateError
from olstream.facts import refuse_other_place, refuse_other_topics

HERE: dict[str, Any] = {
    "group": "shop",
    "slot": 0,
    "journal": {"topic": "shop-journal", "partition": 0, "partitions": 3},
    "topic_ids": {"events": "e1", "shop-journal": "j1"},
}


def test_the_same_place_is_believed() -> None:
    refuse_other_place(HERE, HERE)


@pytest.mark.parametrize("elsewhere", [{"slot": 1}, {"group": "other"}])
def test_the_directory_of_another_slot_or_group_is_refused_naming_both(elsewhere: dict[str, Any]) -> None:
    with pytest.raises(StateError, match=r"slot \d of group \w+, this is slot 0 of group shop.*start_from"):
        refuse_other_place({**HERE, **elsewhere}, HERE)


def test_an_input_made_anew_is_refused_naming_both_ids() -> None:
    now = {**HERE, "topic_ids": {**HERE["topic_ids"], "events": "e2"}}

    with pytest.raises(StateError, match=r"events was made anew \(its id was e1, now it is e2\).*new `group`"):
        refuse_other_topics(HERE, now)


def test_a_journal_made_anew_is_refused_with_its_own_choices() -> None:
    now = {**HERE, "topic_ids": {**HERE["topic_ids"], "shop-journal": "j2"}}

    with pytest.raises(StateError, match=r"journal shop-journal was made anew.*state rollback"):
        refuse_other_topics(HERE, now)


@pytest.mark.parametrize("ids", [{}, {"events": None}])
def test_an_id_that_nobody_tells_is_taken_for_the_same(ids: dict[str, Any]) -> None:
    unknown = {**HERE, "topic_ids": ids}

    refuse_other_topics(HERE, unknown)
    refuse_other_topics(unknown, HERE)


def test_a_journal_with_another_partition_count_is_refused() -> None:
    now = {**HERE, "journal": {**HERE["journal"], "partitions": 4}}

    with pytest.raises(StateError, match="has 4 partitions, it had 3"):
        refuse_other_place(HERE, now)
