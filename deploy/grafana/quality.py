"""The dashboard "quality and drift": is what the learners say right, and does the world stay as it was?"""

from __future__ import annotations

from typing import Any

from panels import (
    BARS,
    DASHED,
    LEARNER,
    RATE,
    SHARES,
    Json,
    dashboard,
    heatmap,
    lines,
    override,
    panel,
    quantile,
    query,
    row,
    service_stats,
    stat,
    steps,
    variable,
)

RULED = 'job=~"$job",learner=~"$learner"'  # recorded over all instances
NO_LABELS = "no labels"


def per_scored(counter: str) -> str:
    """Mean of a counter over the measured rows, by learner; no value, rather than NaN, where none is measured."""
    scored = f"sum by (learner) (rate(olstream_scored_events_total{{{LEARNER}}}{RATE}))"
    return f"sum by (learner) (rate({counter}{{{LEARNER}}}{RATE})) / ({scored} > 0)"


def share(part: str, whole: str, by: str = "learner") -> str:
    return f"sum by ({by}) (rate({part}{RATE})) / (sum by ({by}) (rate({whole}{RATE})) > 0)"


def mix(label: str) -> str:
    of = f"rate(olstream_confusion_total{{{LEARNER}}}{RATE})"
    return f"sum by ({label}) ({of}) / ignoring ({label}) group_left () (sum({of}) > 0)"


def ruled(rule: str) -> str:
    return f"{rule}{{{RULED}}}"


def overview() -> Json:
    five, day = ruled("learner:olstream_error_ratio:rate5m"), ruled("learner:olstream_error_ratio:rate1d")
    off, off_day = ruled("learner:olstream_absolute_error:mean5m"), ruled("learner:olstream_absolute_error:mean1d")
    window = f'max without (window) (olstream_windowed_error_ratio{{{LEARNER},window="sliding"}})'
    majority = f'max without (baseline) (olstream_baseline_error_ratio{{{LEARNER},baseline="majority"}})'
    return row(
        "Is it OK?",
        stat(
            "Error now",
            "Share of wrong predictions, each made before its label was seen. Of classifiers.",
            "percentunit",
            query(per_scored("olstream_mistakes_total"), "{{learner}}"),
            sparkline=True,
            empty=NO_LABELS,
            min=0,
            max=1,
        ),
        stat(
            "Error now / last day",
            "Of the last 5 minutes against the last day: 1 is as ever, 2 twice as wrong. In regression of the mean "
            "absolute error. OlstreamQualityDropped fires above 1.5.",
            "suffix:x",
            query(f"{five} / ({day} > 0) or {off} / ({off_day} > 0)", "{{learner}}"),
            empty=NO_LABELS,
            colors=steps("green", 1.2, "yellow", 1.5, "red"),
            decimals=2,
        ),
        stat(
            "Error / commonest class",
            "Error of the last rows (monitor.window) against that of always saying the commonest class: at 1 the model "
            "is worth nothing. The worst instance. OlstreamWorseThanBaseline fires above 1.",
            "suffix:x",
            query(f"max by (learner) ({window} / ({majority} > 0))", "{{learner}}"),
            empty=NO_LABELS,
            colors=steps("green", 0.8, "yellow", 1, "red"),
            decimals=2,
        ),
        stat(
            "Since the last drift",
            "How long ago a detector last found that error or loss has changed.",
            "s",
            query(
                f"time() - max by (learner) (olstream_drift_last_detection_timestamp_seconds{{{LEARNER}}} > 0)",
                "{{learner}}",
            ),
            empty="none met",
            colors=steps("orange", 3600, "green"),
        ),
        stat(
            "Rows a second",
            "Rows that each learner took: predicted, learnt, or both.",
            "cps",
            query(f"sum by (learner) (rate(olstream_events_processed_total{{{LEARNER}}}{RATE}))", "{{learner}}"),
            sparkline=True,
            empty="nothing comes",
        ),
        *service_stats(3),
        panel(
            "state-timeline",
            "Drift",
            "How near each detector is to its threshold: stable below 0.7 of it, drift at it. The nearest instance.",
            "percentunit",
            query(
                f"max by (learner, detector, signal) (olstream_drift_statistic{{{LEARNER}}}"
                f" / (olstream_drift_threshold{{{LEARNER}}} > 0))",
                "{{learner}} {{detector}} {{signal}}",
            ),
            width=24,
            height=6,
            empty="no detector, or too few labels yet",
            colors=steps("green", 0.7, "yellow", 1, "red"),
            options={
                "alignValue": "left",
                "legend": {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": False},
                "mergeValues": True,
                "rowHeight": 0.9,
                "showValue": "never",
                "tooltip": {"mode": "single", "sort": "none"},
            },
            custom={"fillOpacity": 80, "lineWidth": 0},
            color={"mode": "thresholds"},
            min=0,
            mappings=[  # the first that fits counts, so 1 itself is drift
                state("drift", "red", 1, None, 0),
                state("warning", "yellow", 0.7, 1, 1),
                state("stable", "green", None, 0.7, 2),
            ],
        ),
    )


def state(text: str, color: str, above: float | None, below: float | None, index: int) -> Json:
    result = {"color": color, "index": index, "text": text}
    return {"type": "range", "options": {"from": above, "to": below, "result": result}}


def quality() -> Json:
    error = f"olstream_windowed_error_ratio{{{LEARNER}}}"
    faded = f'{LEARNER},window="fading"'
    ahead = f"olstream_shadow_error_difference{{{faded}}} and on (job, instance, learner) {error}"
    sure = f"olstream_shadow_mcnemar{{{faded}}} or olstream_shadow_paired{{{faded}}}"
    hits = f'olstream_confusion_total{{{LEARNER},label="$class",predicted="$class"}}'
    said, there = (f'olstream_confusion_total{{{LEARNER},{side}="$class"}}' for side in ("predicted", "label"))
    return row(
        "Quality",
        lines(
            "Error against the baselines",
            "In all, over the last rows, and faded; the mean over the instances. Dashed: who always says the commonest "
            "class, and the last label.",
            "percentunit",
            query(f"avg by (learner, window) ({error})", "{{learner}} {{window}}"),
            query(
                f"min by (learner, baseline) (olstream_baseline_error_ratio{{{LEARNER}}})", "{{learner}} {{baseline}}"
            ),
            overrides=[override("B", **DASHED)],
            width=12,
            empty=NO_LABELS,
            min=0,
        ),
        lines(
            "Shadows against the champion",
            "Difference in error of classifiers on the same records: below 0 a shadow is better. Dashed, to the right: "
            "McNemar's statistic (in a regression the same of absolute errors). By chance it is above 6.635, where the "
            "shadow is better, or below -6.635 once in a hundred. Both faded, the mean over the instances.",
            "percentunit",
            query(f"avg by (learner, champion) ({ahead})", "{{learner}} against {{champion}}"),
            query(f"avg by (learner, champion) ({sure})", "{{learner}} against {{champion}}, McNemar"),
            overrides=[override("B", **DASHED, custom__axisPlacement="right", unit="short")],
            width=12,
            empty="no shadows, or no labels",
            colors=steps("green", 0, "red"),
        ),
        lines(
            "Mean loss",
            "Of the learner's own loss, before each update. Only comparable between learners of one kind.",
            "short",
            query(per_scored("olstream_loss_total"), "{{learner}}"),
            empty=NO_LABELS,
        ),
        lines(
            "Mean absolute error",
            "Of regressions; dashed the root of the mean squared error, which large errors lift.",
            "short",
            query(per_scored("olstream_absolute_error_total"), "{{learner}}"),
            query(f"sqrt({per_scored('olstream_squared_error_total')})", "{{learner}} squared"),
            overrides=[override("B", **DASHED)],
            empty="no regression, or no labels",
            min=0,
        ),
        lines(
            "Regret",
            "Mean loss over the window less that of the best fixed linear model of it (dashed: that model's). Needs "
            "monitor.hindsight.",
            "short",
            query(f"max by (learner) (olstream_regret{{{LEARNER}}})", "{{learner}}"),
            query(f"max by (learner) (olstream_hindsight_loss{{{LEARNER}}})", "{{learner}} in hindsight"),
            overrides=[override("B", **DASHED)],
            empty="monitor.hindsight is off",
        ),
        lines(
            "Precision and recall of $class",
            "Above the line precision: of what was called $class, how much was. Below it recall: how much of $class "
            "was found. Of declared classes.",
            "percentunit",
            query(share(hits, said), "{{learner}} precision"),
            query(share(hits, there), "{{learner}} recall"),
            overrides=[override("B", custom__transform="negative-Y")],
            empty="no declared classes, or no labels",
            min=-1,
            max=1,
        ),
        panel(
            "table",
            "Confusion",
            "Measured predictions in the time range: a row for each class of the label, a column for each predicted.",
            "short",
            query(
                f"sum by (label, predicted) (increase(olstream_confusion_total{{{LEARNER}}}[$__range]))",
                "{{label}} {{predicted}}",
                instant=True,
                form="table",
            ),
            empty="0",
            options={"cellHeight": "sm", "showHeader": True},
            custom={"align": "auto", "cellOptions": {"mode": "gradient", "type": "color-background"}, "inspect": False},
            color={"mode": "continuous-BlPu"},
            decimals=0,
        )
        | {
            "transformations": [
                {
                    "id": "groupingToMatrix",
                    "options": {"columnField": "predicted", "rowField": "label", "valueField": "Value"},
                }
            ]
        },
        heatmap(
            "Margins before the update",
            "Below 0 is wrong; from 1 on a hinge loss is 0. A cloud that sinks towards 0 is drift before it is error.",
            "short",
            f"sum by (le) (rate(olstream_margin_bucket{{{LEARNER}}}{RATE}))",
            empty=NO_LABELS,
        ),
    )


def drift() -> Json:
    seen = f"olstream_features_seen_total{{{LEARNER}}}"
    both = "{{learner}} {{detector}} {{signal}}"
    updated = f'olstream_updates_total{{{LEARNER},result="updated"}}'
    return row(
        "Drift",
        lines(
            "Detections",
            "Changes of error or loss that a detector found.",
            "short",
            query(
                f"sum by (learner, detector, signal) (increase(olstream_drift_detections_total{{{LEARNER}}}{RATE}))",
                both,
            ),
            style=BARS,
            empty="no detector",
            min=0,
        ),
        lines(
            "Statistic and threshold",
            "Drift is where the statistic meets its threshold (dashed). The highest of the instances.",
            "short",
            query(f"max by (learner, detector, signal) (olstream_drift_statistic{{{LEARNER}}})", both),
            query(f"max by (learner, detector, signal) (olstream_drift_threshold{{{LEARNER}}})", f"{both} threshold"),
            overrides=[override("B", **DASHED)],
            empty="no detector, or too few labels yet",
        ),
        lines(
            "Rows a detector looks back on",
            "ADWIN's window grows while nothing changes and is cut at a change; where errors rose, that is drift.",
            "short",
            query(f"min by (learner, detector, signal) (olstream_drift_window_events{{{LEARNER}}})", both),
            empty="no detector that has a window",
            min=0,
        ),
        lines(
            "Share of rows that changed the model",
            "How surprised the learner is. Where only mistakes and near misses change the model, a rise comes before "
            "that of the error.",
            "percentunit",
            query(share(updated, f"olstream_updates_total{{{LEARNER}}}"), "{{learner}}"),
            empty=NO_LABELS,
            min=0,
            max=1,
        ),
        lines(
            "Classes of the labels",
            "Their shares. Of declared classes.",
            "percentunit",
            query(mix("label"), "{{label}}"),
            style=SHARES,
            empty="no declared classes, or no labels",
            min=0,
        ),
        lines(
            "Classes predicted",
            "Their shares, of the same rows: away from those of the labels, the model leans to one side.",
            "percentunit",
            query(mix("predicted"), "{{predicted}}"),
            style=SHARES,
            empty="no declared classes, or no labels",
            min=0,
        ),
        lines(
            "New and shared features",
            "Share of features met for the first time, and of those in a shared bucket, because names_max is reached "
            "(dashed). A jump of the first: something upstream was renamed.",
            "percentunit",
            query(share(f"olstream_features_novel_total{{{LEARNER}}}", seen), "{{learner}} new"),
            query(share(f"olstream_features_overflow_total{{{LEARNER}}}", seen), "{{learner}} shared"),
            overrides=[override("B", **DASHED)],
            width=6,
            empty="nothing comes",
            min=0,
        ),
        lines(
            "Features a row",
            "Mean number. A fall: a field went missing.",
            "short",
            query(
                share(f"olstream_event_features_sum{{{LEARNER}}}", f"olstream_event_features_count{{{LEARNER}}}"),
                "{{learner}}",
            ),
            width=6,
            empty="nothing comes",
            min=0,
        ),
        lines(
            "Norm of the weights",
            "Growth without end: a learning rate, C or r too high, or a feature that needs scaling.",
            "short",
            query(f"max by (learner) (olstream_model_weights_norm{{{LEARNER}}})", "{{learner}}"),
            width=6,
            empty="not known",
            min=0,
        ),
        lines(
            "Mean variance of the weights",
            "Of learners that have variances: near 0 they have grown sure, and learn no more from drift "
            "(variance_floor, forget).",
            "short",
            query(f"max by (learner) (olstream_model_variance_mean{{{LEARNER}}})", "{{learner}}"),
            width=6,
            empty="no learner with variances",
            min=0,
        ),
        collapsed=True,
    )


def labels() -> Json:
    return row(
        "Late labels",
        lines(
            "Delay",
            "From a prediction's features to its label: half, and 95 of 100, wait no longer.",
            "s",
            query(quantile(0.5, "olstream_label_delay_seconds", LEARNER, "learner"), "{{learner}} p50"),
            query(quantile(0.95, "olstream_label_delay_seconds", LEARNER, "learner"), "{{learner}} p95"),
            empty="no late labels",
            min=0,
        ),
        lines(
            "Predictions that wait for a label",
            "And labels that wait for their row. At most join.pending_max; the oldest give way.",
            "short",
            query(f"sum by (learner) (olstream_pending_predictions{{{LEARNER}}})", "{{learner}}"),
            empty="none",
            min=0,
        ),
        lines(
            "Labels that met no prediction",
            "expired: a prediction waited in vain; unknown: a label did; duplicate: a label too many.",
            "short",
            query(
                f"sum by (learner, reason) (increase(olstream_labels_unmatched_total{{{LEARNER}}}{RATE}))",
                "{{learner}} {{reason}}",
            ),
            style=BARS,
            empty="none",
            min=0,
        ),
        collapsed=True,
    )


def built() -> dict[str, Any]:
    classes = variable(
        "class",
        "Class",
        "For precision and recall.",
        f"label_values(olstream_confusion_total{{{LEARNER}}}, label)",
        several=False,
    )
    text = "Error and loss of each learner, measured before it learns, against baselines; drift; late labels."
    rows = [overview(), quality(), drift(), labels()]
    return dashboard("olstream-quality", "olstream: quality and drift", text, rows, [classes])
