"""Back to an earlier checkpoint, or to the empty model: a new lineage begins there, for the records to come.

    opening line {"lineage": B, "parent": [A, 5]}, the group's offsets marked anew     one transaction
    checkpoint of B: the models of A at 5, journal position after that line            there by a rename, or not
    checkpoints of A and other lineages kept aside                                     a rename each

Whoever dies before the first has done nothing. After it a start in A is refused, and the same rollback again
begins one more lineage and finishes. After the second a start goes on in B, and keeps aside what is left of A.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from olstream.checkpoint import Checkpoint, Partition, Position
from olstream.config import Config
from olstream.errors import StateError
from olstream.facts import Facts, refuse_other_place
from olstream.journal import Line, Range, ends, lines_to
from olstream.model import digest_of
from olstream.ports import Inputs, Journal, Sink, Store
from olstream.recover import SINCE, begun, checkpoint_of, refuse_changed_learners
from olstream.settings import with_settings
from olstream.start import Beginning


@dataclass(frozen=True, slots=True)
class Dropped:
    """Records that were learnt and will not be in the model; the last `read_again` of them are read again."""

    range: Range
    read_again: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What a rollback does."""

    target: Checkpoint | None  # None: the empty model
    committed: Mapping[Partition, int]  # where the group stands
    offsets: Mapping[Partition, int]  # where it will stand, with our mark
    notes: Mapping[Partition, str]  # and beside that, as before: what waits there for labels, if another slot gets it
    own: frozenset[Partition]  # what this slot has ever learnt from
    dropped: Sequence[Dropped]


def plan(
    config: Config, target: Checkpoint | None, then: Facts, facts: Facts, journal: Journal, inputs: Inputs
) -> Plan:
    """Look at everything, change nothing. StateError where a start would refuse what it leads to.

    `then`: what the newest checkpoint said of its place; `facts`: how that is now.
    """
    inputs_only = {topic: id_ for topic, id_ in facts["topic_ids"].items() if topic in config.input.topics}
    refuse_other_place(then, {**facts, "topic_ids": inputs_only})  # in another journal the new lineage just begins
    if target:
        _refuse_other_learners(target, config)
    lines = list(journal.read_all_slots())
    ours = [line for line in lines if line.slot == config.slot]
    learnt = [r for line in ours for r in line.ranges]
    kept = lines_to(ours, target.position.lineage, target.position.seq) if target else []
    partitions = [(topic, p) for topic, n in facts["partitions"].items() for p in range(n)]
    committed = inputs.committed(partitions)
    # An offset that expired was where the group had learnt to. One past the end cannot be read from: see `_past_gap`.
    standing = ends(lines, partitions) | committed
    offsets = {at: min(offset, inputs.end(*at)) for at, offset in standing.items()}
    dropped = [
        Dropped(r, max(0, r.end - max(r.start, offsets.get((r.topic, r.partition), r.end))))
        for r in without(learnt, (r for line in kept for r in line.ranges))
    ]
    notes = {at: note for at, note in inputs.notes(partitions).items() if offsets[at] == committed.get(at)}
    return Plan(target, committed, offsets, notes, frozenset((r.topic, r.partition) for r in learnt), dropped)


def carry_out(
    plan: Plan,
    config: Config,
    run: str,
    facts: Facts,
    begin: Callable[[Config, str], Beginning],
    sink: Sink,
    store: Store,
) -> None:
    """The steps above, each certain before the next."""
    lineage = uuid.uuid4().hex
    own = {at: offset for at, offset in plan.offsets.items() if at in plan.own}
    target = plan.target
    models, starts = begun(config, () if target else config.learners, begin)
    parent = (target.position.lineage, target.position.seq) if target else None
    line = Line(config.slot, run, lineage, parent=parent, first_of_lineage=True, starts=starts)
    sink.note = lambda at: plan.notes.get(at, "")
    opened_at = sink.open_run(line, plan.offsets)
    position = Position(lineage, parent[1] if parent else 0, opened_at + 1, own)
    if target:
        first = replace(target, position=position, facts={**facts, SINCE: target.facts.get(SINCE)})
    else:
        first = checkpoint_of(config, models, position, {**facts, SINCE: (lineage, 0)})
    store.begin(first)


def _refuse_other_learners(target: Checkpoint, config: Config) -> None:
    refuse_changed_learners(with_settings(config, dict(target.settings)), config)
    for name, (meta, arrays) in target.states.items():
        if digest_of(dict(meta), arrays) != target.digests[name]:
            raise StateError(
                f"learner {name} of checkpoint {target.position.seq} is not what was written, its digest is another "
                "one: go back to another checkpoint"
            )


def without(ranges: Iterable[Range], others: Iterable[Range]) -> list[Range]:
    """What of these ranges lies in none of the others, in order, neighbours joined."""
    steps: dict[Partition, list[tuple[int, int, int]]] = {}  # offset, and by how much it is in more of each from there
    for some, given, barred in ((ranges, 1, 0), (others, 0, 1)):
        for r in some:
            steps.setdefault((r.topic, r.partition), []).extend([(r.start, given, barred), (r.end, -given, -barred)])
    left: list[Range] = []
    for (topic, partition), of_partition in sorted(steps.items()):
        start = given = barred = 0
        for offset, more_given, more_barred in sorted(of_partition):
            if given and not barred and start < offset:
                last = left[-1] if left else None
                if last and (last.topic, last.partition, last.end) == (topic, partition, start):
                    left[-1] = replace(last, end=offset)
                else:
                    left.append(Range(topic, partition, start, offset))
            start, given, barred = offset, given + more_given, barred + more_barred
    return left
