"""Documents of /status.json made by hand, for tests that look at a page: every key, and numbers with a plot."""

from __future__ import annotations

import math
import random
from typing import Any

NOW_S = 1_796_032_800.0

Document = dict[str, Any]


def document(learners: Document | None = None, **others: Any) -> Document:
    """A service that is well. `others` take the place of what is at the top."""
    return {
        "version": "0.1.0",
        "python": "3.11.2",
        "librdkafka": "2.16.0",
        "started": NOW_S - 95_000.0,
        "now": NOW_S,
        "group": "risk",
        "slot": 2,
        "guarantee": "exactly_once",
        "live": {"ok": True, "detail": "The loop came round 0.1 s ago."},
        "ready": {"ok": True, "detail": "Restored, 3 partitions assigned."},
        "learners": {"fraud": learner()} if learners is None else learners,
        "topics": {"card-events": topic(3)},
        "commits": {"committed": 4711, "aborted": 2, "resolved_committed": 0, "resolved_resent": 0, "lost": 0},
        "checkpoint": {"written": NOW_S - 12.0, "size_bytes": 1_234_567, "uncheckpointed": 840, "failures": 0},
        "process": {"rss_bytes": 187_000_000},
        "config": {"group": "risk", "learners": {"fraud": {"algorithm": "arow"}}, "kafka": {"sasl.password": "***"}},
        **others,
    }


def topic(partitions: int, **others: Any) -> Document:
    lag = {str(i): (i * 37) % 11 * (i % 3) for i in range(partitions)}
    return {
        "consumed": 1_203_456,
        "rejected": {"bad_json": 12, "unknown_label": 3},
        "assigned": list(range(partitions)),
        "lag": lag,
        "lag_seconds": 1.4,
        **others,
    }


def history(start: int, every: int, points: int, jump: int = 0, seed: int = 7, scale: float = 1.0) -> Document:
    """An error that falls, jumps at a row, and falls again; baselines beside it."""
    noise = random.Random(seed)
    labelled = [start + every * i for i in range(points + 1)]
    error, majority, no_change = [], [], []
    for row in labelled[1:]:
        since = row - jump if row > jump else row
        level = 0.06 + 0.25 * math.exp(-since / 9000)
        spread = 0.5 / math.sqrt(every)
        error.append(scale * max(0.0, level + noise.gauss(0.0, spread * 0.5)))
        majority.append(max(0.0, 0.21 + (0.06 if row > jump else 0.0) + noise.gauss(0.0, spread * 0.6)))
        no_change.append(max(0.0, 0.33 + noise.gauss(0.0, spread * 0.6)))
    updated = [min(1.0, 1.6 * e / scale) for e in error]
    curve = {"every": every, "labelled": labelled, "error": error, "loss": [2.1 * e for e in error], "updated": updated}
    return {**curve, "majority": majority, "no_change": no_change}


def learner(seed: int = 7, **others: Any) -> Document:
    """A champion that met a drift at row 81,300."""
    mark = {"labelled": 81_300, "detector": "adwin", "signal": "error"}
    watcher = {
        "detector": "adwin", "signal": "error", "level": 0, "statistic": 0.42, "threshold": 1.0,
        "window_events": 14_208, "detections": 1, "warnings": 0,
    }  # fmt: skip
    return {
        "role": "champion",
        "algorithm": "arow",
        "task": "binary",
        "seen": 121_904,
        "labelled": 120_000,
        "updates": 40_512,
        "updated_share": 0.3376,
        "produced": 121_904,
        "mae": None,
        "error": {"sliding": 0.064, "fading": 0.0652, "total": 0.0941},
        "loss": {"sliding": 0.1523, "fading": 0.155, "total": 0.2412},
        "baseline": {"majority": 0.2312, "no_change": 0.3305},
        "hindsight": {"loss": 0.1431, "regret": 0.0092},
        "weights_norm": 3.812,
        "variance_mean": 0.0423,
        "features": 214,
        "classes": 2,
        "size_bytes": 18_432,
        "drift": {
            "level": 0, "detections": 1, "warnings": 0, "last": {**mark, "ago": 38_700}, "detectors": [watcher],
        },
        "history": {
            "recent": history(96_000, 100, 240, 81_300, seed), "life": history(0, 512, 234, 81_300, seed + 1),
        },
        "marks": [mark],
        "confusion": {"classes": ["ok", "fraud"], "counts": [[90_120, 4_310], [6_982, 18_588]]},
        "pending": 0,
        "versus": {},
        **others,
    }  # fmt: skip


def fresh(**others: Any) -> Document:
    """Nothing has come yet."""
    nothing = {"sliding": None, "fading": None, "total": None}
    none = {"every": 1, "labelled": [], "error": [], "loss": [], "majority": [], "no_change": [], "updated": []}
    return learner(
        seen=0, labelled=0, updates=0, produced=0, updated_share=None, error=nothing, loss=nothing,
        baseline={"majority": None, "no_change": None}, hindsight=None, weights_norm=None, variance_mean=None,
        features=None, classes=None, size_bytes=None,
        drift={"level": 0, "detections": 0, "warnings": 0, "last": None, "detectors": []},
        history={"recent": none, "life": none}, marks=[], confusion=None, **others,
    )  # fmt: skip


def empty() -> Document:
    """A service that has just been started."""
    return document(
        {"fraud": fresh()},
        started=NOW_S - 3.0,
        ready={"ok": False, "detail": "Not restored yet: starting."},
        topics={"card-events": topic(0, consumed=0, rejected={}, lag={}, lag_seconds=None)},
        commits={},
        checkpoint={"written": None, "size_bytes": None, "uncheckpointed": None, "failures": 0},
    )


def regression(seed: int = 5) -> Document:
    """Numbers are predicted: no baselines, no confusion, an error in the label's own unit."""
    curves = {
        "recent": history(96_000, 100, 240, 81_300, seed, 400.0), "life": history(0, 512, 234, 81_300, seed + 1, 400.0),
    }  # fmt: skip
    for curve in curves.values():
        curve["majority"] = curve["no_change"] = []
    return learner(
        algorithm="pa2", task="regression", mae=37.61, error={"sliding": None, "fading": None, "total": None},
        absolute_error={"sliding": 31.5, "fading": 32.25, "total": 37.61},
        baseline={"majority": None, "no_change": None}, classes=None, confusion=None, history=curves,
        variance_mean=None,
    )  # fmt: skip


def compared(rows: int, verdict: str, **figures: tuple[float | None, float | None]) -> Document:
    """A shadow against a champion; figures are (total, faded)."""
    none = dict.fromkeys(("difference", "mcnemar", "paired", "q"), (None, None))
    pairs = {figure: {"total": total, "fading": fading} for figure, (total, fading) in (none | figures).items()}
    return {"rows": rows, "verdict": verdict, **pairs}


def shadowed() -> Document:
    """A champion with two shadows, one of which is in drift, and a learner that is no better than guessing."""
    mark = {"labelled": 119_400, "detector": "ddm", "signal": "error"}
    watchers = [
        {"detector": "adwin", "signal": "error", "level": 1, "statistic": 0.92, "threshold": 1.0,
         "window_events": 9_100, "detections": 1, "warnings": 3},
        {"detector": "ddm", "signal": "error", "level": 2, "statistic": 0.081, "threshold": 0.0795,
         "window_events": None, "detections": 1, "warnings": 2},
    ]  # fmt: skip
    drifting = learner(
        11, role="shadow", algorithm="pa1", error={"sliding": 0.091, "fading": 0.088, "total": 0.1288},
        drift={"level": 2, "detections": 2, "warnings": 5, "last": {**mark, "ago": 600}, "detectors": watchers},
        marks=[{"labelled": 81_400, "detector": "adwin", "signal": "error"}, mark],
        hindsight={"loss": 0.1431, "regret": 0.0612},
        versus={"fraud": compared(
            120_000, "worse", difference=(0.0347, 0.0228), mcnemar=(-1204.5, -11.32), q=(-0.3142, -0.2201),
        )},
    )  # fmt: skip
    late = learner(
        13, role="shadow", algorithm="scw", seen=30_000, labelled=29_000, updates=5_000, updated_share=0.1724,
        history={"recent": history(5_000, 100, 240, 0, 13), "life": history(0, 128, 226, 0, 14)}, marks=[],
        drift={"level": 0, "detections": 0, "warnings": 0, "last": None, "detectors": watchers[:1]}, hindsight=None,
        versus={"fraud": compared(29_000, "no difference", difference=(-0.0002, 0.0), q=(0.0101, None))},
    )  # fmt: skip
    behind = learner(
        17, algorithm="perceptron", error={"sliding": 0.231, "fading": 0.24, "total": 0.244}, hindsight=None,
        baseline={"majority": 0.2312, "no_change": 0.3305}, variance_mean=None,
    )  # fmt: skip
    return document(
        {"fraud": learner(), "fraud-next": drifting, "fraud-late": late, "price": regression(), "region": behind},
        topics={"card-events": topic(12), "labels": topic(3, consumed=220_100, rejected={}, lag_seconds=0.2)},
        config={
            "group": "risk",
            "routes": [{"when": {"topic": "card-events"}, "learner": "fraud", "shadows": ["fraud-next", "fraud-late"]}],
            "learners": {"fraud": {"algorithm": "arow", "params": {"r": 0.5}}, "price": {"algorithm": "pa2"}},
            "kafka": {"bootstrap.servers": "broker:9092", "sasl.password": "***"},
        },
    )


def crowd(learners: int = 20, partitions: int = 300, classes: int = 1000) -> Document:
    """Many of everything."""
    names = [f"class {i}" for i in range(classes)]
    counts = [[(classes - i) * (9 if i == j else (i * j) % 2) for j in range(classes)] for i in range(classes)]
    many = {
        f"learner-{i}": learner(i, role="champion" if i % 4 == 0 else "shadow", task="multiclass", classes=classes)
        for i in range(learners)
    }
    many["learner-0"]["confusion"] = {"classes": names, "counts": counts}
    return document(many, topics={"card-events": topic(partitions)})
