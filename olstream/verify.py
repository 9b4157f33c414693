"""Is each checkpoint, to the last bit, what learning the journal again makes of an earlier one?

From the oldest kept checkpoint of the slot's lineage, or from the empty model, along the committed journal
lines to each newer one: position and digest of every learner must be the same. Where settings changed, the
checkpoint that was written before joining, or at a reload, says where, and what comes after it is learnt under its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from olstream.checkpoint import Checkpoint, Partition
from olstream.config import Config
from olstream.errors import StateError
from olstream.journal import Line, ancestry, last_seq, lineage_lines, lines_before, stands
from olstream.model import Model, digest_of
from olstream.ports import Inputs, Journal
from olstream.recover import LOST, RUN, SINCE, begun, refuse_other_starts
from olstream.relearn import brought_back, committed_of, learn_again, under
from olstream.settings import same, with_settings
from olstream.start import Beginning

CANNOT: Final = (
    "the models cannot be learnt again from the empty one: leave out --all to begin with the oldest checkpoint"
)


@dataclass(frozen=True, slots=True)
class Compared:
    """One checkpoint beside what the journal makes of an earlier one."""

    name: str
    checkpoint: Checkpoint
    records: int  # learnt again since the one before
    starts: str  # why nothing leads here and learning again starts from it, if that is so
    difference: str  # what is not as it should be, if anything is


class Verification:
    """One pass along the journal of a slot. Nothing is written, no lock taken, no group joined."""

    def __init__(
        self,
        config: Config,
        kept: Mapping[str, Checkpoint],
        journal: Journal,
        inputs: Inputs,
        begin: Callable[[Config, str], Beginning],
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
        self.begin = begin
        self.on_learnt = on_learnt
        self.records = 0  # learnt again
        self.journal_seq = 0  # of the last line that counts

    def compare(self, from_empty: bool = False) -> Iterator[Compared]:
        """Each checkpoint in order, up to the first that differs. StateError where there is no way to learn again."""
        walk, lines = self._from_empty() if from_empty else self._from_the_oldest()
        self._refuse_a_missing_end(lines)
        to_learn = sum(r.end - r.start for line in _between(lines, walk.seq, self.newest.seq) for r in line.ranges)
        for name, checkpoint in self.kept.items():
            before = self.records
            starts = walk.starts_at(checkpoint, lines) or self._learn(walk, checkpoint, lines, to_learn)
            if starts and from_empty:
                raise StateError(f"{name}: {starts}, so {CANNOT}")
            if starts:
                walk = _Walk.of(checkpoint, self.config)
            difference = walk.difference(checkpoint) or _overlooked(lines, checkpoint)
            yield Compared(name, checkpoint, self.records - before, starts, difference)
            if difference:
                return

    def _learn(self, walk: _Walk, checkpoint: Checkpoint, lines: Sequence[Line], to_learn: int) -> str:
        """Go on to this checkpoint; why that was not possible, if it was not."""
        lost = self.inputs.lost
        for records in walk.learn_up_to(lines, checkpoint, self.inputs):
            self.records += records
            self.on_learnt(self.records, to_learn)
        return _gone(self.inputs.lost - lost)

    def _from_the_oldest(self) -> tuple[_Walk, list[Line]]:
        position = self.oldest.position
        found = self.journal.read(position.journal_offset)
        committed = committed_of(found, self.config, self.inputs)
        holder = self.oldest.facts.get(RUN)
        lines = lineage_lines(found, position.lineage, position.seq, committed, self.newest.seq, holder)
        return _Walk.of(self.oldest, self.config), lines

    def _from_empty(self) -> tuple[_Walk, list[Line]]:
        if self.journal.is_cut():
            raise StateError(f"the beginning of the journal is gone, so {CANNOT}")
        found = self.journal.read(0)
        way = [lineage for lineage, _ in ancestry(found, self.newest.lineage)]
        self._refuse_other_settings(way[0])
        then = with_settings(self.config, dict(self.oldest.settings))
        models, starts = begun(then, then.learners, self.begin)
        refuse_other_starts((line for line in found if line.lineage in way), then.learners, starts)
        before, committed = lines_before(found, way[-1]), committed_of(found, self.config, self.inputs)
        lines = before + lineage_lines(found, way[-1], last_seq(before), committed, self.newest.seq)
        return _Walk(then, self.oldest.settings, models), lines

    def _refuse_other_settings(self, first_lineage: str) -> None:
        """All before the oldest checkpoint must have been learnt under its settings: those of earlier ones are gone."""
        since = self.oldest.facts.get(SINCE)
        if list(since or ()) != [first_lineage, 0]:
            when = f"at line {since[1]} of lineage {since[0]}" if since else "nobody noted when"
            raise StateError(f"settings or learners have changed on the way ({when}), so {CANNOT}")

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
    start: Checkpoint | None = None

    @classmethod
    def of(cls, checkpoint: Checkpoint, config: Config) -> _Walk:
        then, models = brought_back(checkpoint, config)
        position = checkpoint.position
        return cls(then, checkpoint.settings, models, position.seq, dict(position.offsets), checkpoint)

    def starts_at(self, checkpoint: Checkpoint, lines: Sequence[Line]) -> str:
        """Why nothing that is known leads to this checkpoint, if that is so."""
        if checkpoint is self.start:
            return "it is the oldest"
        if not same(checkpoint.settings, self.settings) and not self._says_where(checkpoint, lines):
            return "the settings changed on the way, and the checkpoint that says where is gone"
        return _gone(checkpoint.facts.get(LOST, 0))

    def _says_where(self, checkpoint: Checkpoint, lines: Sequence[Line]) -> bool:
        """Whether its settings began with it: at a start, before anything was learnt, or at a reload."""
        position, since = checkpoint.position, checkpoint.facts.get(SINCE)
        if since is not None:
            return list(since) == [position.lineage, position.seq]
        return checkpoint.facts.get(RUN) not in {line.run for line in _between(lines, self.seq, position.seq)}

    def learn_up_to(self, lines: Sequence[Line], checkpoint: Checkpoint, inputs: Inputs) -> Iterator[int]:
        """Learn again what leads to this checkpoint, then take on its settings. Yields records as they are learnt."""
        stretch = _between(lines, self.seq, checkpoint.position.seq)
        for chunk, _ in learn_again(stretch, self.config, self.models, inputs, self.offsets):
            yield len(chunk)
        self.seq = checkpoint.position.seq
        ours = (line for line in stretch if line.lineage == checkpoint.position.lineage)
        self.offsets.update(stands(ours))  # a rollback begins where the group stands
        if not same(checkpoint.settings, self.settings):
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


def _gone(records: int) -> str:
    return f"{records:,} records that led to it are gone" if records else ""


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
