"""A learner, its state and its tally: examples in, rows out, each predicted before it is learnt."""

from __future__ import annotations

import copy
import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from olstream import waiting_state
from olstream.admit import Admission, Admitted, Bools, form_of
from olstream.alarms import Alarms
from olstream.classes import Classes
from olstream.confidence import decide_binary, decide_multiclass
from olstream.config import FeaturesConfig, LearnerConfig, MonitorConfig
from olstream.digest import IDENTITY, digest_of
from olstream.errors import ConfigError, StateError
from olstream.evaluate import SEEN, UPDATES, Tally
from olstream.knowledge import Knowledge
from olstream.late import as_predicted, made_of
from olstream.learners import _cache, base
from olstream.learners._state import BIAS, UNSEEN, LinearState
from olstream.messages import Example, Label, Reject, SparseRow
from olstream.rows import Counts, Rows, counted
from olstream.scale import Scaler
from olstream.vectorize import Batch, vectorize
from olstream.versus import Versus
from olstream.vocabulary import Vocabulary
from olstream.waiting import Row, Waiting
from olstream.watched import watched
from olstream.weights import vectors
from olstream.words import Words

__all__ = ["Counts", "Model", "Rows", "digest_of"]

log = logging.getLogger(__name__)

Meta: TypeAlias = dict[str, Any]
Named: TypeAlias = dict[str, NDArray[Any]]

BUCKETS_PART: Final = 16  # of the features of a full covariance: so many buckets for the rest
ANSWERED_EVERY: Final = 32  # rows: what follows from drift is done between two of these, as ADWIN's cuts are
NO_ROWS: Final[Mapping[int, Row]] = {}
EXACT: Final = 2**53  # integers below it are doubles
AT_ONCE: Final = 500  # rows of many: what the first of them bring makes the others fast


class Model(Knowledge):
    """One learner of the configuration."""

    def __init__(self, name: str, config: LearnerConfig, monitor: MonitorConfig) -> None:
        self.name = name
        self.config = config
        self.task: base.Task = config.task
        self.algorithm = base.algorithm(config.algorithm)
        self.params = self.algorithm.check(self.task, config.params, config.classes)
        self._learning = self.algorithm.learning(self.task, self.params, config.multiclass)
        self._state = LinearState(self._learning.anatomy)
        features = config.features
        self.vocabulary = Vocabulary(
            *self._bounds(features),
            frozenset(features.category),
            config.bias,
            {path: Words(**rule.model_dump()) for path, rule in features.text.items()},
        )
        self.scaler = Scaler(self.vocabulary.n_columns) if config.scale == "standard" else None
        classify = self.task != "regression"
        self.classes = Classes(self.task, config.classes, config.classes_max) if classify else None
        self._admission = Admission(self.classes, config.class_weights)
        self.tally = Tally(classify, monitor.window, monitor.fading, len(config.classes or ()))
        self.alarms = Alarms(watched(monitor, self.task))
        self.waiting = Waiting()
        self.versus: dict[str, Versus] = {}  # by the champion that it is a shadow of
        self._monitor = monitor
        self._on_drift = config.on_drift or monitor.on_drift
        self.vectorize = vectorize  # an attribute, so that its time can be taken

    def _bounds(self, features: FeaturesConfig) -> tuple[int, int]:
        """Names kept exactly, and buckets for those past them. A matrix of all pairs has room for fewer."""
        most = self._learning.features_max
        if most is None:
            return features.names_max, features.overflow_buckets
        return min(features.names_max, most), min(features.overflow_buckets, max(1, most // BUCKETS_PART))

    def predict_then_update(
        self,
        examples: Sequence[Example],
        barred: Bools | None = None,
        late: Mapping[int, Row] = NO_ROWS,
        waits: Mapping[int, Row] = NO_ROWS,
    ) -> Rows:
        """Score each row, measure it against its label, learn from it: in this order, row by row.

        `barred` rows are scored only: not all their numbers were finite. `late` rows, by position, were predicted
        before and are no new ones: what was predicted then is measured. What is predicted of those in `waits` is kept.
        """
        rows = self._run(examples, self.config.learn, barred, late, waits)
        self.tally.counts[SEEN] += rows.counts.seen
        self.tally.counts[UPDATES] += rows.counts.updated
        self.waiting.joined += rows.counts.late
        rows.answer = self._answer_drift()
        return rows

    @property
    def room(self) -> int:
        """How many rows may come at once. Drift is answered at the same rows however a stream is cut into batches."""
        return ANSWERED_EVERY - self._taken % ANSWERED_EVERY if self._acts else sys.maxsize

    @property
    def _taken(self) -> int:
        """Rows so far, late ones included."""
        return self.tally.seen + self.waiting.joined

    @property
    def _acts(self) -> bool:
        return self._on_drift.action != "none" and self.config.learn

    def _answer_drift(self) -> str | None:
        alarms = self.alarms
        alarms.unanswered &= self._acts
        if not alarms.unanswered or self._taken % ANSWERED_EVERY:
            return None
        alarms.answered()
        if self._on_drift.action == "reset":
            self._state.reset()
            return "reset"
        self._state.widen(self._n_vectors, self.vocabulary.n_columns, self._on_drift.widen)
        return "widened"

    def predict(self, examples: Sequence[Example]) -> Rows:
        """Score the rows; nothing of the model changes."""
        unlabelled = [Example(features=example.features) for example in examples]
        return self._run(unlabelled, False, None)

    def warm_up(self) -> None:
        """Compile every kernel that rows will need, on rows of a model that is thrown away."""
        if _cache.directory() is None:
            log.warning("no directory to keep compiled kernels in: each start compiles them, which takes some seconds")
        other = Model(self.name, self.config.model_copy(update={"classes": None}), self._monitor)
        labels: tuple[Label, ...] = (0.0, 1.0) if self.classes is None else ("a", "b")
        other.predict_then_update([Example(features={"x": 1.0}, label=label) for label in labels])
        other.alarms.warm_up()
        Versus.warm_up()
        row = Row("", b"", 1.0, None, None, self.name, "", 0, 0)
        late = [Example(features={"x": 1.0}), Example(features={"x": 1.0}, label=labels[0])]
        other.predict_then_update(late, waits={0: row}, late={1: row})
        other.digest()

    def refusals(self, examples: Sequence[Example], barred: Bools | None = None) -> dict[int, Reject]:
        """What `predict_then_update` would refuse of these rows; nothing changes."""
        door = Admission(copy.deepcopy(self.classes), self.config.class_weights)
        form, rejects = self.vocabulary.form, dict[int, Reject]()
        for start in range(0, len(examples), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            admitted = door.admit(examples[some], form, self.config.learn, None if barred is None else barred[some])
            form = admitted.form
            rejects |= {start + i: reject for i, reject in admitted.rejects.items()}
        return rejects

    def is_sure_of(self, example: Example) -> bool:
        """Whether this row will not be refused, whatever rows come before it. False: nobody knows yet."""
        if self.vocabulary.form is None or form_of(example.features) != self.vocabulary.form:
            return False
        return example.label is None or self.knows_label(example.label)

    def knows_label(self, label: Label) -> bool:
        """Whether it is a number in regression, a class that is known already in classification."""
        if self.classes is None:
            return type(label) is float or (type(label) is int and abs(label) < EXACT)
        index = self.classes.find(label)
        return isinstance(index, int) and self.classes.is_known(index)

    def refusal_of_label(self, label: Label) -> Reject | None:
        """Why it would refuse a row with this label next, if it would."""
        return self._admission.refusal(label)

    def _run(
        self,
        examples: Sequence[Example],
        learns: bool,
        barred: Bools | None,
        late: Mapping[int, Row] = NO_ROWS,
        waits: Mapping[int, Row] = NO_ROWS,
    ) -> Rows:
        vocabulary = self.vocabulary
        admitted = self._admission.admit(examples, vocabulary.form, learns, barred)
        vocabulary.form = admitted.form
        n = len(admitted.positions)
        names_before, overflowed_before = vocabulary.n_columns, vocabulary.overflowed
        stopped = np.zeros(n, np.bool_) if barred is None else barred[admitted.positions]
        measured = ~np.isnan(admitted.target) & (admitted.weight > 0.0) & ~stopped
        learnt = measured if learns else np.zeros(n, np.bool_)
        batch = self.vectorize(vocabulary, self._scalable(admitted.features), learnt)
        columns = self._columns(admitted, learnt)
        if self.scaler is not None:
            unstable = self.scaler.standardise(batch, learnt, vocabulary.n_columns)
            columns.codes[base.BARRED] = np.where(unstable, base.OVERFLOW, 0)
        self._arrays()
        self._learning.run(self._state, base.Entries(batch.indptr, batch.indices, batch.values), columns)
        rows = self._rows(admitted, batch, columns, measured)
        rows.skip[stopped] = base.NON_FINITE
        if waits:
            for row, made in zip(waits.values(), made_of(rows, list(waits), self._learning.anatomy.prior), strict=True):
                row.made = made
        if late:
            as_predicted(rows, late, self._learning)
        self._measure(rows, admitted)
        novel = vocabulary.n_columns - names_before + int(np.count_nonzero(batch.indices == UNSEEN))
        rows.counts = counted(rows, learnt, novel, vocabulary.overflowed - overflowed_before, late)
        if admitted.rejects:
            rows.spread_out(np.array(admitted.positions, np.int64), len(examples))
        return rows

    def _scalable(self, features: list[Any]) -> list[Any]:
        """A 0 that is not there has a mean and a deviation all the same."""
        if self.scaler is None or SparseRow not in set(map(type, features)):
            return features
        return [row.dense() if isinstance(row, SparseRow) else row for row in features]

    def _columns(self, admitted: Admitted, learnt: Bools) -> base.Columns:
        classes = self._n_vectors if self.task == "multiclass" else None
        columns = base.Columns(len(admitted.positions), classes, self._has_variance)
        columns.numbers[base.TARGET] = admitted.target
        columns.numbers[base.WEIGHT] = np.where(learnt, admitted.weight, 0.0)
        columns.codes[base.KNOWN] = admitted.known
        return columns

    def _rows(self, admitted: Admitted, batch: Batch, columns: base.Columns, measured: Bools) -> Rows:
        out, codes = columns.numbers, columns.codes
        n = out.shape[1]
        predicted, correct = np.full(n, -1, np.int64), np.full(n, -1, np.int8)
        probability = np.full(n, np.nan)
        if self.task == "binary":
            threshold = float(self.config.threshold)
            decide_binary(out[base.SCORE], out[base.VARIANCE], admitted.known, threshold, predicted, probability)
        elif self.task == "multiclass":
            predicted = codes[base.WINNER]
            decide_multiclass(columns.scores, columns.spreads, admitted.known, predicted, probability)
        if self.classes is not None:
            right = (predicted == admitted.truth) & (predicted >= 0)
            correct = np.where(np.isnan(admitted.target), -1, right).astype(np.int8)
        return Rows(
            task=self.task, n=n, rejects=admitted.rejects,
            classes=() if self.classes is None else self.classes.forms,
            texts=() if self.classes is None else self.classes.texts,
            counts=Counts(), score=out[base.SCORE], margin=out[base.MARGIN], loss=out[base.LOSS],
            variance=out[base.VARIANCE], step=out[base.STEP], score_after=out[base.SCORE_AFTER],
            margin_after=out[base.MARGIN_AFTER], loss_after=out[base.LOSS_AFTER], probability=probability,
            predicted=predicted, truth=admitted.truth, known=admitted.known,
            updates=self.tally.updates + np.cumsum(codes[base.UPDATED]),
            entries=np.diff(batch.indptr) - int(self.vocabulary.bias), correct=correct,
            measured=measured.astype(np.uint8), updated=codes[base.UPDATED].astype(np.uint8),
            skip=codes[base.SKIP].astype(np.uint8), scores=columns.scores, spreads=columns.spreads,
            target=admitted.target, weight=admitted.weight, batch=batch,
        )  # fmt: skip

    def against(self, champion: str) -> Versus:
        """How this learner, as its shadow, compares with a champion."""
        if champion not in self.versus:
            self.versus[champion] = Versus(self.classes is not None, self._monitor.fading)
        return self.versus[champion]

    def keep_versus(self, champions: Iterable[str]) -> None:
        """Forget the comparisons with all others."""
        kept = set(champions)
        self.versus = {name: versus for name, versus in self.versus.items() if name in kept}

    def _measure(self, rows: Rows, admitted: Admitted) -> None:
        if rows.measured.any():
            absolute = np.zeros(0) if self.classes is not None else rows.distance
            classes = 0 if self.classes is None else len(self.classes.forms)
            rows.alarms = self.alarms.add(rows.measured, rows.correct, rows.loss, self.tally.labelled)
            if self.classes is not None:
                self.tally.margins.add(rows.measured, rows.margin, rows.margin_after)
            self.tally.add(rows.measured, rows.truth, rows.predicted, rows.loss, absolute, rows.updates, classes)

    def start_from(self, given: object) -> None:
        """Begin from weights by exported name, as `weights` tells. Before the first row."""
        for label, weights, bias in vectors(given, self.task == "multiclass"):
            if bias and not self.config.bias:
                raise ConfigError("there is a weight of the bias, and this learner has none (`bias: false`)")
            row, columns = self._row_of(label), self._columns_of(weights)
            arrays = self._arrays()
            arrays.weights[row, columns] = list(weights.values())
            arrays.weights[row, BIAS] = bias

    def _row_of(self, label: Any) -> int:
        if self.task != "multiclass":
            return 0
        assert self.classes is not None
        if isinstance(found := self.classes.find(label), Reject):
            raise ConfigError(f"weights of class {label!r}: {found.detail}")
        return self.classes.learn(label)

    def _columns_of(self, names: Iterable[Any]) -> list[int]:
        columns: dict[int, None] = {}
        for name in names:
            try:
                column = self.vocabulary.column_of(name)
            except ValueError as error:
                raise ConfigError(f"the weight of {name!r} cannot be taken: {error}") from None
            if column in columns:
                raise ConfigError(f"the weight of {name!r} is given twice")
            columns[column] = None
        return list(columns)

    # State

    def state(self) -> tuple[Meta, Named]:
        """A consistent copy of everything."""
        vocabulary, vocabulary_arrays = self.vocabulary.state()
        meta: Meta = {
            "algorithm": self.config.algorithm,
            "task": self.task,
            "params": dict(self.params),
            "bias": self.config.bias,
            "scale": self.config.scale,
            "multiclass": self.algorithm.reduction(self.task, self.config.multiclass),
            "classes": None if self.classes is None else self.classes.state(),
            "vocabulary": vocabulary,
            "drift": self.alarms.params(),
            "waiting": waiting_state.meta_of(self.waiting),
        }
        arrays: Named = dict(self._state.arrays(self._n_vectors, self.vocabulary.n_columns))
        arrays |= {f"vocabulary.{key}": array for key, array in vocabulary_arrays.items()}
        if self.scaler is not None:
            arrays |= {f"scaler.{key}": array for key, array in self.scaler.state(self.vocabulary.n_columns).items()}
        arrays |= {f"tally.{key}": array for key, array in self.tally.state().items()}
        arrays |= {f"versus.{name}": versus.state()["sums"] for name, versus in self.versus.items()}
        return meta, arrays | self.alarms.state() | waiting_state.arrays_of(self.waiting)

    @classmethod
    def restore(
        cls, name: str, config: LearnerConfig, monitor: MonitorConfig, meta: Meta, arrays: Mapping[str, NDArray[Any]]
    ) -> Model:
        """What `state` gave, made anew; StateError where it is of another learner, or was never given by any."""
        model = cls(name, config, monitor)
        mine = model.state()[0]
        for key in IDENTITY:
            if mine[key] != meta.get(key):
                raise StateError(f"learner {name}: the saved state has {key} {meta.get(key)!r}, not {mine[key]!r}")
        try:
            model._take(meta, arrays)
        except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as error:
            raise StateError(
                f"learner {name}: the saved state does not hold together ({type(error).__name__}: {error}): move that "
                "checkpoint away to go on from the one before it"
            ) from error
        return model

    def _take(self, meta: Meta, arrays: Mapping[str, NDArray[Any]]) -> None:
        if self.classes is not None:
            self.classes.restore(meta["classes"])
        fresh, self.vocabulary = self.vocabulary, Vocabulary.restore(meta["vocabulary"], _under("vocabulary.", arrays))
        self.vocabulary.refuse_other(fresh)
        columns = self.vocabulary.n_columns
        self._state.take(arrays, self._n_vectors, columns)
        if self.scaler is not None:
            self.scaler = Scaler.restore(_under("scaler.", arrays), columns)
        self.tally.restore(_under("tally.", arrays), 0 if self.classes is None else len(self.classes.forms))
        if "drift" in meta:  # else there were no detectors yet
            self.alarms.restore(meta["drift"], arrays)
        for name, sums in _under("versus.", arrays).items():
            self.against(name).restore({"sums": sums})
        if "waiting" in meta:  # else late labels were not joined yet
            waiting_state.restore(self.waiting, meta["waiting"], arrays, len(self.classes.forms) if self.classes else 0)

    def digest(self) -> str:
        return digest_of(*self.state())


def _under(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Named:
    return {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
