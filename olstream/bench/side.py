"""Workers as processes beside this one, and the moment when their group has shared out the partitions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from olstream.bench.bare import bare_loop
from olstream.bench.ours import our_loop
from olstream.bench.span import Span
from olstream.config import Config
from olstream.errors import KafkaError

BARE, OURS = KINDS = ("bare loop", "olstream")
JOINED_S: Final = 60.0  # a first start compiles the kernels
LOOK_EVERY_S: Final = 0.05


def processes(n: int) -> ProcessPoolExecutor:
    """New interpreters, not forks: a Kafka client does not survive a fork."""
    return ProcessPoolExecutor(n, mp_context=get_context("spawn"))


def work(kind: str, config: Config, bare_target: str, n: int) -> Span:
    """What such a process does."""
    return bare_loop(config, bare_target, n) if kind == BARE else our_loop(config, n).span


def until_shared_out(admin: AdminClient, group: str, workers: Sequence[Future[Span]]) -> None:
    """Wait until each worker holds a partition."""
    deadline = time.monotonic() + JOINED_S
    while time.monotonic() < deadline:
        for worker in workers:
            if worker.done():
                worker.result()  # it cannot have come to its end
        held = _held(admin, group)
        if len(held) == len(workers) and all(held):
            return
        time.sleep(LOOK_EVERY_S)
    raise KafkaError(f"the workers of group {group} did not get their partitions within {JOINED_S:.0f} s")


def _held(admin: AdminClient, group: str) -> list[int]:
    """How many partitions each member holds."""
    try:
        found = admin.describe_consumer_groups([group])[group].result()
    except KafkaException:  # the group is so new that its coordinator does not know it
        return []
    return [len(member.assignment.topic_partitions) for member in found.members]
