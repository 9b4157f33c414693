"""Are the topics still there, and still the same? Looked at now and then, beside the loop.

The client does not tell. A topic that was deleted leaves its reader without partitions and without an error; of
one made anew under the same name it goes on reading at the old offset, once the topic has grown past that.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from threading import Event, Thread
from typing import Final

from confluent_kafka.admin import AdminClient

from olstream.config import Config
from olstream.errors import KafkaError, StateError
from olstream.facts import Facts, refuse_other_topics
from olstream.io.client import Errors
from olstream.io.kafka_admin import identified, no_topic

log = logging.getLogger(__name__)

LOOK_S: Final = 5.0  # one small request; whoever deletes a topic under a running worker notices as soon


class TopicGuard:
    """A thread, for an answer takes as long as a broker is away. What it finds is raised by whoever waits or polls."""

    def __init__(
        self,
        config: Config,
        admin: AdminClient,
        facts: Facts,
        outputs: Collection[str],
        errors: Errors,
        on_missing: Callable[[str | None], None],
    ) -> None:
        """`facts` are those of the start; `outputs` may be made anew, but have to be there."""
        self.config = config
        self.admin = admin
        self.facts = facts
        self.names = [*facts["topic_ids"], *outputs]
        self.errors = errors
        self.on_missing = on_missing
        self._missing_since_s: float | None = None
        self._ended = Event()
        self._thread = Thread(target=self._run, name="topics", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(LOOK_S):
            self.look()

    def look(self) -> None:
        ids, missing = identified(self.admin, self.names)
        try:
            refuse_other_topics(self.facts, {"topic_ids": ids})
        except StateError as error:
            self.errors.give_up(error)
        self._wait_for(no_topic(missing) if missing else None)

    def _wait_for(self, why: str | None) -> None:
        """`why`: a sentence on topics that are not there, which are waited for as at a start; None once all are."""
        self.errors.trouble = why
        self.on_missing(why)
        if why is None:
            self._missing_since_s = None
            return
        log.warning("waiting: %s", why, extra={"every_s": 10.0})
        self._missing_since_s = self._missing_since_s or time.monotonic()
        if time.monotonic() >= self._missing_since_s + self.config.kafka_wait_s:
            self.errors.give_up(KafkaError(f"gave up after kafka_wait ({self.config.kafka_wait_s:g} s): {why}"))
