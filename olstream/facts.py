"""What a checkpoint says of where it was made: group, slot and topics, which only mean anything there.

The ids tell a topic from another one of its name: a topic that was deleted and made anew holds other records
at the same offsets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from olstream.errors import StateError

Facts: TypeAlias = Mapping[str, Any]


def refuse_other_place(then: Facts, now: Facts) -> None:
    """StateError where a state was made elsewhere, or the topics it rests on are not those of then."""
    _refuse_other_slot(then, now)
    refuse_other_topics(then, now)
    before, after = then.get("journal"), now.get("journal")
    if before and after and before["topic"] == after["topic"] and before["partitions"] != after["partitions"]:
        raise StateError(
            f"the journal {after['topic']} has {after['partitions']} partitions, it had {before['partitions']}: slots "
            "would no longer find their lines; name a new journal in output.journal together with a new `group`"
        )


def refuse_other_topics(then: Facts, now: Facts) -> None:
    """StateError where an input, or the journal, has another id than then. One that nobody tells counts as the same."""
    ids = now.get("topic_ids", {})
    for topic, was in then.get("topic_ids", {}).items():
        now_is = ids.get(topic)
        if was and now_is and was != now_is:
            made_anew = f"{topic} was made anew (its id was {was}, now it is {now_is})"
            if topic == then.get("journal", {}).get("topic"):
                raise StateError(
                    f"the journal {made_anew}, and what it said of this slot is gone: `olstream state rollback` goes "
                    "on from a checkpoint, or move the state directory away to begin with an empty model"
                )
            raise StateError(
                f"topic {made_anew}, and holds other records than those that were learnt: begin with a new `group`; "
                "learners.NAME.start_from takes a model along"
            )


def _refuse_other_slot(then: Facts, now: Facts) -> None:
    was, here = ((facts.get("slot"), facts.get("group")) for facts in (then, now))
    if None not in (*was, *here) and was != here:
        raise StateError(
            "the state directory is that of slot {} of group {}, this is slot {} of group {}: ".format(*was, *here)
            + "give each slot its own (checkpoint.path, slot), or move this one away to begin with an empty model; "
            "learners.NAME.start_from takes a model along"
        )
