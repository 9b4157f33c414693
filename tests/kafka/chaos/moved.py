"""Without transactions and with several slots: nothing is lost, and two have learnt only what moved in a crash.

A line that was flushed and not committed names records that whoever has the partition next learns too. It comes to
count once they are committed, by whomever: then its slot has learnt them as well, though nobody sees them twice in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations, pairwise
from typing import TypeAlias

from olstream.journal import Line, Range, lineage_lines, newest_lineage
from tests.kafka.chaos.flow import has_label, is_good
from tests.kafka.chaos.stage import Stage

Inputs: TypeAlias = Mapping[tuple[int, int], bytes | None]


def assert_learnt_by_two_only_where_moved(stage: Stage, inputs: Inputs) -> None:
    learnt = {slot: _counting(stage, slot) for slot in stage.services}
    for slot, lines in learnt.items():
        _assert_model_is(stage, slot, lines, inputs)
    missing = inputs.keys() - {place for lines in learnt.values() for place in _places(lines)}
    assert not missing, f"{len(missing)} records are in no line that counts, the first of {min(missing)}"
    for (one, ones), (other, others) in combinations(learnt.items(), 2):
        both = list(_overlaps(ones, others))
        assert not both, f"slots {one} and {other} have learnt the same, and both went on there: {both[:3]}"


def _counting(stage: Stage, slot: int) -> list[Line]:
    messages = stage.topics.read(f"{stage.group}-journal")
    lines = [Line.from_bytes(message.value() or b"", message.offset() or 0) for message in messages]
    own = [line for line in lines if line.slot == slot]
    committed = {(stage.input, partition): offset for partition, offset in stage.progress().items()}
    return lineage_lines(own, newest_lineage(own), 0, committed)


def _assert_model_is(stage: Stage, slot: int, lines: list[Line], inputs: Inputs) -> None:
    places = list(_places(lines))
    assert len(places) == len(set(places)), f"slot {slot} has learnt {len(places) - len(set(places))} records twice"
    good = [value for value in map(inputs.get, places) if value is not None and is_good(value)]
    model = stage.services[slot].inspect()["learners"]["model"]
    found, expected = (model["seen"], model["labelled"]), (len(good), sum(map(has_label, good)))
    assert found == expected, f"(seen, labelled) of slot {slot} is {found}, of {expected} in its lines"


def _places(lines: list[Line]) -> Iterator[tuple[int, int]]:
    for line in lines:
        for r in line.ranges:
            yield from ((r.partition, offset) for offset in range(r.start, r.end))


def _overlaps(ones: list[Line], others: list[Line]) -> Iterator[tuple[Range, Range]]:
    """What both have learnt, where neither had it taken away: each went on right after it, in another line."""
    theirs = _gone_on_from(others)
    for a in _gone_on_from(ones):
        yield from ((a, b) for b in theirs if a.partition == b.partition and a.start < b.end and b.start < a.end)


def _gone_on_from(lines: list[Line]) -> list[Range]:
    learnt: defaultdict[int, list[Range]] = defaultdict(list)
    for line in lines:
        for partition in {r.partition for r in line.ranges}:
            ranges = [r for r in line.ranges if r.partition == partition]
            learnt[partition].append(replace(ranges[0], end=ranges[-1].end))
    return [a for ranges in learnt.values() for a, b in pairwise(ranges) if a.end == b.start]
