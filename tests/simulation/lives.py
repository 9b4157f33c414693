"""Lives of a worker on a broker in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Event
from typing import Any

from olstream.config import Config
from olstream.io.starts import begin
from olstream.loop import Loop
from olstream.pipeline import Pipeline
from olstream.ports import Lost, Source
from olstream.recover import Recovered, Recovery
from tests.fakes import (
    Crash,
    FakeCheckpoints,
    FakeClock,
    FakeInputs,
    FakeJournal,
    FakePlainSink,
    FakeSink,
    FakeSource,
    FakeStore,
    SilentWatch,
    World,
    digests,
)


def is_done(world: World) -> bool:
    return all(world.committed.get(at, 0) == len(values) for at, values in world.inputs.items())


def sink_of(world: World, config: Config) -> FakeSink:
    return (FakeSink if config.guarantee == "exactly_once" else FakePlainSink)(world, 0)


def recover(world: World, config: Config, facts: Mapping[str, Any] | None = None) -> Recovered:
    return recovery(world, config, sink_of(world, config), facts).recover()


def recovery(world: World, config: Config, sink: FakeSink, facts: Mapping[str, Any] | None = None) -> Recovery:
    run = f"run-{world.calls}"
    inputs, there = FakeInputs(world), {"run": run, **(facts or {})}
    return Recovery(
        config, run, FakeStore(world), sink, FakeJournal(world), inputs, there, begin, lambda _chunk, _done: None
    )


def begun(world: World, config: Config, source: Callable[[], Source], sink: FakeSink | None = None) -> Loop:
    """A life that has recovered, and then joins with `source`. Recovery has a sink of its own where one is given."""
    own = sink_of(world, config)
    start = recovery(world, config, own)
    recovered = start.recover()
    return Loop(
        config,
        Pipeline(config, recovered.models, offsets=recovered.position.offsets),
        recovered.position,
        start.run_id,
        source(),
        sink or own,
        FakeCheckpoints(config, FakeStore(world), recovered.facts),
        FakeClock(),
        SilentWatch(),  # type: ignore[arg-type]
        lambda: FakeInputs(world),
    )


def live(
    world: World, config: Config, seed: int = 0, source: Callable[[World, int], FakeSource] = FakeSource
) -> dict[str, str]:
    """One life of the process: recover, then work until the input is finished. The digests at its end."""
    loop = begun(world, config, lambda: source(world, seed))
    while not is_done(world):
        loop.step()
    stop = Event()
    stop.set()
    loop.run(stop)
    return digests(loop.pipeline.models)


def live_through(world: World, config: Config) -> dict[str, str]:
    """Life after life until one of them ends well."""
    for seed in range(1000):
        try:
            return live(world, config, seed)
        except (Crash, Lost):
            world.crash_at = world.lose_at = -1
    raise AssertionError("it never ended")
