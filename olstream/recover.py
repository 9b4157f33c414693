"""Checkpoint + the committed journal lines after it = the models as they were.

Runs before the worker joins its group. What the lines name is learnt again from the input
topics without publishing, under the settings of the time; settings that changed since take effect
through a checkpoint at the end, so that every stretch is always re-learnt under its own.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Literal, TypeAlias

from olstream.checkpoint import Checkpoint, Partition, Position
from olstream.config import Config
from olstream.errors import StateError
from olstream.facts import refuse_other_place
from olstream.journal import Line, ancestry, in_doubt, last_seq, lineage_lines, lines_before, newest_lineage, stands
from olstream.messages import Chunk
from olstream.model import Model, digest_of
from olstream.pipeline import Processed
from olstream.ports import Inputs, Journal, Sink, Store
from olstream.relearn import brought_back, committed_of, learn_again, under
from olstream.settings import differences, identity, same, settings
from olstream.start import Beginning, digests

log = logging.getLogger(__name__)

Found: TypeAlias = Literal["checkpoint", "older checkpoint", "journal", "new"]  # what the models were built from

SINCE: Final = "settings_since"  # fact of a checkpoint: [lineage, seq] from which on all was learnt under its settings
RUN: Final = "run"  # fact of a checkpoint: who held the slot at its place in the journal
LOST: Final = "lost"  # fact of a checkpoint: so many records were gone that led to it, and nobody can learn it again
START_AFRESH = "set checkpoint.on_missing: fresh to begin with an empty model"


@dataclass(frozen=True, slots=True)
class Recovered:
    """The models where the journal says they are."""

    models: Mapping[str, Model]
    position: Position
    replayed: int
    found: Found
    facts: Mapping[str, Any]  # for the checkpoints to come
    then: Mapping[str, Any] = field(default_factory=dict)  # those of the checkpoint
    in_doubt: Sequence[Line] = ()  # at_least_once: what was flushed before, and not committed as far as anybody knows


@dataclass(slots=True)
class _Plan:
    """Where to begin, and which lines of which lineages lead on from there."""

    position: Position
    config: Config
    models: dict[str, Model]
    found: Found
    opening: Line
    since: tuple[str, int] | None  # lineage and seq: from there on all was learnt under these settings
    before: list[Line] = field(default_factory=list)  # of earlier lineages, when all of the journal is learnt again
    holder: str | None = None  # the run that held the slot there; None where the journal itself tells


class Recovery:
    """Brings one slot's models back."""

    def __init__(
        self,
        config: Config,
        run: str,
        store: Store,
        sink: Sink,
        journal: Journal,
        inputs: Inputs,
        facts: Mapping[str, Any],
        begin: Callable[[Config, str], Beginning],
        on_replayed: Callable[[Chunk, Processed], None],
        on_remaining: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.config = config
        self.run_id = run
        self.store = store
        self.sink = sink
        self.journal = journal
        self.inputs = inputs
        self.facts = facts
        self.begin = begin
        self.on_replayed = on_replayed
        self.on_remaining = on_remaining

    def recover(self) -> Recovered:
        """The models and their position; on disk there is a checkpoint under today's settings."""
        checkpoint = self.store.load()
        plan = self._from_checkpoint(checkpoint) if checkpoint else self._without_checkpoint()
        opened_at = self.sink.open_run(plan.opening)
        lines = [line for line in self.journal.read(plan.position.journal_offset) if line.offset < opened_at]
        self._refuse_newer_lineage(lines, plan.position.lineage)
        self.store.set_others_aside(plan.position.lineage)
        lineage, committed = plan.position.lineage, self._committed(lines)
        own = lineage_lines(lines, lineage, plan.position.seq, committed, holder=plan.holder)
        position, replayed = self._learn_again(plan, plan.before + own)
        doubtful = [] if committed is None else in_doubt(lines, lineage, position.seq, plan.holder)
        begins, holder = (doubtful[0].offset, doubtful[0].run) if doubtful else (opened_at + 1, self.run_id)
        position = replace(position, journal_offset=begins)
        models = self._under_todays_settings(plan, position)
        is_changed = not same(settings(plan.config), settings(self.config))
        if is_changed:
            changes = differences(settings(plan.config), settings(self.config))
            log.info("settings have changed since the last start: %s", ", ".join(changes))
        facts = {**self.facts, SINCE: (position.lineage, position.seq) if is_changed else plan.since}
        if is_changed or self.inputs.lost or "checkpoint" not in plan.found:
            told = {**facts, LOST: self.inputs.lost, RUN: holder}
            self.store.save(checkpoint_of(self.config, models, position, told))
        then = checkpoint.facts if checkpoint else {}
        return Recovered(models, position, replayed, plan.found, facts, then, doubtful)

    def _from_checkpoint(self, checkpoint: Checkpoint) -> _Plan:
        refuse_other_place(checkpoint.facts, self.facts)
        config, models = brought_back(checkpoint, self.config)
        refuse_changed_learners(config, self.config)
        position = checkpoint.position
        new, starts = begun(self.config, (name for name in self.config.learners if name not in models), self.begin)
        opening = Line(self.config.slot, self.run_id, position.lineage, starts=starts)
        found: Found = "older checkpoint" if self.store.skipped else "checkpoint"
        models |= new  # which are in no route of that time
        return _Plan(
            position, config, models, found, opening, checkpoint.facts.get(SINCE), holder=checkpoint.facts.get(RUN)
        )

    def _without_checkpoint(self) -> _Plan:
        lines = self.journal.read(0)
        led = [line for line in lines if line.ranges or line.parent]  # a lineage that is new and learnt nothing did not
        if not led and not self.store.has_damaged() and not self.journal.is_cut():
            return self._afresh("new")
        match self.config.checkpoint.on_missing:
            case "fresh":
                return self._afresh("new")
            case "replay" if led:
                return self._along_the_journal(lines, newest_lineage(lines))
        raise StateError(self._missing(bool(led)))

    def _missing(self, journal_leads: bool) -> str:
        whose, path = f"slot {self.config.slot} of group {self.config.group}", self.config.checkpoint.path
        if journal_leads:
            return (
                f"{whose} has learnt before, and there is no usable checkpoint in {path}: bring its state directory "
                "back, set checkpoint.on_missing: replay to learn all of its journal again, or fresh to begin anew"
            )
        return (
            f"there is no usable checkpoint of {whose} in {path}, and what it may have learnt is no longer in its "
            "journal: bring its state directory back, or set checkpoint.on_missing: fresh to begin anew"
        )

    def _afresh(self, found: Found) -> _Plan:
        lineage = uuid.uuid4().hex
        models, starts = begun(self.config, self.config.learners, self.begin)
        opening = Line(self.config.slot, self.run_id, lineage, first_of_lineage=True, starts=starts)
        position = Position(lineage, journal_offset=self.journal.end())
        return _Plan(position, self.config, models, found, opening, (lineage, 0))

    def _along_the_journal(self, lines: Sequence[Line], lineage: str) -> _Plan:
        """All of the journal from its beginning, through the lineages that led to the last one."""
        way = ancestry(lines, lineage)
        before = lines_before(lines, lineage)
        models, starts = begun(self.config, self.config.learners, self.begin)
        refuse_other_starts([line for line in lines if line.lineage in dict(way)], self.config.learners, starts)
        begins = next(line.offset for line in lines if line.lineage == lineage)
        opening = Line(self.config.slot, self.run_id, lineage)
        position = Position(lineage, last_seq(before), begins)
        return _Plan(position, self.config, models, "journal", opening, (way[0][0], 0), before)

    def _learn_again(self, plan: _Plan, lines: Sequence[Line]) -> tuple[Position, int]:
        remaining = sum(r.end - r.start for line in lines for r in line.ranges)
        replayed = 0
        if remaining:
            log.info("learning %d records again from %d journal lines", remaining, len(lines))
        for chunk, done in learn_again(lines, plan.config, plan.models, self.inputs, plan.position.offsets):
            self.on_replayed(chunk, done)
            replayed += len(chunk)
            self.on_remaining(remaining - replayed)
        seq = last_seq(lines, plan.position.seq)
        return Position(plan.position.lineage, seq, 0, {**plan.position.offsets, **stands(lines)}), replayed

    def _under_todays_settings(self, plan: _Plan, position: Position) -> dict[str, Model]:
        """The same states under the settings of today; a removed learner is kept aside."""
        removed = {name: model for name, model in plan.models.items() if name not in self.config.learners}
        if removed:
            log.warning("no longer configured, last state kept aside: %s", ", ".join(removed))
            self.store.keep_removed(checkpoint_of(plan.config, removed, position, self.facts))
        return under(self.config, plan.models)

    def _committed(self, lines: Sequence[Line]) -> dict[Partition, int] | None:
        return committed_of(lines, self.config, self.inputs)

    def _refuse_newer_lineage(self, lines: Sequence[Line], lineage: str) -> None:
        """This directory is one that was brought back, or a rollback did not come to its end."""
        other = next((line for line in lines if line.lineage != lineage and line.first_of_lineage), None)
        if other is not None:
            raise StateError(
                f"the journal goes on in another lineage ({other.lineage}, at offset {other.offset}) than this state "
                f"directory's ({lineage}): bring back the directory that wrote it, go on from this one with `olstream "
                f"state rollback`, or move it away and {START_AFRESH}, or replay to learn the journal again"
            )


def begun(
    config: Config, names: Iterable[str], begin: Callable[[Config, str], Beginning]
) -> tuple[dict[str, Model], dict[str, str]]:
    """Learners before their first row, and the digests of what they begin with."""
    beginnings = {name: begin(config, name) for name in names}
    return {name: beginning.model for name, beginning in beginnings.items()}, digests(beginnings)


def refuse_other_starts(lines: Iterable[Line], names: Iterable[str], starts: Mapping[str, str]) -> None:
    """What was learnt after another beginning, or was not there from the beginning, was another model."""
    then: dict[str, str] = {}
    has_learnt = False
    for line in lines:
        then |= {name: f"{digest} later on" if has_learnt else digest for name, digest in line.starts.items()}
        has_learnt |= not line.is_opening
    for name in names:
        began, begins = then.get(name, "nothing"), starts.get(name, "nothing")
        if began != begins:
            raise StateError(
                f"the journal cannot give learner {name} back: it began with {began}, and would now with {begins} "
                "(SHA-256): put start_from and what it names back as they were, bring back the state directory, or "
                f"{START_AFRESH}"
            )


def refuse_changed_learners(then: Config, now: Config) -> None:
    """StateError where a learner is not what it was: its state would mean something else."""
    for name in now.learners.keys() & then.learners.keys():
        changed = differences(identity(then, name), identity(now, name))
        if changed:
            raise StateError(
                f"learner {name} has learnt under other settings ({', '.join(changed)}): put them back, "
                "give the learner a new name to begin with an empty model, or begin all of them anew with "
                "`olstream state rollback --to empty`"
            )


def checkpoint_of(
    config: Config, models: Mapping[str, Model], position: Position, facts: Mapping[str, Any]
) -> Checkpoint:
    """A copy of everything as of now; digests are worked out later, by whoever writes it."""
    states = {name: model.state() for name, model in models.items()}
    digests = {name: partial(digest_of, meta, arrays) for name, (meta, arrays) in states.items()}
    return Checkpoint(states, digests, position, settings(config), facts)
