"""What a scenario acts on: a broker that may be hurt, workers of one group, and the stream they read."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.kafka.broker import Kafka
from tests.kafka.chaos.flow import Flow
from tests.kafka.service import Service, Worker
from tests.kafka.topics import Topics, until

RATE: Final = 1000  # records a second: always work in hand, and few enough to check every one afterwards
PATIENCE_S: Final = 150.0  # for everything that takes as long as it takes; a session lasts 45 s
SECRET: Final = "wild-horses"

DEFAULTS: Final[Mapping[str, object]] = {
    "kafka": {"sasl.password": SECRET},  # of no use without SASL, and must not be seen for all that
    "input": {"batch_max": 50},
    "checkpoint": {"interval": "300ms"},
}


class Stage:
    """`services[slot]` has the configuration and the directory of one slot, as a pod of its own would."""

    def __init__(
        self,
        kafka: Kafka,
        name: str,
        directory: Path,
        seed: int,
        count: int = 1,
        partitions: int = 1,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        self.kafka, self.directory, self.seed = kafka, directory, seed
        self.count, self.partitions = count, partitions
        self.rng = random.Random(seed)
        self.topics = Topics(kafka.bootstrap)
        first = Service(name, self.topics, directory / "0", DEFAULTS)
        first.configure(**settings or {})
        self.services: dict[int, Service] = {0: first}
        self.pods: list[Service] = [first]  # every directory that workers ran on, whether or not it is judged
        self.input, self.group, self.exactly_once = first.input, name, first.config.get("guarantee") != "at_least_once"
        self.faults = 0
        self.notes: list[str] = []  # what a scenario measured, for its summary
        self._flows: list[Flow] = []
        first.make_topics(partitions)

    @property
    def service(self) -> Service:
        """The only one, or the first."""
        return self.services[0]

    def slot(self, number: int) -> Service:
        if number not in self.services:
            self.services[number] = self._pod(self.service, f"slot-{number}", slot=number)
        return self.services[number]

    def double(self, number: int = 0, on_missing: str = "replay") -> Service:
        """A second pod with the number of a slot that is there, and an empty directory of its own."""
        made = self._pod(self.slot(number), f"double-{len(self.pods)}")
        made.configure(checkpoint={"on_missing": on_missing})
        return made

    def _pod(self, like: Service, name: str, **settings: object) -> Service:
        made = like.twin(name, **settings)
        made.configure(checkpoint={"path": str(made.state)})
        self.pods.append(made)
        return made

    def flow(self, rate: int = RATE) -> Flow:
        """The stream, to be fed in a `with` block, or by the piece."""
        if not self._flows:
            self._flows.append(Flow(self.kafka.bootstrap, self.input, self.partitions, self.seed, rate))
        return self._flows[0]

    def committed(self) -> int:
        """Records of the input that are done with, over all partitions."""
        return sum(self.progress().values())

    def progress(self) -> dict[int, int]:
        """The same by partition."""
        return self.topics.committed(self.group, self.input)

    def until_committed(self, n: int, *workers: Worker) -> None:
        """Wait until n records in all are done with. The workers have to live meanwhile."""
        until(lambda: self.committed() >= n or not all(w.alive for w in workers), f"{n} records done", PATIENCE_S)
        for worker in workers:
            assert worker.alive or self.committed() >= n, f"it ended: {worker.said()[-3000:]}"

    def until_more(self, n: int, *workers: Worker) -> None:
        self.until_committed(self.committed() + n, *workers)

    def work_on(self, seconds: float) -> None:
        """Let things go on for a while: the fault comes at a moment of its own, not at one we wait for."""
        time.sleep(seconds)

    def fault(self, n: int = 1) -> None:
        self.faults += n

    def finish(self, *workers: Worker, by: Callable[[Worker], None] = Worker.stop) -> None:
        """Let these workers do all of what was fed, and stop them, in good order where nothing else is said."""
        for flow in self._flows:
            flow.flush()
        self.until_committed(sum(flow.fed for flow in self._flows), *workers)
        for worker in workers:
            by(worker)

    def summary(self) -> str:
        fed = sum(flow.fed for flow in self._flows)
        return "; ".join([f"{self.faults} faults, {fed} records, {len(self.services)} slots", *self.notes])

    def end(self) -> None:
        for service in self.pods:
            service.end()
