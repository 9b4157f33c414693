"""The pieces of a Grafana dashboard: queries, panels, rows, variables, annotations, and how they are laid out.

Only what Grafana has kept for years is used (classic JSON, schemaVersion 39, core panel types), and no `uid` of a data
source: every query takes the one chosen at the top of the dashboard.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

SERVICE = 'job=~"$job",instance=~"$instance"'
TOPIC = f'{SERVICE},topic=~"$topic"'
LEARNER = f'{SERVICE},learner=~"$learner"'
RATE = "[$__rate_interval]"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
COLUMNS = 24

Json = dict[str, Any]


def steps(*colors: str | float) -> list[Json]:
    """("green", 0.8, "yellow", 1, "red"): green below 0.8, red from 1 on."""
    bounds = [None, *colors[1::2]]
    return [{"color": color, "value": bound} for color, bound in zip(colors[::2], bounds, strict=True)]


def query(expr: str, legend: str, *, instant: bool = False, form: str = "time_series") -> Json:
    return {
        "datasource": SOURCE,
        "editorMode": "code",
        "expr": expr,
        "format": form,
        "instant": instant,
        "legendFormat": legend,
        "range": not instant,
    }


def override(query_letter: str, **properties: Any) -> Json:
    """Draws one query of a panel differently. `__` stands for the dot of a property's name."""
    named = [{"id": name.replace("__", "."), "value": value} for name, value in properties.items()]
    return {"matcher": {"id": "byFrameRefID", "options": query_letter}, "properties": named}


def quantile(q: float, histogram: str, labels: str, by: str = "") -> str:
    """No value, rather than NaN, where nothing was observed, as of a shadow's latency."""
    buckets = f"sum by ({f'le, {by}' if by else 'le'}) (rate({histogram}_bucket{{{labels}}}{RATE}))"
    observed = f"sum by ({by}) (rate({histogram}_count{{{labels}}}{RATE}))"
    return f"histogram_quantile({q}, {buckets} and on ({by}) ({observed} > 0))"


DASHED = {"custom__lineStyle": {"fill": "dash", "dash": [8, 8]}}


def panel(
    kind: str,
    title: str,
    text: str,
    unit: str,
    *queries: Json,
    empty: str,
    width: int = 8,
    height: int = 8,
    colors: Sequence[Json] = (),
    options: Json | None = None,
    custom: Json | None = None,
    overrides: Sequence[Json] = (),
    **defaults: Any,
) -> Json:
    """`text` says what it tells and what to do about it; `empty` stands there while there is no value."""
    thresholds = {"mode": "absolute", "steps": list(colors) or steps("green")}
    return {
        "datasource": SOURCE,
        "description": text,
        "fieldConfig": {
            "defaults": {
                "custom": custom or {},
                "noValue": empty,
                "thresholds": thresholds,
                "unit": unit,
                **defaults,
            },
            "overrides": list(overrides),
        },
        "gridPos": {"h": height, "w": width},
        "options": options or {},
        "targets": [{**asked, "refId": chr(ord("A") + i)} for i, asked in enumerate(queries)],
        "title": title,
        "type": kind,
    }


def stat(title: str, text: str, unit: str, asked: Json, *, sparkline: bool = False, **rest: Any) -> Json:
    options = {
        "colorMode": "value",
        "graphMode": "area" if sparkline else "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "textMode": "auto",
    }
    return panel("stat", title, text, unit, asked, **{"width": 3, "height": 4, "options": options, **rest})


def lines(title: str, text: str, unit: str, *queries: Json, style: Json | None = None, **rest: Any) -> Json:
    """Time series; `style` goes over the usual look of a line."""
    custom = {
        "drawStyle": "line",
        "fillOpacity": 0,
        "lineWidth": 1,
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"group": "A", "mode": "none"},
        "thresholdsStyle": {"mode": "line" if rest.get("colors") else "off"},
    }
    options = {
        "legend": {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    return panel("timeseries", title, text, unit, *queries, custom={**custom, **(style or {})}, options=options, **rest)


def service_stats(width: int) -> list[Json]:
    """What both dashboards say of the service at their top."""
    written = f"max by (instance) (olstream_checkpoint_last_success_timestamp_seconds{{{SERVICE}}})"
    return [
        stat(
            "Lag",
            "How long the oldest unread record has waited, at most. OlstreamBehind fires above 300 s.",
            "s",
            query(f"max(olstream_consumer_lag_seconds{{{TOPIC}}})", "lag"),
            width=width,
            empty="not known",
            colors=steps("green", 60, "yellow", 300, "red"),
        ),
        stat(
            "Last checkpoint",
            "Age of the oldest of the instances' last checkpoints. OlstreamCheckpointStale fires above 600 s.",
            "s",
            query(f"max(time() - {written})", "age"),
            width=width,
            empty="none yet",
            colors=steps("green", 300, "yellow", 600, "red"),
        ),
        stat(
            "Restarts in a day",
            "Starts of all instances after their first.",
            "short",
            query(f"sum(changes(process_start_time_seconds{{{SERVICE}}}[1d]))", "restarts"),
            width=width,
            empty="no instance",
            colors=steps("green", 3, "yellow", 10, "red"),
        ),
    ]


BARS = {"drawStyle": "bars", "fillOpacity": 60, "lineWidth": 0, "stacking": {"group": "A", "mode": "normal"}}
SHARES = {"fillOpacity": 60, "lineWidth": 0, "stacking": {"group": "A", "mode": "percent"}}


def heatmap(title: str, text: str, unit: str, buckets: str, **rest: Any) -> Json:
    """`buckets`: an expression of a histogram's buckets, by `le`."""
    options = {
        "calculate": False,
        "cellGap": 1,
        "color": {
            "exponent": 0.5,
            "fill": "dark-blue",
            "mode": "scheme",
            "reverse": False,
            "scale": "exponential",
            "scheme": "Blues",
            "steps": 64,
        },
        "filterValues": {"le": 1e-9},
        "legend": {"show": True},
        "rowsFrame": {"layout": "auto"},
        "showValue": "never",
        "tooltip": {"mode": "single", "yHistogram": False},
        "yAxis": {"axisPlacement": "left", "unit": unit},
    }
    asked = query(buckets, "{{le}}", form="heatmap")
    return panel("heatmap", title, text, unit, asked, options=options, **rest)


def row(title: str, *panels: Json, collapsed: bool = False) -> Json:
    return {"collapsed": collapsed, "panels": list(panels), "title": title, "type": "row"}


def variable(name: str, label: str, text: str, asked: str, *, several: bool = True) -> Json:
    made = {
        "datasource": SOURCE,
        "definition": asked,
        "description": text,
        "hide": 0,
        "includeAll": several,
        "label": label,
        "multi": several,
        "name": name,
        "options": [],
        "query": {"query": asked, "refId": name},
        "refresh": 2,  # whenever the time range changes
        "regex": "",
        "skipUrlSync": False,
        "sort": 1,
        "type": "query",
    }
    return made | {"allValue": ".+", "current": {"text": ["All"], "value": ["$__all"]}} if several else made


def variables() -> list[Json]:
    source = {
        "hide": 0,
        "includeAll": False,
        "label": "Data source",
        "multi": False,
        "name": "datasource",
        "options": [],
        "query": "prometheus",
        "refresh": 1,
        "regex": "",
        "skipUrlSync": False,
        "type": "datasource",
    }
    service = "One service, that is one consumer group."
    slot = "One worker: a slot with a model of its own."
    return [
        source,
        variable("job", "Job", service, "label_values(olstream_build_info, job)"),
        variable("instance", "Instance", slot, 'label_values(olstream_build_info{job=~"$job"}, instance)'),
        variable("learner", "Learner", "By name.", f"label_values(olstream_learner_info{{{SERVICE}}}, learner)"),
        variable(
            "topic", "Topic", "Of the input.", f"label_values(olstream_messages_consumed_total{{{SERVICE}}}, topic)"
        ),
    ]


def annotation(name: str, color: str, expr: str, title: str, text: str, *, value_is_time: bool = False) -> Json:
    """`value_is_time`: each value is the moment itself, in milliseconds; else a mark stands where there is a value."""
    return {
        "datasource": SOURCE,
        "enable": True,
        "expr": expr,
        "hide": False,
        "iconColor": color,
        "name": name,
        "textFormat": text,
        "titleFormat": title,
        "useValueForTime": value_is_time,
    }


def marks() -> list[Json]:
    champion = f'olstream_learner_info{{{SERVICE},role="champion"}}'
    restores = f'olstream_restores_total{{{SERVICE},result!="fresh"}}'
    start = f"process_start_time_seconds{{{SERVICE}}}"
    return [
        annotation(
            "Drift",
            "red",
            f"olstream_drift_last_detection_timestamp_seconds{{{LEARNER}}} * 1000",
            "Drift: {{learner}}",
            "{{detector}} on {{signal}}, {{instance}}",
            value_is_time=True,
        ),
        # The moment itself, so it is right however long the worker was gone and however wide the steps are.
        annotation("Start", "blue", f"{start} * 1000", "Start", "{{instance}}", value_is_time=True),
        annotation(
            "Reload",
            "purple",
            f"sum by (instance, result) (increase(olstream_config_reloads_total{{{SERVICE}}}{RATE})) > 0",
            "Configuration: {{result}}",
            "{{instance}}",
        ),
        # An info metric never changes its value: a new champion is a series that was not there, in a service that was.
        annotation(
            "Champion",
            "purple",
            f"count by (job, learner) ({champion})"
            f" unless on (job, learner) ({champion} offset 10m) and on (job) ({champion} offset 10m)",
            "New champion: {{learner}}",
            "{{job}}",
        ),
        # A start counts its restore before anybody has seen a 0, so it is marked by the time of the start.
        annotation(
            "Restore",
            "orange",
            f"(({start} and on (job, instance) ({restores} > 0)) * 1000)",
            "Restored",
            "{{instance}}",
            value_is_time=True,
        ),
        annotation(
            "Restore while running",
            "orange",
            f"sum by (instance, result) (increase({restores}{RATE})) > 0",
            "Restored while running: {{result}}",
            "{{instance}}",
        ),
    ]


def dashboard(uid: str, title: str, text: str, rows: Sequence[Json], more_variables: Sequence[Json] = ()) -> Json:
    return {
        "annotations": {"list": marks()},
        "description": text,
        "editable": False,
        "graphTooltip": 1,
        "id": None,
        "links": [
            {
                "asDropdown": False,
                "icon": "external link",
                "includeVars": True,
                "keepTime": True,
                "tags": ["olstream"],
                "targetBlank": False,
                "title": "olstream",
                "tooltip": "The other dashboard, with the same choices",
                "type": "dashboards",
                "url": "",
            }
        ],
        "panels": list(_laid_out(rows)),
        "refresh": "30s",
        "schemaVersion": 39,
        "tags": ["olstream"],
        "templating": {"list": [*variables(), *more_variables]},
        "time": {"from": "now-6h", "to": "now"},
        "timepicker": {},
        "timezone": "browser",
        "title": title,
        "uid": uid,
        "version": 1,
    }


def _laid_out(rows: Sequence[Json]) -> Iterator[Json]:
    """Rows from top to bottom with their panels from left to right; a collapsed one holds its panels itself."""
    number, y = count(1), 0
    for made in rows:
        head = {**made, "id": next(number), "gridPos": {"h": 1, "w": COLUMNS, "x": 0, "y": y}, "panels": []}
        placed, end = _in_lines(made["panels"], y + 1, number)
        if made["collapsed"]:
            yield {**head, "panels": placed}
            y += 1
        else:
            yield head
            yield from placed
            y = end


def _in_lines(panels: Sequence[Json], top: int, number: Iterator[int]) -> tuple[list[Json], int]:
    x, y, tallest = 0, top, 0
    placed = []
    for made in panels:
        size = made["gridPos"]
        if x + size["w"] > COLUMNS:
            x, y, tallest = 0, y + tallest, 0
        placed.append({**made, "id": next(number), "gridPos": {**size, "x": x, "y": y}})
        x, tallest = x + size["w"], max(tallest, size["h"])
    return placed, y + tallest
