"""What a running service says about itself: one JSON document without secrets."""

from __future__ import annotations

import platform
from copy import copy
from dataclasses import asdict
from operator import itemgetter
from typing import Any

from olstream.alarms import DRIFT, MARKS_MAX
from olstream.config import LearnerConfig
from olstream.families import confused
from olstream.hidden import HIDDEN, NAMES, USER_IN_URL
from olstream.margins import EDGES
from olstream.metrics import Metrics
from olstream.route import rivals
from olstream.standing import Standing


def describe(metrics: Metrics) -> dict[str, Any]:
    """The document of /status.json. What is not known yet is null; times are epoch seconds."""
    metrics = copy(metrics)  # as of one moment: the configuration may change under us
    config, families = metrics.config, metrics.families
    live, ready = metrics.health.live(), metrics.health.ready()
    return {
        "version": metrics.version,
        "python": platform.python_version(),
        "librdkafka": metrics.librdkafka,
        "started": metrics.started_s,
        "now": metrics.now(),
        "group": config.group,
        "slot": config.slot,
        "guarantee": config.guarantee,
        "live": {"ok": live[0], "detail": live[1]},
        "ready": {"ok": ready[0], "detail": ready[1]},
        "learners": {name: _learner(metrics, name) for name in config.learners},
        "topics": {topic: _topic(metrics, topic) for topic in config.input.topics},
        "commits": {outcome: int(n) for (outcome,), n in families.commits.values().items()},
        "checkpoint": {
            "written": families.checkpoint_last.value,
            "size_bytes": families.checkpoint_bytes.value,
            "uncheckpointed": families.uncheckpointed.value,
            "failures": int(sum(families.checkpoint_failures.values().values())),
        },
        "process": {"rss_bytes": metrics.registry.get_sample_value("process_resident_memory_bytes")},
        "config": redacted(config.model_dump(mode="json", by_alias=True)),
    }


def _learner(metrics: Metrics, name: str) -> dict[str, Any]:
    """The model's own numbers count its whole life, `produced` this process's."""
    learner = metrics.config.learners[name]
    standing = metrics.board.standings.get(name, Standing())
    return {
        "role": metrics.roles[name],
        "algorithm": learner.algorithm,
        "task": learner.task,
        "seen": standing.seen,
        "labelled": standing.labelled,
        "updates": standing.updates,
        "produced": int(metrics.families.predictions.at(name).value or 0),
        "error": {window: getattr(standing, f"error_{window}") for window in ("sliding", "fading", "total")},
        "loss": {window: getattr(standing, f"loss_{window}") for window in ("sliding", "fading", "total")},
        "baseline": {"majority": standing.baseline_majority, "no_change": standing.baseline_no_change},
        "mae": standing.absolute_total,
        "absolute_error": {
            window: getattr(standing, f"absolute_{window}") for window in ("sliding", "fading", "total")
        },
        "updated_share": standing.updated_share,
        "margin": _margin(standing),
        "hindsight": _hindsight(metrics, name),
        "features": standing.features,
        "classes": standing.classes,
        "weights_norm": standing.weights_norm,
        "variance_mean": standing.variance_mean,
        "size_bytes": standing.size_bytes,
        "drift": _drift(standing, metrics.config.monitor.window),
        "history": {which: asdict(curve) for which, curve in standing.history.items()},
        "marks": _marks(standing),
        "confusion": _confusion(learner, standing),
        "pending": standing.pending,
        "versus": {
            champion: asdict(compared)
            for champion, compared in standing.versus.items()
            if (name, champion) in rivals(metrics.config)
        },
    }


def _margin(standing: Standing) -> dict[str, Any] | None:
    """Signed, of measured rows, before and after the update; counts up to each of the bounds, and above the last."""
    if standing.margin_before is None:
        return None
    before, after = standing.margins
    means = {"before": standing.margin_before, "after": standing.margin_after}
    return {"mean": means, "bounds": EDGES, "before": before, "after": after}


def _hindsight(metrics: Metrics, name: str) -> dict[str, Any] | None:
    """`rows`: of its window; `ago`: rows that came since."""
    hindsight = metrics.hindsight.get(name)
    if hindsight is None or (found := hindsight.found) is None:
        return None
    return {"loss": found.loss, "regret": found.regret, "rows": found.rows, "ago": hindsight.ago}


def _drift(standing: Standing, window: int) -> dict[str, Any]:
    """`ago`: labelled rows since the last detection. The level stays up while that is within the sliding window."""
    readings, marks = standing.detectors, _marks(standing)
    lately = bool(marks) and standing.labelled - marks[-1]["labelled"] < window
    return {
        "level": DRIFT if lately else max((reading.level for reading in readings), default=0),
        "detections": sum(reading.detections for reading in readings),
        "warnings": sum(reading.warnings for reading in readings),
        "last": {**marks[-1], "ago": standing.labelled - marks[-1]["labelled"]} if marks else None,
        "detectors": [{key: value for key, value in asdict(of).items() if key != "marks"} for of in readings],
    }


def _marks(standing: Standing) -> list[dict[str, Any]]:
    """The last detections, rising."""
    found = [
        {"labelled": labelled, "detector": reading.detector, "signal": reading.signal}
        for reading in standing.detectors
        for labelled in reading.marks
    ]
    return sorted(found, key=itemgetter("labelled"))[-MARKS_MAX:]


def _confusion(learner: LearnerConfig, standing: Standing) -> dict[str, Any] | None:
    classes = confused(learner)
    return {"classes": classes, "counts": standing.confusion} if classes and standing.confusion else None


def _topic(metrics: Metrics, topic: str) -> dict[str, Any]:
    families, behind = metrics.families, metrics.behind
    lag = {partition: n for (of, partition), n in behind.by_partition().items() if of == topic}
    rejected = {reason: int(n) for (of, reason), n in families.rejected.values().items() if of == topic and n}
    return {
        "consumed": int(families.consumed.at(topic).value or 0),
        "rejected": rejected,
        "assigned": sorted(number for of, number in behind.partitions if of == topic),
        "lag": lag,
        "lag_seconds": behind.by_topic().get((topic,)),
    }


def redacted(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration without what its keys' names call secret. A learner has none, and any name."""
    return {key: value if key == "learners" else _redacted(value) for key, value in config.items()}


def _redacted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: HIDDEN if _is_secret(key, under) else _redacted(under) for key, under in value.items()}
    if isinstance(value, list):
        return [_redacted(item) for item in value]
    return USER_IN_URL.sub(HIDDEN, value) if isinstance(value, str) else value


def _is_secret(key: str, value: Any) -> bool:
    return NAMES.search(key) is not None and value is not None and not isinstance(value, dict)
