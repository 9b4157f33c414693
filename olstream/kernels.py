"""`python -m olstream.kernels [ALGORITHM ...]`: compile what a service may need, as the build of an image does.

These algorithms, or all, for each of their tasks: with their defaults, and with each option of each parameter in
turn. A combination that is left out is compiled when it is first used. What is there already costs nothing.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence

from olstream.config import Config, parse
from olstream.drift import NAMES
from olstream.errors import ConfigError
from olstream.health import Health
from olstream.learners import _cache, base
from olstream.messages import Example
from olstream.metrics import Metrics
from olstream.model import Model


def learners(names: Sequence[str] = ()) -> Iterator[dict[str, object]]:
    """Of these algorithms, or all, as they stand in a configuration."""
    for name in names or base.algorithms():
        algorithm = base.algorithm(name)
        for task in filter(algorithm.takes, base.TASKS):
            for multiclass in ("direct", "one_vs_rest") if task == "multiclass" else ("direct",):
                for params in _params(algorithm, task):
                    yield {"algorithm": name, "task": task, "multiclass": multiclass, "params": params}


def _params(algorithm: base.Algorithm, task: base.Task) -> Iterator[Mapping[str, object]]:
    yield {}
    for param in algorithm.params_of(task):
        options = param.options if isinstance(param, base.Choice) else (True,) if isinstance(param, base.Flag) else ()
        yield from ({param.name: option} for option in options if option != param.default)


def services(names: Sequence[str] = ()) -> Iterator[Config]:
    """A service for each learner, with every drift detector; options that do not go together are left out."""
    for learner in learners(names):
        learner["scale"] = "standard"
        try:
            text = json.dumps({"learners": {"model": learner}, "monitor": {"drift": list(NAMES)}})
            yield parse(text, "kernels", {})  # JSON is YAML
        except ConfigError:
            continue


def compile_for(config: Config) -> None:
    """All that rows of this service run through."""
    for name, learner in config.learners.items():
        model = Model(name, learner, config.monitor)
        labels = (0.0, 1.0) if learner.task == "regression" else ("a", "b")
        features = {"x": 1.0, "y": "text"}
        model.predict_then_update([Example(features=features, label=label) for label in labels])
        model.predict([Example(features=features)])
        model.digest()
    Metrics(config, Health()).warm_up()


def main() -> None:
    started_s, configs = time.monotonic(), list(services(sys.argv[1:]))
    for config in configs:
        compile_for(config)
    print(f"{len(configs)} learners in {time.monotonic() - started_s:.0f} s; their kernels are in {_cache.own()}")


if __name__ == "__main__":
    main()
