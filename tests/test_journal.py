"""Which journal lines count."""

from __future__ import annotations

import pytest

from olstream.errors import StateError
from olstream.journal import (
    RANGES_MAX,
    RECORDS_MAX,
    Adopted,
    Learnt,
    Line,
    Range,
    ancestry,
    ends,
    in_doubt,
    lineage_lines,
    reached,
    stands,
)
from olstream.messages import Chunk


def line(seq: int, start: int = 0, end: int = 0, run: str = "r1", lineage: str = "L", offset: int = 0) -> Line:
    return Line(0, run, lineage, seq, (Range("events", 0, start, end),) if end else (), offset=offset)


def opening(run: str, lineage: str = "L", parent: tuple[str, int] | None = None, first: bool = False) -> Line:
    return Line(0, run, lineage, parent=parent, first_of_lineage=first)


def chunk(partition: int, *offsets: int) -> Chunk:
    n = len(offsets)
    return Chunk("events", partition, list(offsets), [None] * n, [None] * n, [None] * n, [None] * n)


def test_a_line_survives_being_written_and_read() -> None:
    written = Line(3, "run", "lineage", 7, (Range("events", 0, 5, 9), Range("events", 1, 0, 2)), offset=11)

    assert Line.from_bytes(written.to_bytes(), 11) == written


def test_a_line_that_tells_of_moved_partitions_survives_too() -> None:
    left, adopted = (("events", 1), ("labels", 1)), (Adopted("events", 2, 5, 9, 6, 9), Adopted("labels", 2, 0, 0, 0, 0))
    written = Line(3, "run", "lineage", 7, (), left=left, adopted=adopted)

    assert b'"left":[["events",1],["labels",1]],"adopted":[["events",2,5,9,6,9],["labels",2,0,0' in written.to_bytes()
    assert Line.from_bytes(written.to_bytes(), -1) == written


def test_what_was_taken_over_is_known_to_stand_where_it_was_and_was_not_learnt() -> None:
    learnt = Line(0, "run", "lineage", 1, (Range("events", 0, 0, 7), Range("events", 1, 0, 3)))
    taken = Line(
        0, "run", "lineage", 2, (), adopted=(Adopted("events", 1, 2, 9, 2, 9), Adopted("labels", 1, 4, 4, 4, 4))
    )

    assert reached([learnt, taken]) == {("events", 0): 7, ("events", 1): 3}
    assert stands([learnt, taken]) == {("events", 0): 7, ("events", 1): 9, ("labels", 1): 4}


def test_an_opening_line_has_no_seq_and_no_ranges() -> None:
    written = Line(3, "run", "lineage")

    assert written.to_bytes() == b'{"slot":3,"run":"run","lineage":"lineage"}'
    assert Line.from_bytes(written.to_bytes(), -1).is_opening


@pytest.mark.parametrize("parent", [None, ("older", 12)])
def test_the_first_opening_line_of_a_lineage_names_its_parent(parent: tuple[str, int] | None) -> None:
    written = Line(0, "run", "lineage", parent=parent, first_of_lineage=True)

    assert b'"parent":' in written.to_bytes()
    assert Line.from_bytes(written.to_bytes(), -1) == written


def test_a_record_that_is_no_line_is_refused_with_its_offset() -> None:
    with pytest.raises(StateError, match="offset 5"):
        Line.from_bytes(b'{"hello":1}', 5)


def test_neighbouring_chunks_become_one_range_and_keep_their_order() -> None:
    learnt = Learnt()

    for part in (chunk(0, 0, 1, 2), chunk(0, 3, 5), chunk(1, 7), chunk(0, 6)):
        learnt.add(part)

    assert learnt.ranges == [Range("events", 0, 0, 6), Range("events", 1, 7, 8), Range("events", 0, 6, 7)]
    assert reached([Line(0, "run", "lineage", 1, tuple(learnt.ranges))]) == {("events", 0): 7, ("events", 1): 8}


def test_a_line_is_full_at_so_many_records_or_ranges() -> None:
    records, ranges = Learnt(), Learnt()

    records.add(chunk(0, *range(RECORDS_MAX - 1)))
    for i in range(RANGES_MAX - 1):
        ranges.add(chunk(i % 2, i))
    before = records.is_full(), ranges.is_full()
    records.add(chunk(0, RECORDS_MAX))
    ranges.add(chunk(7, 1))

    assert before == (False, False)
    assert (records.is_full(), ranges.is_full()) == (True, True)


def test_only_lines_of_the_lineage_after_the_checkpoint_count() -> None:
    lines = [opening("r1"), line(1, 0, 5), line(2, 5, 9), line(1, 0, 3, lineage="other"), line(3, 9, 12)]

    assert [found.seq for found in lineage_lines(lines, "L", 1)] == [2, 3]


def test_a_hole_in_the_lines_is_refused() -> None:
    with pytest.raises(StateError, match="misses line 2"):
        lineage_lines([line(1, 0, 5), line(3, 9, 12)], "L", 0)


def test_lines_not_covered_by_committed_offsets_do_not_count_at_least_once() -> None:
    lines = [opening("r1"), line(1, 0, 5), line(2, 5, 9), line(3, 9, 12)]

    assert [found.seq for found in lineage_lines(lines, "L", 0, {("events", 0): 9})] == [1, 2]


def test_lines_that_a_checkpoint_was_built_on_count_wherever_the_group_was_moved_to_since() -> None:
    lines = [opening("r1"), line(1, 0, 5), line(2, 5, 9), line(3, 9, 12)]

    counting = lineage_lines(lines, "L", 0, {("events", 0): 4}, known_seq=2)

    assert [found.seq for found in counting] == [1, 2]


def test_a_zombies_line_after_a_later_runs_opening_does_not_count() -> None:
    lines = [opening("r1"), line(1, 0, 5), opening("r2"), line(2, 5, 8, run="r1"), line(2, 5, 9, run="r2")]

    counting = lineage_lines(lines, "L", 0, {("events", 0): 100})

    assert [(found.run, found.seq) for found in counting] == [("r1", 1), ("r2", 2)]


def test_a_zombies_line_among_those_of_the_run_that_holds_the_slot_does_not_count() -> None:
    """A checkpoint knows who holds the slot at its place: the opening lines may lie before it."""
    lines = [line(4, 9, 12, run="r2"), line(3, 7, 11, run="r1"), line(5, 12, 15, run="r2")]

    counting = lineage_lines(lines, "L", 3, {("events", 0): 100}, holder="r2")

    assert [(found.run, found.seq) for found in counting] == [("r2", 4), ("r2", 5)]


def test_lines_that_were_not_committed_as_far_as_anybody_knows_are_in_doubt() -> None:
    lines = [line(2, 5, 9), line(3, 9, 12), opening("r2"), line(3, 9, 14)]

    assert [found.seq for found in lineage_lines(lines, "L", 1, {("events", 0): 9}, holder="r1")] == [2]
    assert in_doubt(lines, "L", 2, "r1") == [line(3, 9, 12)]


def test_a_line_takes_the_place_of_those_from_its_seq_on() -> None:
    lines = [opening("r1"), line(1, 0, 5), line(2, 5, 9), line(3, 9, 10), opening("r2"), line(2, 5, 10, run="r2")]

    counting = lineage_lines(lines, "L", 0, {("events", 0): 10})

    assert [(found.run, found.seq) for found in counting] == [("r1", 1), ("r2", 2)]


def test_the_ancestry_leads_from_the_empty_model_to_the_lineage() -> None:
    lines = [opening("r1", "A", first=True), opening("r2", "B", ("A", 4), first=True), opening("r3", "B")]

    assert ancestry(lines, "B") == [("A", 4), ("B", None)]


def test_an_ancestry_whose_beginning_is_gone_is_refused() -> None:
    with pytest.raises(StateError, match="no longer holds the beginning of lineage A"):
        ancestry([opening("r2", "B", ("A", 4), first=True)], "B")


def test_the_ends_are_how_far_the_last_line_of_any_slot_reaches() -> None:
    moved_back = line(3, 4, 7, lineage="after a rollback")
    other_slot = Line(1, "r", "M", 1, (Range("events", 0, 0, 2), Range("events", 1, 0, 8)))
    lines = [line(1, 0, 5), line(2, 5, 9), moved_back, other_slot, Line(1, "r", "M")]

    assert ends(lines, {("events", 0), ("events", 2)}) == {("events", 0): 7}
    assert ends(lines, {("events", 1)}) == {("events", 1): 8}
