"""Every setting of olstream: one frozen tree, its defaults, and what each key means.

`load` reads the file and refuses what it does not understand, naming the key and the nearest known one.
A learner's own hyperparameters stand in its file under `learners/`. Durations are text in the file and
seconds here (`*_s`); sizes are bytes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from olstream import configfile, mistakes, properties
from olstream.errors import ConfigError
from olstream.messages import label_text
from olstream.mistakes import wrong
from olstream.section import Section
from olstream.values import (
    CLASS_TWICE,
    ClassLabel,
    Detectors,
    DottedPath,
    Duration,
    Factors,
    FeaturesPath,
    Group,
    LabelOrMore,
    LearnerName,
    Lengths,
    Real,
    Size,
    Topic,
    Whole,
)


class FieldsConfig(Section):
    """Where each thing is in your message: dotted paths."""

    id: DottedPath = "id"
    features: FeaturesPath = "features"
    """`.` = the whole message less the mapped fields and `exclude`; then weight, ts, learner only where mapped."""
    label: DottedPath = "label"
    learner: DottedPath = "learner"
    weight: DottedPath = "weight"
    ts: DottedPath = "ts"


class InputConfig(Section):
    topics: list[Topic] = []
    """One or more; a topic may carry features, labels or both."""
    fields: FieldsConfig = FieldsConfig()
    exclude: list[DottedPath] = []
    """Dotted paths that are never features."""
    max_message_bytes: Annotated[Size, Field(ge=1, lt=2**31)] = 1048576
    batch_max: Annotated[Whole, Field(ge=1, le=1_000_000)] = 500
    """The most records one turn of the loop takes; changes no result."""
    start: Literal["earliest", "latest"] = "earliest"
    """Where to begin, only where the group has no committed offset."""
    on_gap: Literal["fail", "skip"] = "fail"
    """What to do when retention took records that were not read yet."""

    @field_validator("topics")
    @classmethod
    def _each_topic_once(cls, topics: list[str]) -> list[str]:
        if len(set(topics)) != len(topics):
            raise wrong("names a topic twice")
        return topics


class OutputConfig(Section):
    predictions: Topic = "predictions"
    dead_letters: Topic = "dead-letters"
    journal: Topic | None = None
    """The topic of what was learnt in which order; null = <group>-journal."""
    outcomes: Topic | None = None
    """The topic for late labels joined to their prediction; null = not published."""
    shadows: Topic | None = None
    """The topic for shadows' predictions; null = not published."""
    scores: bool = False
    """Also publish scores and probabilities of every class."""
    copy_headers: list[str] = ["traceparent", "tracestate"]


class TextConfig(Section):
    """How free text becomes words: lower case, letters, digits and _ of any script; or n-grams of characters."""

    tokens: Literal["words", "chars"] = "words"
    n: Lengths = [1, 1]
    """Lengths of the n-grams, [from, to], or one number."""
    value: Literal["presence", "count"] = "presence"
    """1 for each word that occurs, or how often it does."""
    norm: Literal["l2", "none"] = "l2"
    """l2: the values of one text divided by their 2-norm."""

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, data: object) -> object:
        return {"tokens": data} if isinstance(data, str) else data


class FeaturesConfig(Section):
    names_max: Annotated[Whole, Field(ge=0, lt=2**31)] = 262144
    """Named features kept exactly; past that they are hashed into `overflow_buckets`."""
    overflow_buckets: Annotated[Whole, Field(ge=1, lt=2**31)] = 65536
    category: list[str] = []
    """Paths whose numbers are codes: taken as categories."""
    text: dict[str, TextConfig] = {}
    """Paths whose texts are told into words instead of being one category each: `words`, or how."""


class OnDriftConfig(Section):
    """none, widen (variances toward the prior), or reset."""

    action: Literal["none", "widen", "reset"] = "none"
    widen: Annotated[Real, Field(gt=0, le=1)] = 0.5

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, data: object) -> object:
        if isinstance(data, dict) and data.keys() == {"widen"}:
            return {"action": "widen", **data}
        return {"action": data} if isinstance(data, str) else data

    @model_serializer
    def _short_form_again(self) -> str | dict[str, float]:
        return {"widen": self.widen} if self.action == "widen" else self.action


class LearnerConfig(Section):
    algorithm: str = "arow"
    """See `olstream learners`."""
    task: Literal["binary", "multiclass", "regression"] = "binary"
    params: dict[str, Any] = {}
    """Hyperparameters under the paper's letters."""
    classes: list[ClassLabel] | None = None
    """[negative, positive] or the list of classes; null = learnt from the stream."""
    classes_max: Annotated[Whole, Field(ge=2, lt=2**31)] = 1000
    """More distinct labels than that are `unknown_label`."""
    multiclass: Literal["direct", "one_vs_rest", "one_vs_one"] = "direct"
    class_weights: Factors = {}
    """A factor on the importance weight, by class."""
    threshold: Real = 0.0
    """Binary: predict the positive class where the score is at or above it."""
    bias: bool = True
    """A constant feature 1 with a weight of its own."""
    scale: Literal["none", "standard"] = "none"
    learn: bool = True
    """false: predict only, a frozen model."""
    on_drift: OnDriftConfig | None = None
    """What follows from drift for this learner; null = `monitor.on_drift`."""
    start_from: str | None = None
    """Where it begins, and nowhere else: weights, FILE.json, or the whole state of another learner, STATE_DIR#name."""
    features: FeaturesConfig = FeaturesConfig()

    @model_validator(mode="after")
    def _the_algorithm_takes_the_params(self) -> Self:
        from olstream.learners import base  # here, because it loads the compiler, and most uses of a Config do without

        try:
            algorithm = base.algorithm(self.algorithm)
            algorithm.learning(self.task, algorithm.check(self.task, self.params, self.classes), self.multiclass)
        except ConfigError as error:
            raise wrong(str(error), mistakes.JOINED) from None
        return self

    @model_validator(mode="after")
    def _classes_fit_the_task(self) -> Self:
        if self.task == "regression" and (self.classes is not None or self.class_weights):
            raise wrong("a regression has no classes", "class_weights" if self.classes is None else "classes")
        if self.task != "binary" and self.threshold != 0.0:
            raise wrong(f"is for a binary task, and this one is {self.task}", "threshold")
        if self.classes is None:
            return self
        texts = [label_text(label) for label in self.classes]
        if self.task == "binary" and len(texts) != 2:
            raise wrong(f"a binary task has two, [negative, positive], not {len(texts)}", "classes")
        if len(texts) < 2 or len(texts) > self.classes_max:
            raise wrong(f"must be 2 to classes_max ({self.classes_max}) classes, not {len(texts)}", "classes")
        if len(set(texts)) != len(texts):
            raise wrong(CLASS_TWICE, "classes")
        if strange := sorted(self.class_weights.keys() - set(texts)):
            raise wrong(f"{strange[0]!r} is none of the classes {', '.join(texts)}", "class_weights")
        return self


class RouteConfig(Section):
    when: dict[str, LabelOrMore] = {}
    """Any of topic, learner, field.<path>, header.<name>, each an exact value or a list; {} takes every record."""
    learner: str | None = None
    """null = the message's learner, else the first."""
    shadows: list[str] = []
    """They also learn and are measured on the same records."""

    @model_validator(mode="after")
    def _conditions_are_known(self) -> Self:
        for key, values in self.when.items():
            if key not in ("topic", "learner") and not re.fullmatch(r"(field|header)\..+", key):
                raise wrong("is no condition: use topic, learner, field.<path> or header.<name>", "when", key)
            if not values:
                raise wrong("must have at least one value", "when", key)
            if not key.startswith("field.") and not all(isinstance(value, str) for value in values):
                raise wrong("must be text; put it in quotes", "when", key)
        return self


class JoinConfig(Section):
    """Late labels: bounds of what waits, for each learner, in the time of the records; and what may join."""

    ttl_s: Annotated[Duration, Field(gt=0)] = 3600.0
    pending_max: Annotated[Whole, Field(ge=1, lt=2**62)] = 100_000
    pending_bytes_max: Annotated[Size, Field(ge=1, lt=2**62)] = 256 * 1024**2
    allow_partition_mismatch: bool = False
    """Input topics may have different counts of partitions: some keys never meet then."""


class CheckpointConfig(Section):
    path: Annotated[Path, BeforeValidator(lambda v: Path(v) if isinstance(v, str) and v else v)] = Path("./state")
    """A directory; one slot owns one sub-directory, by a lock."""
    interval_s: Annotated[Duration, Field(gt=0)] = 30.0
    keep: Annotated[Whole, Field(ge=1, lt=2**31)] = 3
    on_missing: Literal["fail", "fresh", "replay"] = "fail"
    """This slot has learnt before, and no usable checkpoint is here."""


class HindsightConfig(Section):
    """The best fixed linear model of the last `window` rows, for regret."""

    window: Annotated[Whole, Field(ge=1, lt=2**31)] = 5000
    every: Annotated[Whole, Field(ge=1, lt=2**62)] = 1000
    C: Annotated[Real, Field(gt=0)] = 1.0


class MonitorConfig(Section):
    window: Annotated[Whole, Field(ge=1, lt=2**31)] = 1000
    """Rows in the sliding window."""
    fading: Annotated[Real, Field(gt=0, le=1)] = 0.999
    """Forgetting factor of the faded averages."""
    drift: Detectors = {"adwin": {}}
    """Detectors, and their parameters; `signal: loss` for the loss of a classifier in place of its errors."""
    on_drift: OnDriftConfig = OnDriftConfig()
    hindsight: HindsightConfig | None = None

    ERRORS_ONLY: ClassVar = ("ddm", "eddm")

    @model_validator(mode="after")
    def _the_detectors_take_the_params(self) -> Self:
        from olstream.drift import check  # here, because it loads the compiler

        for name, given in self.drift.items():
            signal = given.get("signal", "error")
            if signal not in ("error", "loss") or (signal == "loss" and name in self.ERRORS_ONLY):
                known = "error" if name in self.ERRORS_ONLY else "error or loss"
                raise wrong(f"must be {known}, not {signal!r}", "drift", name, "signal")
            try:
                check(name, {key: value for key, value in given.items() if key != "signal"})
            except ConfigError as error:
                raise wrong(str(error), "drift", name) from None
        return self


class HttpConfig(Section):
    """/metrics /live /ready /status.json and the status page."""

    host: str = "127.0.0.1"
    port: Annotated[Whole, Field(ge=0, le=65535)] = 9108
    token: str | None = None


class LogConfig(Section):
    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["text", "json"] = "text"


class Config(Section):
    """The configuration of one olstream service."""

    kafka: dict[str, properties.Value] = {}
    """librdkafka's own property names, passed to every client."""
    consumer: dict[str, properties.Value] = {}
    """More librdkafka properties, for the consumer only."""
    producer: dict[str, properties.Value] = {}
    """More librdkafka properties, for the producer only."""
    kafka_wait_s: Annotated[Duration, Field(ge=0)] = 300.0
    """How long `run` waits for a broker or a missing topic before it gives up."""
    group: Group = "olstream"
    """The consumer group; also part of a directory and of topic names."""
    slot: Annotated[Whole, Field(ge=0, lt=2**31)] = 0
    """The stable number of this worker."""
    guarantee: Literal["exactly_once", "at_least_once"] = "exactly_once"
    input: InputConfig = InputConfig()
    output: OutputConfig = OutputConfig()
    commit_interval_s: Annotated[Duration, Field(gt=0)] = 0.2
    learners: Annotated[dict[LearnerName, LearnerConfig], Field(min_length=1)]
    """By name; the first one is the default."""
    routes: list[RouteConfig] = []
    """The first match wins; without routes: the message's learner, else the first learner."""
    join: JoinConfig = JoinConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()
    monitor: MonitorConfig = MonitorConfig()
    http: HttpConfig = HttpConfig()
    log: LogConfig = LogConfig()

    @property
    def journal_topic(self) -> str:
        return self.output.journal or f"{self.group}-journal"

    def needs_kafka(self) -> None:
        """The two keys without a default that every command with Kafka needs."""
        if not self.input.topics:
            raise ConfigError("input.topics is missing: name the topics to read, such as [events]")
        if "bootstrap.servers" not in {properties.canonical(name) for name in self.kafka}:
            raise ConfigError("kafka: bootstrap.servers is missing: name a broker, such as localhost:9092")

    @model_validator(mode="after")
    def _routes_lead_to_learners(self) -> Self:
        for i, route in enumerate(self.routes):
            self._check_route(i, route)
        return self

    def _check_route(self, i: int, route: RouteConfig) -> None:
        champion = route.learner or next(iter(self.learners))
        named = [("learner", route.learner)] if route.learner is not None else []
        for key, name in named + [("shadows", shadow) for shadow in route.shadows]:
            if name not in self.learners:
                raise wrong(
                    f"{name!r} is no configured learner{mistakes.nearest(name, self.learners)}", "routes", i, key
                )
        if route.learner in route.shadows or len(set(route.shadows)) != len(route.shadows):
            raise wrong("a learner is its own shadow, or stands here twice", "routes", i, "shadows")
        for shadow in route.shadows:
            if (self.learners[shadow].task == "regression") != (self.learners[champion].task == "regression"):
                raise wrong(f"{shadow!r} and {champion!r} do not take the same labels", "routes", i, "shadows")

    @model_validator(mode="after")
    def _topics_do_not_feed_themselves(self) -> Self:
        outputs = self.output.model_dump(
            include={"predictions", "dead_letters", "outcomes", "shadows"}, exclude_none=True
        )
        for key, topic in [*outputs.items(), ("journal", self.journal_topic)]:
            if topic in self.input.topics:
                raise wrong(f"{topic!r} is an input topic too, which would feed on itself", "output", key)
            if key != "journal" and topic == self.journal_topic:
                raise wrong(f"{topic!r} is the journal's topic, which holds nothing else", "output", key)
        if self.output.dead_letters in [outputs.get(key) for key in ("predictions", "outcomes", "shadows")]:
            raise wrong("must not be the topic of the predictions, outcomes or shadows", "output", "dead_letters")
        return self

    @field_validator("kafka", "consumer", "producer", mode="before")
    @classmethod
    def _clients_keep_the_guarantees(cls, given: object, info: ValidationInfo) -> object:
        for name, value in given.items() if isinstance(given, dict) else ():
            if complaint := properties.complaint(str(info.field_name), name, value):
                raise wrong(complaint, name)
        return {} if given is None else given

    @model_validator(mode="after")
    def _a_transaction_outlasts_the_commit_interval(self) -> Self:
        complaint = properties.too_short(self.commit_interval_s, {**self.kafka, **self.producer})
        if complaint and self.guarantee == "exactly_once":
            raise wrong(complaint, "commit_interval")
        return self


def load(path: str | Path, environ: Mapping[str, str] = os.environ) -> Config:
    """The configuration in that file, with `${NAME}` taken from the environment."""
    try:
        text = Path(path).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = "is no UTF-8 text" if isinstance(error, UnicodeDecodeError) else error.strerror or error
        raise ConfigError(f"{path}: cannot be read: {reason}") from None
    return parse(text, str(path), environ)


def parse(text: str, name: str, environ: Mapping[str, str]) -> Config:
    """The configuration that a text holds; `name` is what errors call it."""
    return validate(configfile.read(text, name, environ))


def validate(file: configfile.File) -> Config:
    """The configuration that a file says, in the file's own words and units."""
    if file.tree is not None and not isinstance(file.tree, dict):
        raise ConfigError(f"{file.name}: must be a mapping of keys to values, beginning with `kafka:` or `learners:`")
    try:
        return Config.model_validate(file.tree, by_alias=True, by_name=False, context={"file": True})
    except ValidationError as error:
        raise mistakes.config_error(error, Config, file) from None
