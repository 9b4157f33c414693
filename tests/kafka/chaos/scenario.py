"""The scenarios by name, and how one of them is run."""

from __future__ import annotations

import importlib
import tempfile
import time
import traceback
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.kafka.broker import Kafka
from tests.kafka.chaos.stage import Stage
from tests.kafka.chaos.verdict import assert_logs_are_clean

# Of this package.
MODULES: Final = (
    "crashes",
    "kills",
    "brokers",
    "networks",
    "moves",
    "groups",
    "scaling",
    "topics",
    "offsets",
    "retention",
    "records",
    "disks",
    "states",
    "clocks",
    "soups",
    "soaks",
)
_scenarios: dict[str, Scenario] = {}


class NotHere(Exception):
    """This machine, or this user, does not allow what a scenario has to do; the sentence says what."""


@dataclass(frozen=True)
class Scenario:
    """What is done to how many workers; `count` is how often where nobody says otherwise."""

    name: str
    act: Callable[[Stage], None]
    partitions: int
    nodes: int
    count: int
    bounded: bool
    settings: Mapping[str, object]

    @property
    def told(self) -> str:
        return (self.act.__doc__ or "").split("\n")[0]

    def run(self, kafka: Kafka, seed: int, count: int | None = None) -> Stage:
        """On a broker with as many nodes as it needs; raises where something is not as promised, or NotHere."""
        name = f"{self.name.replace('_', '-')[:40]}-{uuid.uuid4().hex[:8]}"
        with tempfile.TemporaryDirectory(prefix=f"olstream-{self.name}-") as directory:
            stage = Stage(kafka, name, Path(directory), seed, count or self.count, self.partitions, self.settings)
            try:
                self.act(stage)
                assert_logs_are_clean(stage)
            finally:
                stage.end()
        return stage


def scenario(
    partitions: int = 1, nodes: int = 1, count: int = 1, bounded: bool = True, **settings: object
) -> Callable[[Callable[[Stage], None]], Callable[[Stage], None]]:
    """Register a scenario. `bounded`: short enough for every run of the tests. `settings` are the workers'."""

    def register(act: Callable[[Stage], None]) -> Callable[[Stage], None]:
        name = act.__name__
        _scenarios[name] = Scenario(name, act, partitions, nodes, count, bounded, settings)
        return act

    return register


def scenarios() -> dict[str, Scenario]:
    for module in MODULES:
        importlib.import_module(f"tests.kafka.chaos.{module}")
    return _scenarios


def perform(chosen: Iterable[Scenario], seed: int, count: int | None, say: Callable[[str], None]) -> int:
    """Run them one after the other, each kind of cluster started once; how many of them failed."""
    failed = 0
    for nodes, each in _by_nodes(chosen).items():
        with Kafka(nodes) as kafka:
            for one in each:
                start_s = time.monotonic()
                say(f"{one.name} seed {seed}: {one.told}")
                try:
                    stage = one.run(kafka, seed, count)
                except NotHere as reason:
                    say(f"  NOT DONE: {reason}")
                except Exception as error:
                    failed += 1
                    at = traceback.extract_tb(error.__traceback__)[-1]
                    say(f"  FAILED: {type(error).__name__} at {Path(at.filename).name}:{at.lineno}: {error}")
                    kafka.start_what_is_down()
                else:
                    say(f"  good: {stage.summary()}, {time.monotonic() - start_s:.0f} s")
    return failed


def _by_nodes(chosen: Iterable[Scenario]) -> dict[int, list[Scenario]]:
    found: dict[int, list[Scenario]] = {}
    for one in chosen:
        found.setdefault(one.nodes, []).append(one)
    return found
