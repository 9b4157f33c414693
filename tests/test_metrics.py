"""What happened is what the page says: counts, lag, latency, state."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from olstream.metrics import as_array
from olstream.versus import SPANS, Versus
from tests.page import NOW_S, THREE, Service, example, names

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
    service.metrics.consumed("events", 0, np.array([NOW_S * 1000 - 5000]))
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


def test_recovery_may_meet_learners_and_topics_that_are_configured_no_more() -> None:
    service = Service()
    before = service.samples()

    service.metrics.replayed("removed", 5)
    service.metrics.offsets_lost("removed", 5)

    assert service.samples() == before


def test_labels_are_counted_as_they_come_and_by_what_becomes_of_them() -> None:
    service = Service()
    before = service.samples()

    service.metrics.label_only("fraud", 9)
    service.metrics.labels_unmatched("fraud", "unknown", 3)
    service.metrics.labels_unmatched("fraud", "duplicate", 2)
    service.metrics.labels_unmatched("fraud", "expired", 5)
    service.metrics.labels_unmeasured("fraud", 1)

    samples = service.samples()
    assert {series: value for series, value in samples.items() if before.get(series) != value} == {
        'events_processed_total{kind="label_only",learner="fraud"}': 9,
        'labels_unmatched_total{learner="fraud",reason="unknown"}': 3,
        'labels_unmatched_total{learner="fraud",reason="duplicate"}': 2,
        'labels_unmatched_total{learner="fraud",reason="expired"}': 5,
        'labels_unmeasured_total{learner="fraud"}': 1,
    }


def test_delays_are_seconds_and_a_label_before_its_row_has_none() -> None:
    service = Service()

    service.metrics.label_delays("fraud", [30_000.0, -7_000.0, math.nan])

    samples = service.samples()
    assert samples['label_delay_seconds_count{learner="fraud"}'] == 2
    assert samples['label_delay_seconds_bucket{le="10.0",learner="fraud"}'] == 1
    assert samples['label_delay_seconds_sum{learner="fraud"}'] == 30.0


def test_what_waits_is_counted_as_of_now() -> None:
    service = Service()
    model: Any = service.models["fraud"]

    model.waiting = {"id 1": None, "id 2": None}
    waiting = service.samples()['pending_predictions{learner="fraud"}']
    model.waiting.clear()

    assert (waiting, service.samples()['pending_predictions{learner="fraud"}']) == (2, 0)


def test_a_shadow_is_compared_with_its_champion() -> None:
    service = Service(dict(THREE), routes=[{"learner": "fraud", "shadows": ["kind"]}])
    shadow: Any = service.models["kind"]
    right, wrong = np.ones(20, np.int8), np.zeros(20, np.int8)
    versus = Versus(True, 0.5)
    shadow.versus = {"fraud": versus}
    before = service.samples()

    versus.add(np.ones(20, np.uint8), right, np.ones(20), wrong, np.full(20, 2.0), np.zeros(0), np.zeros(0))

    compared = {series: value for series, value in service.samples().items() if series.startswith("shadow_")}
    labels = {span: f'{{champion="fraud",learner="kind",window="{span}"}}' for span in SPANS}
    assert not names(before) & names(compared)
    assert compared == {
        f"shadow_error_difference{labels['total']}": -1.0,
        f"shadow_error_difference{labels['fading']}": -1.0,
        f"shadow_mcnemar{labels['total']}": 20.0,
        f"shadow_mcnemar{labels['fading']}": pytest.approx(2.0, abs=1e-5),
        f"shadow_q{labels['total']}": pytest.approx(math.log(2.0)),
        f"shadow_q{labels['fading']}": pytest.approx(math.log(2.0)),
    }


def test_a_regressions_comparison_has_no_mcnemar() -> None:
    routes = [{"learner": "price", "shadows": ["next"]}]
    service = Service({"price": THREE["price"], "next": THREE["price"]}, routes=routes)
    shadow: Any = service.models["next"]
    shadow.versus = {"price": Versus(False, 0.5)}
    zero, two, right = np.zeros(8), np.full(8, 2.0), np.ones(8, np.int8)

    shadow.versus["price"].add(np.ones(8, np.uint8), right, zero, right, two, zero, two)

    compared = {series: value for series, value in service.samples().items() if series.startswith("shadow_")}
    assert names(compared) == {"shadow_error_difference", "shadow_paired"}
    assert compared['shadow_paired{champion="price",learner="next",window="total"}'] == pytest.approx(8.0)


# Time


def test_latency_is_observed_when_the_predictions_are_committed() -> None:
    service = Service()
    record_ms = int(NOW_S * 1000) - 200

    service.metrics.produced("fraud", np.array([record_ms, record_ms, np.nan]))
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

    service.metrics.produced("fraud", np.array([NOW_S * 1000]))
    for outcome in outcomes:
        service.metrics.committed(outcome)

    assert service.samples()['event_latency_seconds_count{learner="fraud"}'] == observed


def test_implausible_times_are_counted_and_kept_out_of_latency_and_lag() -> None:
    service = Service()
    day_ms = 86_400_000
    now_ms = int(NOW_S * 1000)

    strange = [0, 946_684_799_999, now_ms + day_ms + 1, -1]
    service.metrics.consumed("events", 0, as_array([*strange, None]))
    service.metrics.said("events", as_array([10**17, None, now_ms]))
    service.metrics.produced("fraud", np.array([*strange, np.nan, now_ms + 50], np.float64))
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
