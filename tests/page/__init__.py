"""A service that is nothing but metrics and models, for tests that read its page."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from prometheus_client.exposition import generate_latest

from olstream.config import Config
from olstream.health import Health
from olstream.messages import Example
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
        self.metrics.consumed("events", 0, np.full(len(examples), self.now_s * 1000))
        self.metrics.rows(learner, rows)
        self.metrics.tell()
        for reject in rows.rejects.values():
            self.metrics.rejected("events", reject.reason)
        self.metrics.produced(learner, np.full(len(examples), self.now_s * 1000))
        self.metrics.committed()

    def page(self) -> str:
        self.metrics.board.ask(0.0)
        self.metrics.standings(self.models.values())
        return generate_latest(self.metrics.registry).decode()

    def samples(self) -> dict[str, float]:
        """{series: value} of our own metrics."""
        pairs = (line.rsplit(" ", 1) for line in self.page().splitlines() if line.startswith("olstream_"))
        return {series.removeprefix("olstream_"): float(value) for series, value in pairs}


def example(label: object = None, weight: float = 1.0, **features: float | str) -> Example:
    return Example(features=features or {"x": 1.0}, label=label, weight=weight)  # type: ignore[arg-type]


def names(samples: Iterable[str]) -> set[str]:
    return {series.partition("{")[0] for series in samples}
