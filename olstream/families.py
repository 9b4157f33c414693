"""Every metric there is: its name, what it says, its labels. Nothing else spells a metric's name.

Label values come from the configuration or from the closed sets below, so no message can add a
series. Counters are there at 0 from the start, gauges only once they are known.
"""

from __future__ import annotations

import errno
import hashlib
import json
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from prometheus_client.registry import CollectorRegistry

from olstream.config import Config, LearnerConfig
from olstream.health import Health
from olstream.lag import Lag
from olstream.margins import EDGES
from olstream.messages import Reason, label_text
from olstream.route import rivals
from olstream.series import Counters, Family, Gauges, Histograms, Labels, Readings
from olstream.standing import Board
from olstream.watched import watched

PREFIX: Final = "olstream_"
OTHER: Final = "other"
KINDS: Final = ("labelled", "unlabelled", "label_only", "replayed")
RESULTS: Final = ("updated", "passive", "skipped")
ERRORS: Final = ("error_total", "error_sliding", "error_fading")  # of a Standing
LOSSES: Final = ("loss_total", "loss_sliding", "loss_fading")
BASELINES: Final = ("baseline_majority", "baseline_no_change")
UNMATCHED: Final = ("expired", "unknown", "duplicate")
STAGES: Final = ("poll", "decode", "vectorize", "learn", "encode", "produce", "commit", "checkpoint")
OUTCOMES: Final = ("committed", "aborted", "resolved_committed", "resolved_resent", "lost")
RESTORES: Final = ("fresh", "restored", "fell_back", "failed")
REBALANCES: Final = ("assigned", "revoked", "lost")
RELOADS: Final = ("success", "failure")
PRODUCE_REASONS: Final = {  # librdkafka's name of the error -> ours
    "MSG_SIZE_TOO_LARGE": "too_large",
    "_MSG_TIMED_OUT": "timed_out",
    "_QUEUE_FULL": "queue_full",
    "TOPIC_AUTHORIZATION_FAILED": "unauthorized",
}
KAFKA_CODES: Final = (
    *("_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_AUTHENTICATION", "_SSL", "_TIMED_OUT", "_MAX_POLL_EXCEEDED"),
    *("_FENCED", "_FATAL", "UNKNOWN_TOPIC_OR_PART", "TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED"),
    *("FENCED_INSTANCE_ID", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", OTHER),
)
DISK_REASONS: Final = {
    errno.ENOSPC: "no_space",
    errno.EDQUOT: "no_space",
    errno.EFBIG: "no_space",
    errno.EACCES: "denied",
    errno.EPERM: "denied",
    errno.EROFS: "denied",
}
CONFUSED_MAX: Final = 8  # classes of a confusion matrix: it grows with their square

STEPS: Final = (1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 10.0, 100.0)
WIDTHS: Final = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 1000.0, 10000.0)
BATCHES: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 10000.0)
LATENCIES_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 300.0)
DELAYS_S: Final = (0.1, 1.0, 10.0, 60.0, 600.0, 3600.0, 21600.0, 86400.0, 604800.0, 2592000.0)
TURNS_S: Final = (1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
WRITES_S: Final = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


def roles(config: Config) -> dict[str, str]:
    """A shadow is a learner that routes name as nothing but a shadow."""
    shadows = {name for route in config.routes for name in route.shadows}
    champions = {route.learner for route in config.routes}
    return {name: "shadow" if name in shadows - champions else "champion" for name in config.learners}


def confused(learner: LearnerConfig) -> list[str]:
    """The classes that a learner's confusion is counted by."""
    texts = [label_text(label) for label in learner.classes or []]
    return texts if len(texts) <= CONFUSED_MAX else [*texts[:CONFUSED_MAX], OTHER]


def config_hash(learner: LearnerConfig) -> str:
    """Changes with any setting of the learner."""
    text = json.dumps(learner.model_dump(mode="json"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class Families:
    """All of them, in one registry."""

    def __init__(
        self,
        config: Config,
        board: Board,
        lag: Lag,
        health: Health,
        regret: Callable[[int], Mapping[Labels, float | None]],
        version: str,
        librdkafka: str,
    ) -> None:
        """`board`, `lag`, `health` and `regret` are what gauges are read off when somebody asks."""
        self.registry = CollectorRegistry()
        self._identity(config, version, librdkafka)
        self._flow(config)
        self._quality(config, board)
        self._hindsight(regret)
        self._shadows(config, board)
        self._labels(config, board)
        self._drift(config, board)
        self._inputs(config)
        self._model(config, board)
        self._kafka(lag, health)
        self._time(config)
        self._state()

    def go_on_from(self, others: Families) -> None:
        """Whatever is counted in both goes on; what gauges are read off, and what learners are, is as it is now."""
        for name, family in vars(self).items():
            if isinstance(family, Family):
                family.go_on_from(getattr(others, name))
        self.last_detection.keep(self.detections.values().keys())

    def _counters(self, name: str, text: str, **labels: Iterable[str]) -> Counters:
        return Counters(self.registry, PREFIX + name, text, labels)

    def _gauges(self, name: str, text: str, *labels: str) -> Gauges:
        return Gauges(self.registry, PREFIX + name, text, labels)

    def _readings(
        self, name: str, text: str, read: Callable[[], Mapping[Labels, float | None]], *labels: str
    ) -> Readings:
        return Readings(self.registry, PREFIX + name, text, read, labels)

    def _histograms(self, name: str, text: str, bounds: Sequence[float], **labels: Iterable[str]) -> Histograms:
        return Histograms(self.registry, PREFIX + name, text, bounds, labels)

    def _identity(self, config: Config, version: str, librdkafka: str) -> None:
        build = self._gauges("build_info", "What runs.", "version", "python", "librdkafka")
        build.at(version, platform.python_version(), librdkafka).set(1)
        info = self._gauges("learner_info", "The learners.", "learner", "algorithm", "task", "role", "config_hash")
        for name, learner in config.learners.items():
            info.at(name, learner.algorithm, learner.task, roles(config)[name], config_hash(learner)).set(1)
        text = "Configurations taken while running, or refused."
        self.reloads = self._counters("config_reloads_total", text, result=RELOADS)

    def _flow(self, config: Config) -> None:
        topics, learners, output = config.input.topics, list(config.learners), config.output
        written = [output.predictions, output.dead_letters, config.journal_topic]
        if output.shadows is not None:
            written.append(output.shadows)
        self.consumed = self._counters("messages_consumed_total", "Records read.", topic=topics)
        text = "Rows by what they brought (unlabelled: no label, or weight 0); replayed: learnt again on start."
        self.events = self._counters("events_processed_total", text, learner=learners, kind=KINDS)
        text = "Messages that became a dead letter."
        self.rejected = self._counters("events_rejected_total", text, topic=topics, reason=list(Reason))
        self.tombstones = self._counters("tombstones_total", "Records without a value.", topic=topics)
        text = "Messages from before 2000 or more than a day ahead: no latency or lag counts them."
        self.implausible = self._counters("implausible_time_total", text, topic=topics)
        text = "Records that retention took before they were read."
        self.offsets_lost = self._counters("offsets_lost_total", text, topic=topics)
        text = "Predictions handed to the producer."
        self.predictions = self._counters("predictions_produced_total", text, learner=learners)
        text = "Records that the producer or the broker refused."
        to, reasons = dict.fromkeys(written), [*PRODUCE_REASONS.values(), OTHER]
        self.produce_failures = self._counters("produce_failures_total", text, topic=to, reason=reasons)

    def _quality(self, config: Config, board: Board) -> None:
        learners = list(config.learners)
        classifiers = [name for name in learners if config.learners[name].task != "regression"]
        regressors = [name for name in learners if config.learners[name].task == "regression"]
        self.scored = self._counters("scored_events_total", "Predictions measured by a label.", learner=learners)
        self.mistakes = self._counters("mistakes_total", "Measured predictions that were wrong.", learner=classifiers)
        self.loss = self._counters("loss_total", "Sum of the learner's own loss, before the update.", learner=learners)
        self.absolute_error = self._counters("absolute_error_total", "Sum of absolute errors.", learner=regressors)
        self.squared_error = self._counters("squared_error_total", "Sum of squared errors.", learner=regressors)
        text = "Rows that were there to learn, by what became of the model."
        self.updates = self._counters("updates_total", text, learner=learners, result=RESULTS)
        text = "Share of wrong predictions: in all, over the last rows, faded."
        self._readings("windowed_error_ratio", text, lambda: board.read(*ERRORS), "learner", "window")
        text = "Mean loss: in all, over the last rows, faded."
        self._readings("windowed_loss", text, lambda: board.read(*LOSSES), "learner", "window")
        text = "Share of wrong predictions of who always says the commonest, or the last, class."
        self._readings("baseline_error_ratio", text, lambda: board.read(*BASELINES), "learner", "baseline")
        self.confusion = Counters(
            self.registry,
            PREFIX + "confusion_total",
            "Measured predictions by the class of the label and the class predicted.",
            {"learner": (), "label": (), "predicted": ()},
            sets=[
                (name, label, predicted)
                for name, learner in config.learners.items()
                for label in confused(learner)
                for predicted in confused(learner)
            ],
        )
        text = "Signed margins before the update; below 0 is wrong."
        self.margin = self._histograms("margin", text, EDGES, learner=classifiers)
        text = "Signed margins of the same rows after the update."
        self.margin_after = self._histograms("margin_after", text, EDGES, learner=classifiers)
        self.step_size = self._histograms("step_size", "Steps of the updates that were made.", STEPS, learner=learners)

    def _hindsight(self, regret: Callable[[int], Mapping[Labels, float | None]]) -> None:
        text = "Mean loss of the best fixed linear model of the last rows, on these."
        self._readings("hindsight_loss", text, lambda: regret(0), "learner")
        text = "Mean loss less that of the best fixed linear model of the last rows."
        self._readings("regret", text, lambda: regret(1), "learner")

    def _shadows(self, config: Config, board: Board) -> None:
        known = rivals(config)

        def readings(name: str, text: str, figure: str) -> None:
            def read() -> Mapping[Labels, float | None]:
                return {at: value for at, value in board.read_versus(figure).items() if at[:2] in known}

            self._readings(name, text, read, "learner", "champion", "window")

        same = "on the rows that both measured"
        text = f"A shadow's mean error less its champion's, {same}; below 0 the shadow is better."
        readings("shadow_error_difference", text, "difference")
        text = f"McNemar's statistic, {same}; above 6.635 the shadow is better, below -6.635 the champion."
        readings("shadow_mcnemar", text, "mcnemar")
        text = "The same as McNemar's, of differences of absolute errors: for a regression."
        readings("shadow_paired", text, "paired")
        text = f"Logarithm of a champion's loss over its shadow's, {same}; above 0 the shadow is better."
        readings("shadow_q", text, "q")

    def _labels(self, config: Config, board: Board) -> None:
        learners = list(config.learners)
        text = "Labels that met no waiting prediction; expired: what waited in vain."
        self.unmatched = self._counters("labels_unmatched_total", text, learner=learners, reason=UNMATCHED)
        text = "Labels whose row another worker had predicted: learnt, not measured."
        self.unmeasured = self._counters("labels_unmeasured_total", text, learner=learners)
        text = "From a row's own time to that of its label."
        self.label_delay = self._histograms("label_delay_seconds", text, DELAYS_S, learner=learners)
        text = "Predictions that wait for their label, and labels for their row."
        self._readings("pending_predictions", text, lambda: board.read("pending"), "learner")

    def _drift(self, config: Config, board: Board) -> None:
        labels = ("learner", "detector", "signal")
        sets = [
            (name, of.detector, of.signal)
            for name, learner in config.learners.items()
            for of in watched(config.monitor, learner.task)
        ]

        def counters(name: str, text: str) -> Counters:
            return Counters(self.registry, PREFIX + name, text, dict.fromkeys(labels, ()), sets)

        def readings(name: str, text: str, number: str) -> None:
            self._readings(name, text, lambda: board.read_detectors(number), *labels)

        self.detections = counters("drift_detections_total", "Rows at which a detector said drift.")
        self.warnings = counters("drift_warnings_total", "Times at which a detector began to warn.")
        readings("drift_statistic", "What a detector compares with its threshold.", "statistic")
        readings("drift_threshold", "Where a detector's statistic means drift.", "threshold")
        readings("drift_window_events", "Rows that a detector looks back on.", "window_events")
        text = "When a detector last said drift."
        self.last_detection = self._gauges("drift_last_detection_timestamp_seconds", text, *labels)

    def _inputs(self, config: Config) -> None:
        learners = list(config.learners)
        self.widths = self._histograms("event_features", "Features of a row.", WIDTHS, learner=learners)
        self.features = self._counters("features_seen_total", "Features of all rows.", learner=learners)
        self.novel = self._counters("features_novel_total", "Features met for the first time.", learner=learners)
        text = "Features that went to a shared bucket."
        self.overflowed = self._counters("features_overflow_total", text, learner=learners)

    def _model(self, config: Config, board: Board) -> None:
        def sizes(name: str, text: str, field: str) -> None:
            self._readings(name, text, lambda: board.read(field), "learner")

        sizes("model_features", "Features the model knows.", "features")
        sizes("model_classes", "Classes the model knows.", "classes")
        sizes("model_weights_norm", "Euclidean norm of the weights.", "weights_norm")
        sizes("model_weight_abs_max", "The largest weight, by modulus.", "weight_abs_max")
        sizes("model_variance_mean", "Mean variance of the weights: falls as the learner grows sure.", "variance_mean")
        sizes("model_bytes", "Memory of the model's arrays.", "size_bytes")
        text = "Updates dropped because a number would have become infinite."
        self.unstable = self._counters("model_unstable_updates_total", text, learner=list(config.learners))

    def _kafka(self, lag: Lag, health: Health) -> None:
        text = "Committed records that were not read yet."
        self._readings("consumer_lag_messages", text, lag.by_partition, "topic", "partition")
        text = "How long the oldest record that was not read yet has waited, at most."
        self._readings("consumer_lag_seconds", text, lag.by_topic, "topic")
        self.assigned = self._gauges("assigned_partitions", "Partitions this worker holds.")
        self.rebalances = self._counters("rebalances_total", "Changes of the assignment.", kind=REBALANCES)
        self.kafka_errors = self._counters("kafka_errors_total", "Errors that librdkafka told of.", code=KAFKA_CODES)
        text = "When the loop last came round."
        self._readings("last_poll_timestamp_seconds", text, lambda: {(): health.polled_epoch_s})
        text = "1 while restored and assigned, as /ready says."
        self._readings("ready", text, lambda: {(): float(health.ready()[0])})
        self.commits = self._counters("commits_total", "Transactions, by how they ended.", outcome=OUTCOMES)
        text = "Records to be learnt again before this worker joins its group."
        self.replay_remaining = self._gauges("replay_remaining_messages", text)

    def _time(self, config: Config) -> None:
        text = "From a record's timestamp to its committed prediction."
        self.latency = self._histograms("event_latency_seconds", text, LATENCIES_S, learner=list(config.learners))
        self.batch_duration = self._histograms("batch_duration_seconds", "Time of one turn with records.", TURNS_S)
        self.batch_messages = self._histograms("batch_messages", "Records of one turn.", BATCHES)
        self.stages = self._counters("stage_seconds_total", "Where the loop's time went.", stage=STAGES)

    def _state(self) -> None:
        self.checkpoint_duration = self._histograms("checkpoint_duration_seconds", "Writing a checkpoint.", WRITES_S)
        self.checkpoint_bytes = self._gauges("checkpoint_bytes", "Size of the last checkpoint.")
        text = "When a checkpoint was last written."
        self.checkpoint_last = self._gauges("checkpoint_last_success_timestamp_seconds", text)
        text = "Checkpoints that could not be written."
        reasons = dict.fromkeys([*DISK_REASONS.values(), "io", OTHER])
        self.checkpoint_failures = self._counters("checkpoint_failures_total", text, reason=reasons)
        text = "Records learnt since the last checkpoint: what a crash would learn again."
        self.uncheckpointed = self._gauges("uncheckpointed_events", text)
        self.restores = self._counters("restores_total", "Starts, by what they found.", result=RESTORES)
