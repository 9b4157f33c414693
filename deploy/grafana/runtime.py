"""The dashboard "consumer and runtime": do records flow, where does the time go, is the state safe?"""

from __future__ import annotations

from typing import Any

from panels import (
    BARS,
    LEARNER,
    RATE,
    SERVICE,
    SHARES,
    TOPIC,
    Json,
    dashboard,
    heatmap,
    lines,
    quantile,
    query,
    row,
    service_stats,
    stat,
    steps,
)

QUIET = "none"


def increased(counter: str, by: str, labels: str = SERVICE) -> str:
    return f"sum by ({by}) (increase({counter}{{{labels}}}{RATE}))"


def overview() -> Json:
    consumed = f"sum(rate(olstream_messages_consumed_total{{{TOPIC}}}{RATE}))"
    rejected = f"sum(rate(olstream_events_rejected_total{{{TOPIC}}}{RATE}))"
    return row(
        "Is it OK?",
        stat(
            "Ready",
            "Whether every instance is restored, assigned, and hears from Kafka; /ready says what it waits for.",
            "short",
            query(f"min(olstream_ready{{{SERVICE}}})", "ready"),
            width=4,
            empty="no instance",
            colors=steps("red", 1, "green"),
            mappings=[
                {
                    "type": "value",
                    "options": {
                        "0": {"color": "red", "index": 0, "text": "not ready"},
                        "1": {"color": "green", "index": 1, "text": "ready"},
                    },
                }
            ],
        ),
        stat(
            "Records read a second",
            "Of all chosen topics.",
            "cps",
            query(consumed, "read"),
            sparkline=True,
            width=4,
            empty="no instance",
        ),
        stat(
            "Dead letters",
            "Share of the records read that were refused. OlstreamRejects fires above 1 %.",
            "percentunit",
            query(f"{rejected} / ({consumed} > 0)", "refused"),
            width=4,
            empty="nothing comes",
            colors=steps("green", 0.001, "yellow", 0.01, "red"),
            min=0,
            max=1,
        ),
        *service_stats(4),
    )


def flow() -> Json:
    lag = f"olstream_consumer_lag_messages{{{TOPIC}}}"
    return row(
        "Flow",
        lines(
            "In, out, refused",
            "Records read by topic, predictions published by learner, dead letters by topic.",
            "cps",
            query(f"sum by (topic) (rate(olstream_messages_consumed_total{{{TOPIC}}}{RATE}))", "read {{topic}}"),
            query(
                f"sum by (learner) (rate(olstream_predictions_produced_total{{{LEARNER}}}{RATE}))",
                "predicted {{learner}}",
            ),
            query(f"sum by (topic) (rate(olstream_events_rejected_total{{{TOPIC}}}{RATE}))", "refused {{topic}}"),
            width=12,
            empty="no instance",
            min=0,
        ),
        lines(
            "Dead letters by reason",
            "The topic of dead letters has the records themselves, the reason in a header.",
            "short",
            query(f"{increased('olstream_events_rejected_total', 'topic, reason', TOPIC)} > 0", "{{topic}} {{reason}}"),
            style=BARS,
            width=12,
            empty=QUIET,
            min=0,
        ),
        lines(
            "Lag by partition",
            "Committed records that were not read yet. One partition alone: one key too busy, or its worker gone.",
            "short",
            query(f"sum by (topic, partition) ({lag})", "{{topic}}[{{partition}}]"),
            empty="not known",
            min=0,
        ),
        lines(
            "Lag in seconds",
            "How long the oldest unread record has waited, at most.",
            "s",
            query(f"max by (topic) (olstream_consumer_lag_seconds{{{TOPIC}}})", "{{topic}}"),
            empty="not known",
            colors=steps("green", 300, "red"),
            min=0,
        ),
        lines(
            "Time to catch up",
            "At the pace at which lag shrank over 10 minutes; where it does not, a second for each record.",
            "s",
            query(
                f"sum by (topic) ({lag}) / clamp_min(-sum by (topic) (deriv({lag}[10m])), 1)",
                "{{topic}}",
            ),
            empty="not known",
            min=0,
        ),
    )


def times() -> Json:
    turns = f"rate(olstream_batch_messages_sum{{{SERVICE}}}{RATE})"
    per = f"rate(olstream_batch_messages_count{{{SERVICE}}}{RATE})"
    return row(
        "Time",
        heatmap(
            "From record to prediction",
            "From a record's timestamp to its committed prediction; commit_interval is part of it.",
            "s",
            f"sum by (le) (rate(olstream_event_latency_seconds_bucket{{{LEARNER}}}{RATE}))",
            width=12,
            empty="no predictions",
        ),
        lines(
            "From record to prediction, p50 and p99",
            "Half, and 99 of 100, come no later.",
            "s",
            query(quantile(0.5, "olstream_event_latency_seconds", LEARNER, "learner"), "{{learner}} p50"),
            query(quantile(0.99, "olstream_event_latency_seconds", LEARNER, "learner"), "{{learner}} p99"),
            width=12,
            empty="no predictions",
            min=0,
        ),
        lines(
            "Where the loop's time goes",
            "Mostly poll: it waits for records, or for the broker. Mostly learn or decode: it has reached its CPU.",
            "percentunit",
            query(f"sum by (stage) (rate(olstream_stage_seconds_total{{{SERVICE}}}{RATE}))", "{{stage}}"),
            style=SHARES,
            empty="no instance",
            min=0,
        ),
        lines(
            "Records a turn",
            "Mean number; at input.batch_max there is always more waiting.",
            "short",
            query(f"sum({turns}) / (sum({per}) > 0)", "records"),
            empty="nothing comes",
            min=0,
        ),
        lines(
            "Time a turn",
            "Of turns with records: half, and 99 of 100, take no longer.",
            "s",
            query(quantile(0.5, "olstream_batch_duration_seconds", SERVICE), "p50"),
            query(quantile(0.99, "olstream_batch_duration_seconds", SERVICE), "p99"),
            empty="nothing comes",
            min=0,
        ),
    )


def kafka() -> Json:
    return row(
        "Kafka",
        lines(
            "Rebalances",
            "assigned: partitions came; revoked: they were given up in order; lost: the group went on without us.",
            "short",
            query(increased("olstream_rebalances_total", "kind"), "{{kind}}"),
            style=BARS,
            empty="no instance",
            min=0,
        ),
        lines(
            "Errors by code",
            "As librdkafka told them; it tries again by itself.",
            "short",
            query(f"{increased('olstream_kafka_errors_total', 'code')} > 0", "{{code}}"),
            style=BARS,
            empty=QUIET,
            min=0,
        ),
        lines(
            "Writes that failed",
            "Records that the producer or the broker refused, by topic; checkpoints that could not be written.",
            "short",
            query(f"{increased('olstream_produce_failures_total', 'topic, reason')} > 0", "{{topic}} {{reason}}"),
            query(f"{increased('olstream_checkpoint_failures_total', 'reason')} > 0", "checkpoint {{reason}}"),
            style=BARS,
            empty=QUIET,
            min=0,
        ),
        lines(
            "Transactions",
            "aborted: tried again; resolved: the outcome was unknown and found out; lost: the worker recovered.",
            "cps",
            query(f"sum by (outcome) (rate(olstream_commits_total{{{SERVICE}}}{RATE}))", "{{outcome}}"),
            empty="no instance",
            min=0,
        ),
        lines(
            "Since the loop last came round",
            "OlstreamStuck fires above 60 s; /live fails above 30 s.",
            "s",
            query(f"time() - max by (instance) (olstream_last_poll_timestamp_seconds{{{SERVICE}}})", "{{instance}}"),
            empty="not known",
            colors=steps("green", 60, "red"),
            min=0,
        ),
        lines(
            "Partitions held",
            "An instance without any has nothing to do: more slots than partitions.",
            "short",
            query(f"sum by (instance) (olstream_assigned_partitions{{{SERVICE}}})", "{{instance}}"),
            empty="none",
            min=0,
        ),
        collapsed=True,
    )


def state() -> Json:
    wrote = f"rate(olstream_checkpoint_duration_seconds_sum{{{SERVICE}}}{RATE})"
    times = f"rate(olstream_checkpoint_duration_seconds_count{{{SERVICE}}}{RATE})"
    return row(
        "State and resources",
        lines(
            "CPU",
            "Cores in use; the loop has one, the writer of checkpoints another for a moment.",
            "short",
            query(f"sum by (instance) (rate(process_cpu_seconds_total{{{SERVICE}}}{RATE}))", "{{instance}}"),
            width=6,
            empty="no instance",
            min=0,
        ),
        lines(
            "Memory",
            "Resident. Bounded by the configuration: names_max, covariance_max, join.pending_bytes_max.",
            "bytes",
            query(f"sum by (instance) (process_resident_memory_bytes{{{SERVICE}}})", "{{instance}}"),
            width=6,
            empty="no instance",
            min=0,
        ),
        lines(
            "Memory of the models",
            "Of their arrays, the largest instance.",
            "bytes",
            query(f"max by (learner) (olstream_model_bytes{{{LEARNER}}})", "{{learner}}"),
            width=6,
            empty="not known",
            min=0,
        ),
        lines(
            "Features known",
            "Past features.names_max new names share buckets.",
            "short",
            query(f"max by (learner) (olstream_model_features{{{LEARNER}}})", "{{learner}}"),
            width=6,
            empty="not known",
            min=0,
        ),
        lines(
            "Writing a checkpoint",
            "Mean time. The loop goes on meanwhile.",
            "s",
            query(f"sum by (instance) ({wrote}) / (sum by (instance) ({times}) > 0)", "{{instance}}"),
            width=6,
            empty="none written",
            min=0,
        ),
        lines(
            "Size of a checkpoint",
            "Of the last one.",
            "bytes",
            query(f"max by (instance) (olstream_checkpoint_bytes{{{SERVICE}}})", "{{instance}}"),
            width=6,
            empty="none written",
            min=0,
        ),
        lines(
            "Records learnt since the last checkpoint",
            "What a crash would learn again before the worker joins its group.",
            "short",
            query(f"max by (instance) (olstream_uncheckpointed_events{{{SERVICE}}})", "{{instance}}"),
            width=6,
            empty=QUIET,
            min=0,
        ),
        lines(
            "Records left to learn again",
            "Of a start after a crash; 0 once it has joined its group.",
            "short",
            query(f"max by (instance) (olstream_replay_remaining_messages{{{SERVICE}}})", "{{instance}}"),
            width=6,
            empty="not known",
            min=0,
        ),
        collapsed=True,
    )


def built() -> dict[str, Any]:
    text = "Records in and out, lag, latency, where the loop's time goes, Kafka, checkpoints, memory."
    rows = [overview(), flow(), times(), kafka(), state()]
    return dashboard("olstream-runtime", "olstream: consumer and runtime", text, rows)
