"""What is on the page of metrics, and that no message can put more there."""

from __future__ import annotations

import gc
import re
import shutil
import subprocess
import weakref
from typing import Any

import numpy as np
import pytest
from prometheus_client import REGISTRY
from prometheus_client.exposition import choose_encoder, generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from olstream.families import roles
from olstream.messages import Example, Reason
from olstream.route import rivals
from olstream.status import describe
from olstream.versus import Versus
from tests.page import THREE, Service, example, names

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


# M1


def hostile(n: int) -> list[Example]:
    return [Example(id=f"id {i}", features={f"name {i}": 1.0, "text": f"t{i}"}, label=f"label {i}") for i in range(n)]


def test_ids_names_and_classes_add_no_series() -> None:
    service = Service(dict(THREE) | {"open": {"algorithm": "pa1", "task": "multiclass", "classes_max": 20_000}})

    service.take("open", *hostile(100))
    after_100 = service.samples()
    for start in range(100, 2000, 500):
        service.take("open", *hostile(2000)[start : start + 500])
    for reason in Reason:
        service.metrics.rejected("events", reason)
    service.metrics.kafka_error("_NEVER_SEEN")
    service.metrics.produce_failed("predictions", 'hostile"\n')
    service.metrics.checkpoint_failed(OSError(9999, "strange"))

    after = service.samples()
    assert set(after) == set(after_100)
    assert after['kafka_errors_total{code="other"}'] == 1
    assert after['produce_failures_total{reason="other",topic="predictions"}'] == 1
    assert after['checkpoint_failures_total{reason="io"}'] == 1
    assert len(service.page()) < 200_000


def compare(model: Any, champions: set[str]) -> None:
    """As its shadow, with all figures known."""
    one, right, wrong = np.ones(1), np.ones(1, np.int8), np.zeros(1, np.int8)
    model.versus = {champion: Versus(True, 0.9) for champion in champions}
    for versus in model.versus.values():
        versus.add(np.ones(1, np.uint8), right, one, wrong, one, one, one)


def test_three_learners_have_less_than_a_thousand_series() -> None:
    routes = [
        {"when": {"topic": "a"}, "learner": "fraud", "shadows": ["kind"]},
        {"learner": "kind", "shadows": ["fraud"]},
    ]
    service = Service(dict(THREE), routes=routes)
    compare(service.models["fraud"], {"kind"})
    compare(service.models["kind"], {"fraud"})
    for learner, label in (("fraud", 1), ("kind", "class 3"), ("price", 2.5)):
        service.take(learner, example(label=label))
    service.metrics.assigned([("events", p) for p in range(12)])
    service.metrics.lag({("events", p): (1, 5) for p in range(12)})

    series = service.samples()
    assert sum(1 for line in service.page().splitlines() if not line.startswith("#")) < 1000
    assert sum(name.startswith("shadow_") for name in series) == 2 * 3 * 2


def test_only_pairs_that_routes_name_are_compared() -> None:
    service = Service(dict(THREE), routes=[{"learner": "fraud", "shadows": ["kind"]}])

    compare(service.models["kind"], {"fraud", "a champion that was"})
    compare(service.models["fraud"], {"kind"})

    told = {series for series in service.samples() if series.startswith("shadow_q")}
    assert told == {f'shadow_q{{champion="fraud",learner="kind",window="{window}"}}' for window in ("total", "fading")}
    versus = {name: set(of["versus"]) for name, of in describe(service.metrics)["learners"].items()}
    assert versus == {"fraud": set(), "kind": {"fraud"}, "price": set()}


def test_where_the_message_names_the_champion_any_other_learner_may_be_it() -> None:
    learners: dict[str, object] = {name: {} for name in ("a", "b", "c")}

    assert rivals(Service(learners, routes=[{"shadows": ["c"]}]).config) == {("c", "a"), ("c", "b")}


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


# The page


def busy() -> Service:
    service = Service(dict(THREE))
    for learner, label in (("fraud", 1), ("kind", "class 3"), ("price", 2.5)):
        service.take(learner, example(label=label), example())
    service.metrics.assigned([("events", 0)])
    service.metrics.lag({("events", 0): (1, 3)})
    service.metrics.batches([(3, 0.01)])
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
