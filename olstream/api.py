"""The library: a learner without Kafka, for notebooks and tests.

    from olstream import Learner

    m = Learner("arow", task="binary", params={"r": 1.0})
    report = m.learn({"x": 1.0, "y": -0.5}, 1)      predict, then update, and say what happened
    m.predict({"x": 1.0}).label                     never changes state

It is the same Model that the service runs: the same rows give the same weights to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import ValidationError

from olstream import given, mistakes
from olstream.config import LearnerConfig, MonitorConfig
from olstream.configfile import File
from olstream.errors import ConfigError, StateError
from olstream.learners import base
from olstream.messages import Example, Label, Reject, SparseRow, label_text
from olstream.model import AT_ONCE, Model, Rows
from olstream.settings import learner_of

NAME = "learner"  # of the one learner in a saved folder
_NUMBERS_MAX = 1 << 20  # of rows that were sparse, made dense at once


@dataclass(frozen=True, slots=True)
class Report:
    """What one row did. None: this learner or this row has no such number."""

    score: float
    margin: float | None
    loss: float | None
    variance: float | None
    step: float
    updated: bool
    skip_reason: str | None
    score_after: float
    margin_after: float | None
    loss_after: float | None


@dataclass(frozen=True, slots=True)
class Prediction:
    """`label` is the class in the form in which it was first seen, in regression the value."""

    label: Label | None
    score: float
    scores: Mapping[Any, float] | None
    probability: float | None


class ByClass(dict[Any, Any]):
    """Keyed by class text; any spelling of the class finds it: 1, 1.0 and "1"."""

    def __missing__(self, label: object) -> Any:
        if isinstance(label, str) or label not in self:
            raise KeyError(label)
        return self[label_text(label)]

    def __contains__(self, label: object) -> bool:
        return super().__contains__(label if isinstance(label, str) else label_text(label))

    def get(self, label: object, default: Any = None) -> Any:
        return super().get(label if isinstance(label, str) else label_text(label), default)


class Learner:
    """One learner. Its keys are those of a learner in the configuration.

    Features are a mapping {name: number, boolean or text}, or an array of numbers named by position: a sequence,
    a NumPy row, or a SciPy row with its zeros left out, which means the same as the array that it stands for.
    (With more columns than `features.names_max`, names are kept in the order in which SciPy rows bring them.)
    Numbers that are not finite are no error: such a row is scored without them and not learnt.

    ConfigError, which is a ValueError, tells of a setting that cannot be; ValueError, with the reason class of
    a message, of a row that cannot be taken; StateError of a folder that cannot be loaded. All but ValueError
    are OlstreamErrors: `from olstream import ConfigError, StateError, OlstreamError`.
    """

    def __init__(
        self,
        algorithm: str,
        task: Literal["binary", "multiclass", "regression"] = "binary",
        params: Mapping[str, Any] | None = None,
        *,
        weights: Mapping[Any, Any] | None = None,
        **settings: Any,
    ) -> None:
        """`weights` to start from: as `weights()` gives them, or {"weights": those, "bias": as `bias()` gives it}.

        `settings`: classes, class_weights, threshold, bias, scale, multiclass, features, classes_max, learn.
        """
        if not isinstance(params, Mapping | None):
            raise ConfigError(f"Learner: params: must be a mapping, such as {{'C': 1.0}}, not {params!r}")
        if settings.get("start_from") is not None:
            raise ConfigError("Learner: start_from is for a service: take `weights`, or Learner.load of a saved folder")
        plain = given.settings({"params": params or {}, **settings})
        config = _config(algorithm=algorithm, task=task, **plain)
        self._model = Model(NAME, config, MonitorConfig())
        if weights is not None:
            self._model.start_from(weights)

    def learn(self, features: Any, label: Any = None, weight: float = 1.0) -> Report:
        """Predict, then update. ValueError names the reason class where the row cannot be taken."""
        example, finite = given.example(features, label, weight, self._model.task == "regression")
        rows = self._model.predict_then_update([example], barred=np.array([not finite]))
        _raise(rows.rejects)
        return _report(rows, 0, self._model.task)

    def learn_many(self, rows: Any, labels: Iterable[Any], weights: Iterable[float] | None = None) -> list[Report]:
        """Rows in order, in one call; all of them or, where one cannot be taken, none."""
        examples, finite = given.examples(rows, labels, weights, self._model.task == "regression")
        barred = ~np.array(finite, np.bool_)
        _raise(self._model.refusals(examples, barred))
        reports: list[Report] = []
        for start, end in pairwise([*range(0, len(examples), self._rows_at_once(examples)), len(examples)]):
            done = self._model.predict_then_update(examples[start:end], barred=barred[start:end])
            reports += [_report(done, i, self._model.task) for i in range(done.n)]
        return reports

    def _rows_at_once(self, examples: Sequence[Example]) -> int:
        """Names and classes that the first rows bring make the rest fast; fewer where `scale` fills sparse rows up."""
        sparse = [example.features for example in examples if isinstance(example.features, SparseRow)]
        return max(1, _NUMBERS_MAX // sparse[0].size) if sparse and self._model.scaler else AT_ONCE

    def predict(self, features: Any) -> Prediction:
        """What the learner says of these features; nothing changes."""
        example, _ = given.example(features, None, 1.0)
        rows = self._model.predict([example])
        _raise(rows.rejects)
        score = float(rows.score[0])
        if self._model.task == "regression":
            return Prediction(score, score, None, None)
        index = int(rows.predicted[0])
        label = rows.classes[index] if index >= 0 else None
        return Prediction(label, score, ByClass(rows.scores_of(0) or {}), _number(rows.probability[0]))

    def weights(self) -> Any:
        """{feature: weight}; multiclass {class: {feature: weight}}. Categories are `name=value`."""
        return self._by_class(self._model.weights())

    def bias(self) -> Any:
        """The weight of the constant feature, 0 without `bias`; multiclass {class: weight}."""
        return self._by_class(self._model.bias())

    def variances(self) -> Any:
        """As `weights`; None for first-order learners."""
        return self._by_class(self._model.variances())

    def bias_variance(self) -> Any:
        """As `bias`; None for first-order learners, and without `bias`."""
        return self._by_class(self._model.bias_variance())

    def covariance(self) -> Any:
        """(features, matrix (d, d)) of a full covariance, by class where each has its own; None where there is none."""
        found = self._model.covariance()
        if found is None:
            return None
        return found[None] if None in found else ByClass(found)

    @property
    def classes(self) -> list[Label]:
        """In order; each in the form in which it was first seen."""
        known = [] if self._model.classes is None else self._model.classes.forms
        return [label for label in known if label is not None]

    def digest(self) -> str:
        """Equal histories give equal digests, here and in the service."""
        return self._model.digest()

    def save(self, path: str | PathLike[str]) -> None:
        """Write a folder in the checkpoint's own format: safetensors and JSON, checksums in the manifest."""
        from olstream.checkpoint import Checkpoint, Position
        from olstream.io.disk import write_folder

        settings = {"learner": self._model.config.model_dump(mode="json"), "monitor": MonitorConfig().model_dump()}
        states = {NAME: self._model.state()}
        write_folder(Path(path), Checkpoint(states, {NAME: self._model.digest}, Position(""), settings))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Learner:
        """Go on from a saved folder, to the same bit."""
        from olstream.checkpoint import Damaged, from_folder

        try:
            saved = from_folder(Path(path))
        except Damaged as error:
            raise StateError(f"{path} is no learner that can be loaded: {error}") from error
        if NAME not in saved.states or "learner" not in saved.settings:
            raise StateError(f"{path} is the state of a service: `olstream inspect` shows what it holds")
        learner = cls.__new__(cls)
        meta, arrays = saved.states[NAME]
        config = learner_of(saved.settings, NAME)
        learner._model = Model.restore(NAME, config, MonitorConfig(), dict(meta), arrays)
        return learner

    def _by_class(self, exported: Any) -> Any:
        return ByClass(exported) if self._model.task == "multiclass" and exported is not None else exported


def _config(**keys: Any) -> LearnerConfig:
    try:
        return LearnerConfig(**keys)
    except ValidationError as error:
        raise mistakes.config_error(error, LearnerConfig, File("Learner")) from None


def _raise(rejects: Mapping[int, Reject]) -> None:
    for i, reject in sorted(rejects.items()):
        raise ValueError(f"{reject.reason}: {reject.detail} (row {i})")


def _report(rows: Rows, i: int, task: str) -> Report:
    return Report(
        score=float(rows.score[i]),
        margin=_number(rows.margin[i]),
        loss=_number(rows.loss[i]),
        variance=_number(rows.variance[i]),
        step=float(rows.step[i]),
        updated=bool(rows.updated[i]),
        skip_reason=base.SKIP_REASONS[int(rows.skip[i])],
        score_after=float(rows.score_after[i]),
        margin_after=_number(rows.margin_after[i]),
        loss_after=_number(rows.loss_after[i]),
    )


def _number(value: np.float64) -> float | None:
    return None if np.isnan(value) else float(value)
