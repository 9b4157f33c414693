"""Feeds a topic just ahead of the worker that reads it, so that whenever it is killed it is at work."""

from __future__ import annotations

from tests.kafka.beside import Beside
from tests.kafka.service import Service

AHEAD = 1500  # records between what is committed and what is in the topic


class Feeder(Beside):
    """A thread that keeps `AHEAD` records waiting until all `values` are in the topic."""

    def __init__(self, service: Service, values: list[bytes]) -> None:
        super().__init__()
        self._service, self._values = service, values
        self.committed = 0  # what the worker had committed when last seen
        self.fed = 0

    def _work(self) -> None:
        while not self._ended.is_set():
            self.committed = self._service.committed()
            until = min(self.committed + AHEAD, len(self._values))
            if until > self.fed:
                self._service.topics.produce(self._service.input, self._values[self.fed : until])
                self.fed = until
            self._ended.wait(0.005)
