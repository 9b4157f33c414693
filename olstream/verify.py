"""Is each checkpoint, to the last bit, what learning the journal again makes of an earlier one?

From the oldest kept checkpoint of the slot's lineage, or from the empty model, along the committed journal
lines to each newer one: position and digest of every learner must be the same. Where settings changed, the
checkpoint that was written before joining says where, and what comes after it is learnt under its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from olstream.checkpoint import Checkpoint, Partition
from olstream.config import Config
from olstream.errors import StateError
from olstream.journal import Line, ancestry, last_seq, lineage_lines, lines_before, reached
from olstream.model import Model, digest_of
from olstream.ports import Inputs, Journal
from olstream.recover import LOST, SINCE
from olstream.relearn import brought_back, committed_of, learn_again, under
from olstream.settings import with_settings


@dataclass(frozen=True, slots=True)
class Compared:
    """One checkpoint beside what the journal makes of an earlier one."""

    name: str
    checkpoint: Checkpoint
    records: int  # learnt again since the one before
    is_start: bool  # nothing was learnt again that leads here: learning again starts from it
    difference: str


class Verification:
    """One pass along the journal of a slot. Nothing is written, no lock taken, no group joined."""

    def __init__(
        self,
        config: Config,
        kept: Mapping[str, Checkpoint],
        journal: Journal,
        inputs: Inputs,
        on_learnt: Callable[[int, int], None] = lambda _records, _of: None,
    ) -> None:
        """`kept`: whole checkpoints, at least one, by name, oldest first. Those of other lineages are passed over."""
        self.config = config
        *_, newest = kept.values()
        self.newest = newest.position
        self.kept = {name: c for name, c in kept.items() if c.position.lineage == self.newest.lineage}
        self.oldest = next(iter(self.kept.values()))
        self.journal = journal
        self.inputs = inputs
        self.on_learnt = on_learnt
        self.records = 0  # learnt again
        self.journal_seq = 0  # of the last line that counts

    def compare(self, from_empty: bool = False) -> Iterator[Compared]:
        """Each checkpoint in order, up to the first that differs. StateError where there is no way to learn again."""
        lines = self._all_lines() if from_empty else self._lines_after_the_oldest()
        self._refuse_a_missing_end(lines)
        to_learn = sum(r.end - r.start for line in _between(lines, 0, self.newest.seq) for r in line.ranges)
        walk = _from_empty(self.config, self.oldest) if from_empty else None
        for name, checkpoint in self.kept.items():
            before = self.records
            is_start = bool(checkpoint.facts.get(LOST)) or walk is None or walk.missed_a_change(lines, checkpoint)
            if walk is None or is_start:
                walk = _from_checkpoint(self.config, checkpoint)
            for records in walk.learn_up_to(lines, checkpoint, self.inputs):
                self.records += records
                self.on_learnt(self.records, to_learn)
            difference = walk.difference(checkpoint) or _overlooked(lines, checkpoint)
            yield Compared(name, checkpoint, self.records - before, is_start, difference)
            if difference:
                return

    def _lines_after_the_oldest(self) -> list[Line]:
        position = self.oldest.position
        found = self.journal.read(position.journal_offset)
        committed = committed_of(found, self.config, self.inputs)
        return lineage_lines(found, position.lineage, position.seq, committed, self.newest.seq)

    def _all_lines(self) -> list[Line]:
        if self.journal.is_cut():
            raise StateError(
                "the beginning of the journal is gone, so the models cannot be learnt again from the empty one: "
                "leave out --all to begin with the oldest checkpoint"
            )
        found = self.journal.read(0)
        self._refuse_unknown_settings(ancestry(found, self.newest.lineage)[0][0])
        committed = committed_of(found, self.config, self.inputs)
        before = lines_before(found, self.newest.lineage)
        return before + lineage_lines(found, self.newest.lineage, last_seq(before), committed, self.newest.seq)

    def _refuse_unknown_settings(self, first_lineage: str) -> None:
        """From the empty model on everything must have been learnt under the settings of the oldest checkpoint."""
        since = self.oldest.facts.get(SINCE)
        if list(since or ()) != [first_lineage, 0]:
            when = f"at line {since[1]} of lineage {since[0]}" if since else "nobody noted when"
            raise StateError(
                f"settings or learners have changed ({when}) since this slot began, and no checkpoint from before is "
                "kept, so the models cannot be learnt again from the empty one: leave out --all to begin with the "
                "oldest checkpoint"
            )

    def _refuse_a_missing_end(self, lines: Sequence[Line]) -> None:
        last = self.journal_seq = last_seq(lines, self.oldest.position.seq)
        if last < self.newest.seq:
            raise StateError(
                f"the journal misses line {last + 1} of slot {self.config.slot}, and the newest checkpoint has learnt "
                f"up to line {self.newest.seq}: the journal was cut or made anew"
            )


@dataclass(slots=True)
class _Walk:
    """The models as far as they are learnt again, and what else a checkpoint there has to say."""

    config: Config  # under which they learn
    settings: Mapping[str, Any]
    models: dict[str, Model]
    seq: int = 0
    offsets: dict[Partition, int] = field(default_factory=dict)

    def missed_a_change(self, lines: Sequence[Line], checkpoint: Checkpoint) -> bool:
        """Whether the checkpoint that was written where the settings changed is gone: this one is of later."""
        run = checkpoint.facts.get("run")
        on_the_way = _between(lines, self.seq, checkpoint.position.seq)
        return checkpoint.settings != self.settings and any(line.run == run for line in on_the_way)

    def learn_up_to(self, lines: Sequence[Line], checkpoint: Checkpoint, inputs: Inputs) -> Iterator[int]:
        """Learn again what leads to this checkpoint, then take on its settings. Yields records as they are learnt."""
        stretch = _between(lines, self.seq, checkpoint.position.seq)
        for chunk, _ in learn_again(stretch, self.config, self.models, inputs):
            yield len(chunk)
        self.seq = checkpoint.position.seq
        ours = (line for line in stretch if line.lineage == checkpoint.position.lineage)
        self.offsets.update(reached(ours))  # a rollback begins where the group stands
        if checkpoint.settings != self.settings:
            self._take_on(checkpoint)

    def _take_on(self, checkpoint: Checkpoint) -> None:
        """A learner that is new began here: empty, or with what is not ours to say."""
        then = with_settings(self.config, dict(checkpoint.settings))
        given = brought_back(checkpoint, self.config)[1]
        for name, learner in then.learners.items():
            if name not in self.models:
                began_empty = learner.start_from is None
                self.models[name] = Model(name, learner, then.monitor) if began_empty else given[name]
        self.config, self.settings, self.models = then, checkpoint.settings, under(then, self.models)

    def difference(self, checkpoint: Checkpoint) -> str:
        """What this checkpoint holds and what it should, or nothing."""
        for (topic, partition), offset in self.offsets.items():
            if (found := checkpoint.position.offsets.get((topic, partition))) != offset:
                return f"it has learnt {topic}[{partition}] up to offset {found}, by the journal up to {offset}"
        for name, state in checkpoint.states.items():
            digest = digest_of(dict(state[0]), state[1])
            if (noted := checkpoint.digests[name]) != digest:
                return f"learner {name} has digest {digest}, and {noted} when it was written"
            if (again := self.models[name].digest()) != digest:
                return f"learner {name} has digest {digest}, learning the journal again gives {again}"
        return ""


def _from_checkpoint(config: Config, checkpoint: Checkpoint) -> _Walk:
    then, models = brought_back(checkpoint, config)
    position = checkpoint.position
    return _Walk(then, checkpoint.settings, models, position.seq, dict(position.offsets))


def _from_empty(config: Config, oldest: Checkpoint) -> _Walk:
    then = with_settings(config, dict(oldest.settings))
    models = {name: Model(name, learner, then.monitor) for name, learner in then.learners.items()}
    return _Walk(then, oldest.settings, models)


def _between(lines: Sequence[Line], after_seq: int, until_seq: int) -> list[Line]:
    return [line for line in lines if after_seq < (line.seq or 0) <= until_seq]


def _overlooked(lines: Sequence[Line], checkpoint: Checkpoint) -> str:
    """A start from this checkpoint reads on at its journal position: all lines after its seq must stand there."""
    position = checkpoint.position
    for line in lines:
        if (line.seq or 0) > position.seq and line.offset < position.journal_offset:
            return (
                f"it goes on at journal offset {position.journal_offset}, and line {line.seq} stands at {line.offset}"
            )
    return ""
