"""What the page of metrics says, and that no message can make it say more."""

from __future__ import annotations

import gc
import re
import shutil
import subprocess
import weakref
from collections.abc import Sequence

import pytest
from prometheus_client import REGISTRY
from prometheus_client.exposition import choose_encoder, generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from olstream.config import Config
from olstream.families import roles
from olstream.health import Health
from olstream.messages import Chunk, Example, Reason
from olstream.metrics import Metrics
from olstream.model import Model

NOW_S = 1_796_032_800.0
THREE = {
    "fraud": {"algorithm": "arow"},
    "kind": {"algorithm": "pa1", "task": "multiclass", "classes": [f"class {i}" for i in range(20)]},
    "price": {"algorithm": "pa2", "task": "regression"},
}


class Service:
    """Metrics and models without a loop between them."""

    def __init__(self, learners: dict[str, object] | None = None, **settings: object) -> None:
        self.config = Config.model_validate(
            {"learners": learners or {"fraud": {}}, "input": {"topics": ["events"]}, **settings}
        )
        self.now_s = NOW_S
        self.health = Health(monotonic=lambda: self.now_s, now=lambda: self.now_s)
        self.metrics = Metrics(self.config, self.health, librdkafka="2.16.0", now=lambda: self.now_s)
        self.models = {name: Model(name, of, self.config.monitor) for name, of in self.config.learners.items()}

    def take(self, learner: str, *examples: Example) -> None:
        """One turn of the loop."""
        rows = self.models[learner].predict_then_update(list(examples))
        self.metrics.consumed(chunk(*[int(self.now_s * 1000)] * len(examples)))
        self.metrics.rows(learner, rows)
        for reject in rows.rejects.values():
            self.metrics.rejected("events", reject.reason)
        self.metrics.produced(learner, [int(self.now_s * 1000)] * len(examples))
        self.metrics.committed()

    def page(self) -> str:
        self.metrics.board.ask(0.0)
        self.metrics.standings(self.models.values())
        return generate_latest(self.metrics.registry).decode()

    def samples(self) -> dict[str, float]:
        """{series: value} of our own metrics."""
        pairs = (line.rsplit(" ", 1) for line in self.page().splitlines() if line.startswith("olstream_"))
        return {series.removeprefix("olstream_"): float(value) for series, value in pairs}


def chunk(*timestamps: int | None, topic: str = "events", partition: int = 0) -> Chunk:
    n = len(timestamps)
    return Chunk(topic, partition, list(range(n)), list(timestamps), [None] * n, [b"{}"] * n, [None] * n)


def example(label: object = None, weight: float = 1.0, **features: float | str) -> Example:
    return Example(features=features or {"x": 1.0}, label=label, weight=weight)  # type: ignore[arg-type]


def names(samples: Sequence[str] | dict[str, float]) -> set[str]:
    return {series.partition("{")[0] for series in samples}


# Before anything happened


def test_every_counter_is_there_at_zero_from_the_start() -> None:
    samples = Service(dict(THREE)).samples()

    counters = {series: value for series, value in samples.items() if series.partition("{")[0].endswith("_total")}
    assert set(counters.values()) == {0.0}
    assert names(counters) >= {
        *("messages_consumed_total", "events_processed_total", "events_rejected_total", "tombstones_total"),
        *("implausible_time_total", "offsets_lost_total", "predictions_produced_total", "produce_failures_total"),
        *("scored_events_total", "mistakes_total", "loss_total", "absolute_error_total", "squared_error_total"),
        *("updates_total", "confusion_total", "features_seen_total", "features_novel_total"),
        *("features_overflow_total", "model_unstable_updates_total", "rebalances_total", "kafka_errors_total"),
        *("commits_total", "stage_seconds_total", "checkpoint_failures_total", "restores_total"),
        *("config_reloads_total", "labels_unmatched_total"),
    }
    for reason in Reason:
        assert counters[f'events_rejected_total{{reason="{reason}",topic="events"}}'] == 0.0
    for unmatched in ("expired", "unknown", "duplicate"):
        assert f'labels_unmatched_total{{learner="fraud",reason="{unmatched}"}}' in counters


def test_nothing_is_told_of_what_is_not_known_yet() -> None:
    service = Service(dict(THREE))

    there = names(service.samples())

    assert not there & {
        *("windowed_error_ratio", "windowed_loss", "baseline_error_ratio", "consumer_lag_messages"),
        *("consumer_lag_seconds", "assigned_partitions", "last_poll_timestamp_seconds"),
        *("checkpoint_last_success_timestamp_seconds", "checkpoint_bytes", "replay_remaining_messages"),
    }


def test_the_page_says_what_runs() -> None:
    samples = Service(dict(THREE), routes=[{"learner": "fraud", "shadows": ["kind"]}]).samples()

    info = sorted(re.sub(r'config_hash="[0-9a-f]{12}",', "", series) for series in samples if "learner_info" in series)
    assert info == [
        'learner_info{algorithm="arow",learner="fraud",role="champion",task="binary"}',
        'learner_info{algorithm="pa1",learner="kind",role="shadow",task="multiclass"}',
        'learner_info{algorithm="pa2",learner="price",role="champion",task="regression"}',
    ]
    assert any(series.startswith('build_info{librdkafka="2.16.0",python="3.') for series in samples)


def test_a_learner_that_one_route_trusts_is_no_shadow() -> None:
    routes = [{"when": {"topic": "a"}, "learner": "fraud", "shadows": ["kind"]}, {"learner": "kind"}]

    assert roles(Service(dict(THREE), routes=routes).config)["kind"] == "champion"


# M4


def test_there_is_no_error_before_the_first_label() -> None:
    service = Service()

    service.take("fraud", *[example(x=float(i)) for i in range(100)])

    samples = service.samples()
    assert samples['events_processed_total{kind="unlabelled",learner="fraud"}'] == 100
    assert not names(samples) & {"windowed_error_ratio", "windowed_loss", "baseline_error_ratio"}
    assert "nan" not in service.page().lower()


def test_after_one_label_every_window_has_an_error() -> None:
    service = Service()
    service.take("fraud", *[example(x=float(i)) for i in range(100)])

    service.take("fraud", example(label=1))

    samples = service.samples()
    for window in ("total", "sliding", "fading"):
        assert 0.0 <= samples[f'windowed_error_ratio{{learner="fraud",window="{window}"}}'] <= 1.0
        assert samples[f'windowed_loss{{learner="fraud",window="{window}"}}'] == 1.0
    for baseline in ("majority", "no_change"):
        assert samples[f'baseline_error_ratio{{baseline="{baseline}",learner="fraud"}}'] == 1.0
    assert samples['scored_events_total{learner="fraud"}'] == 1


# M1


def hostile(n: int) -> list[Example]:
    return [Example(id=f"id {i}", features={f"name {i}": 1.0, "text": f"t{i}"}, label=f"label {i}") for i in range(n)]


def test_ids_names_and_classes_add_no_series() -> None:
    service = Service(dict(THREE) | {"open": {"algorithm": "pa1", "task": "multiclass", "classes_max": 20_000}})

    service.take("open", *hostile(10))
    after_10 = service.samples()
    for start in range(10, 2000, 500):
        service.take("open", *hostile(2000)[start : start + 500])
    for reason in Reason:
        service.metrics.rejected("events", reason)
    service.metrics.kafka_error("_NEVER_SEEN")
    service.metrics.produce_failed("predictions", 'hostile"\n')
    service.metrics.checkpoint_failed(OSError(9999, "strange"))

    after = service.samples()
    assert set(after) == set(after_10)
    assert after['kafka_errors_total{code="other"}'] == 1
    assert after['produce_failures_total{reason="other",topic="predictions"}'] == 1
    assert after['checkpoint_failures_total{reason="io"}'] == 1
    assert len(service.page()) < 200_000


def test_three_learners_have_less_than_a_thousand_series() -> None:
    service = Service(dict(THREE))
    for learner, label in (("fraud", 1), ("kind", "class 3"), ("price", 2.5)):
        service.take(learner, example(label=label))
    service.metrics.assigned([("events", p) for p in range(12)])
    service.metrics.lag({("events", p): (1, 5) for p in range(12)})

    assert sum(1 for line in service.page().splitlines() if not line.startswith("#")) < 1000


def test_classes_past_the_eighth_share_one_row_and_one_column() -> None:
    service = Service(dict(THREE))

    service.take("kind", example(label="class 3"), example(label="class 12"), example(label="class 19"))

    confusion = {s: v for s, v in service.samples().items() if s.startswith("confusion_total")}
    by_label = {
        label: sum(v for s, v in confusion.items() if f'label="{label}"' in s) for label in ("class 3", "other")
    }
    assert len(confusion) == 81
    assert by_label == {"class 3": 1, "other": 2}


def test_confusion_is_counted_by_the_text_of_a_class() -> None:
    service = Service({"fraud": {"classes": [0, 1], "algorithm": "pa", "bias": False}})

    service.take(
        "fraud",
        example(label=1, x=1.0),
        example(label="1", x=1.0),
        example(label=0.0, x=-1.0),
        example(label=0, weight=0.0, x=-1.0),
        example(x=-1.0),
    )

    confusion = {s: v for s, v in service.samples().items() if s.startswith("confusion_total")}
    assert confusion == {
        'confusion_total{label="0",learner="fraud",predicted="0"}': 1,
        'confusion_total{label="0",learner="fraud",predicted="1"}': 0,
        'confusion_total{label="1",learner="fraud",predicted="0"}': 0,
        'confusion_total{label="1",learner="fraud",predicted="1"}': 2,
    }


# M2


def test_lag_is_absent_then_zero_on_an_empty_topic_then_what_is_left() -> None:
    service = Service()

    def lag() -> dict[str, float]:
        return {series: value for series, value in service.samples().items() if series.startswith("consumer_lag")}

    at_start = lag()
    service.metrics.assigned([("events", 0)])
    assigned = lag()
    service.metrics.lag({("events", 0): (-1001, 0)})
    unknown = lag()
    service.metrics.lag({("events", 0): (0, 0)})
    empty = lag()
    service.metrics.consumed(chunk(int(NOW_S * 1000) - 5000))
    service.metrics.lag({("events", 0): (1, 3)})
    behind = lag()
    service.metrics.assigned([])

    assert (at_start, assigned, unknown) == ({}, {}, {})
    assert empty == {
        'consumer_lag_messages{partition="0",topic="events"}': 0,
        'consumer_lag_seconds{topic="events"}': 0,
    }
    assert behind['consumer_lag_messages{partition="0",topic="events"}'] == 2
    assert lag() == {}


# M6


def test_a_second_service_in_one_process_counts_from_zero_and_leaves_nothing_behind() -> None:
    global_before = generate_latest(REGISTRY).count(b"olstream_")
    first = Service()
    first.take("fraud", example(label=1))
    consumed_by_first = first.samples()['messages_consumed_total{topic="events"}']

    second = Service()

    assert consumed_by_first == 1
    assert second.samples()['messages_consumed_total{topic="events"}'] == 0
    assert generate_latest(REGISTRY).count(b"olstream_") == global_before == 0


def test_metrics_that_nobody_holds_are_gone() -> None:
    service = Service()
    metrics = weakref.ref(service.metrics)

    del service
    gc.collect()

    assert metrics() is None


# What is counted


def test_a_batch_is_counted_by_what_became_of_its_rows() -> None:
    service = Service({"fraud": {"algorithm": "pa1", "bias": False}})

    service.take(
        "fraud",
        example(label=1, x=1.0),  # score 0, so right by the tie, loss 1, updated
        example(label=1, x=1.0),  # margin 1: passive
        example(label=0, x=1.0),  # wrong
        example(label=1, x=0.0),  # nothing to learn from
        example(x=1.0),
        example(label=1, weight=0.0),
        example(label="third"),  # unknown_label
    )

    samples = service.samples()
    assert samples['events_processed_total{kind="labelled",learner="fraud"}'] == 4
    assert samples['events_processed_total{kind="unlabelled",learner="fraud"}'] == 2
    assert samples['events_rejected_total{reason="unknown_label",topic="events"}'] == 1
    assert samples['scored_events_total{learner="fraud"}'] == 4
    assert samples['mistakes_total{learner="fraud"}'] >= 1
    results = {
        result: samples[f'updates_total{{learner="fraud",result="{result}"}}']
        for result in ("updated", "passive", "skipped")
    }
    assert results == {"updated": 2, "passive": 1, "skipped": 1}
    assert samples['margin_bucket{le="+Inf",learner="fraud"}'] == 4
    assert samples['step_size_count{learner="fraud"}'] == 2
    assert samples['event_features_count{learner="fraud"}'] == 6
    assert samples['loss_total{learner="fraud"}'] == pytest.approx(1.0 + 0.0 + 2.0 + 1.0)


def test_a_regression_has_errors_but_no_mistakes() -> None:
    service = Service({"price": THREE["price"]})

    service.take("price", example(label=3.0), example(label=-1.0, x=0.0, y=0.0))

    samples = service.samples()
    assert samples['absolute_error_total{learner="price"}'] >= 3.0
    assert samples['squared_error_total{learner="price"}'] >= 9.0
    assert not names(samples) & {"mistakes_total", "margin_bucket", "windowed_error_ratio", "baseline_error_ratio"}
    assert samples['windowed_loss{learner="price",window="sliding"}'] > 0.0


def test_errors_past_the_doubles_leave_every_sample_finite() -> None:
    service = Service({"price": THREE["price"]})

    for _ in range(3):
        service.take("price", example(label=1.7e308, x=1e-200), example(label=-1.7e308, x=1e200))

    values = [line.rsplit(" ", 1)[1] for line in service.page().splitlines() if line.startswith("olstream_")]
    assert not {"NaN", "+Inf", "-Inf"} & set(values)


def test_recovery_counts_as_replayed_and_nothing_else() -> None:
    service = Service()
    before = service.samples()

    service.metrics.replay_remaining(7)
    service.metrics.replayed("fraud", 5)
    service.metrics.replay_remaining(2)

    after = service.samples()
    changed = {series: value for series, value in after.items() if before.get(series) != value}
    assert changed == {
        'events_processed_total{kind="replayed",learner="fraud"}': 5,
        "replay_remaining_messages": 2,
    }


def test_a_label_without_features_is_counted_and_nothing_else() -> None:
    service = Service()
    before = service.samples()

    service.metrics.labels_unmatched("fraud", 3)

    after = service.samples()
    assert {series: value for series, value in after.items() if before.get(series) != value} == {
        'events_processed_total{kind="label_only",learner="fraud"}': 3,
        'labels_unmatched_total{learner="fraud",reason="unknown"}': 3,
    }


# Time


def test_latency_is_observed_when_the_predictions_are_committed() -> None:
    service = Service()
    record_ms = int(NOW_S * 1000) - 200

    service.metrics.produced("fraud", [record_ms, record_ms, None])
    uncommitted = service.samples()['event_latency_seconds_count{learner="fraud"}']
    service.now_s += 0.2
    service.metrics.committed()

    samples = service.samples()
    assert uncommitted == 0
    assert samples['event_latency_seconds_bucket{le="0.25",learner="fraud"}'] == 0
    assert samples['event_latency_seconds_bucket{le="0.5",learner="fraud"}'] == 2
    assert samples['event_latency_seconds_sum{learner="fraud"}'] == pytest.approx(0.8)
    assert samples['predictions_produced_total{learner="fraud"}'] == 3


@pytest.mark.parametrize(
    ("outcomes", "observed"),
    [(["aborted"], 0), (["aborted", "resolved_resent"], 1), (["resolved_committed"], 1), (["lost", "committed"], 0)],
)
def test_predictions_wait_through_an_abort_and_are_dropped_when_lost(outcomes: list[str], observed: int) -> None:
    service = Service()

    service.metrics.produced("fraud", [int(NOW_S * 1000)])
    for outcome in outcomes:
        service.metrics.committed(outcome)

    assert service.samples()['event_latency_seconds_count{learner="fraud"}'] == observed


def test_implausible_times_are_counted_and_kept_out_of_latency_and_lag() -> None:
    service = Service()
    day_ms = 86_400_000
    now_ms = int(NOW_S * 1000)

    strange = [0, 946_684_799_999, now_ms + day_ms + 1, -1]
    service.metrics.consumed(chunk(*strange, None), ts_ms=[10**17, None, now_ms])
    service.metrics.produced("fraud", [*strange, None, now_ms + 50])
    service.metrics.committed()
    service.metrics.lag({("events", 0): (5, 9)})

    samples = service.samples()
    assert samples['implausible_time_total{topic="events"}'] == 5
    assert samples['event_latency_seconds_count{learner="fraud"}'] == 1
    assert samples['event_latency_seconds_sum{learner="fraud"}'] == 0.0  # that producer's clock is ahead
    assert "consumer_lag_seconds" not in names(samples)


# Health and checkpoints


def test_ready_is_what_the_probe_says() -> None:
    service = Service()
    starting = service.samples()["ready"]

    service.health.restored()
    service.health.assigned(1)
    service.health.polled()

    samples = service.samples()
    assert (starting, samples["ready"], samples["last_poll_timestamp_seconds"]) == (0.0, 1.0, NOW_S)


def test_checkpoints_are_counted_by_what_became_of_them() -> None:
    service = Service()

    service.metrics.checkpoint_failed(OSError(28, "No space left on device"))
    service.metrics.checkpoint_failed(PermissionError(13, "Permission denied"))
    service.metrics.checkpoint_failed(ValueError("strange"))
    service.metrics.checkpoint_written(0.05, 1234)
    service.metrics.uncheckpointed(0)

    samples = service.samples()
    for reason in ("no_space", "denied", "other"):
        assert samples[f'checkpoint_failures_total{{reason="{reason}"}}'] == 1
    assert samples["checkpoint_bytes"] == 1234
    assert samples["checkpoint_last_success_timestamp_seconds"] == NOW_S
    assert samples["checkpoint_duration_seconds_count"] == 1
    assert samples["uncheckpointed_events"] == 0


# The page


def busy() -> Service:
    service = Service(dict(THREE))
    for learner, label in (("fraud", 1), ("kind", "class 3"), ("price", 2.5)):
        service.take(learner, example(label=label), example())
    service.metrics.assigned([("events", 0)])
    service.metrics.lag({("events", 0): (1, 3)})
    service.metrics.batch(3, 0.01)
    service.metrics.stage("learn", 0.005)
    service.metrics.rebalanced("assigned")
    service.metrics.checkpoint_written(0.05, 1234)
    service.metrics.restored("fresh")
    return service


def test_no_created_series_and_no_more_than_twelve_buckets() -> None:
    page = busy().page()

    buckets: dict[str, int] = {}
    for series in re.findall(r"^(olstream_\w+_bucket\{.*\}) ", page, re.MULTILINE):
        key = re.sub(r'le="[^"]*"', "", series)
        buckets[key] = buckets.get(key, 0) + 1
    assert "_created" not in page
    assert buckets and max(buckets.values()) <= 12


def test_the_process_and_the_platform_are_in_the_same_page() -> None:
    page = Service().page()

    assert "process_start_time_seconds" in page
    assert "python_info" in page


def test_openmetrics_can_be_read_back() -> None:
    service = busy()
    service.page()
    encode, content_type = choose_encoder("application/openmetrics-text; version=1.0.0")

    text = encode(service.metrics.registry).decode()

    families = {family.name: family for family in text_string_to_metric_families(text)}  # type: ignore[no-untyped-call]
    assert content_type.startswith("application/openmetrics-text")
    assert text.endswith("# EOF\n") and "_created" not in text
    assert families["olstream_messages_consumed"].type == "counter"
    assert families["olstream_margin"].type == "histogram"


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool (Debian package prometheus) is not installed")
def test_promtool_finds_nothing_to_say() -> None:
    page = busy().page()

    said = subprocess.run(["promtool", "check", "metrics"], input=page.encode(), capture_output=True, check=False)

    assert (said.returncode, said.stdout, said.stderr) == (0, b"", b"")
