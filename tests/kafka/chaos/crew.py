"""The workers of a group at work, by slot: started, stopped in good order, killed, made to stand still."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from tests.kafka.chaos.stage import PATIENCE_S, Stage
from tests.kafka.service import Service, Worker
from tests.kafka.topics import until

TRANSACTION_S: Final = 5.5
SESSION_S: Final = 6.0  # the shortest that a broker allows, and what the broker of the tests has under KIP-848
START_S: Final = 2.5  # about as long as a start takes here

CLASSIC: Final[dict[str, Any]] = {
    "producer": {"transaction.timeout.ms": int(1000 * TRANSACTION_S)},
    "consumer": {"session.timeout.ms": int(1000 * SESSION_S)},
}
KIP_848: Final[dict[str, Any]] = {**CLASSIC, "consumer": {"group.protocol": "consumer"}}
PLAIN: Final[dict[str, Any]] = {"guarantee": "at_least_once", "consumer": CLASSIC["consumer"]}
PLAIN_KIP_848: Final[dict[str, Any]] = {"guarantee": "at_least_once", "consumer": KIP_848["consumer"]}


class Crew:
    """Who runs now; each slot has the directory that `stage.services` says."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.at_work: dict[int, Worker] = {}

    def start(self, *slots: int) -> None:
        for slot in slots:
            self.at_work[slot] = self.stage.slot(slot).start()

    def until_ready(self) -> None:
        for worker in self.at_work.values():
            worker.until_ready()

    def stop(self, slot: int) -> None:
        self.at_work.pop(slot).stop()
        self.stage.fault()

    def kill(self, *slots: int) -> None:
        """As good as at the same moment."""
        killed = [self.at_work.pop(slot) for slot in slots]
        for worker in killed:
            worker.send(signal.SIGKILL)
        for worker in killed:
            worker.wait(PATIENCE_S)
        self.stage.fault(len(killed))

    def freeze(self, slot: int, seconds: float) -> None:
        self.at_work[slot].send(signal.SIGSTOP)
        self.stage.fault()
        self.stage.work_on(seconds)
        self.at_work[slot].send(signal.SIGCONT)

    def until_all_move(self) -> None:
        """Every partition has somebody who works on it."""
        before = self.stage.progress()
        until(
            lambda: self.are_past(before) or not self.all_alive(self.at_work),
            f"more than {before} is done in each partition",
            PATIENCE_S,
        )
        self.assert_alive()

    def until_each_works(self) -> None:
        """Every worker has partitions, and answers what comes in them."""
        for slot, worker in self.at_work.items():
            before = worker.counted(ANSWERS)
            until(
                lambda: worker.counted(ANSWERS) > before or not worker.alive,  # noqa: B023
                f"slot {slot} answers more than {before:.0f}",
                PATIENCE_S,
            )
        self.assert_alive()

    def are_past(self, before: dict[int, int]) -> bool:
        now = self.stage.progress()
        return all(now.get(partition, 0) > before.get(partition, 0) for partition in range(self.stage.partitions))

    def all_alive(self, slots: Iterable[int]) -> bool:
        return all(self.at_work[slot].alive for slot in slots)

    def assert_alive(self) -> None:
        for slot, worker in self.at_work.items():
            if not worker.alive:
                raise AssertionError(f"slot {slot} ended with {worker.wait(1)}: {worker.said()[-3000:]}")

    def finish(self) -> None:
        """Who was killed for good comes back too: its checkpoint lacks what the journal says that it has learnt."""
        self.start(*(slot for slot in self.stage.services if slot not in self.at_work))
        self.until_ready()
        self.stage.finish(*self.at_work.values())


ANSWERS: Final = "olstream_predictions_produced_total"

Held: TypeAlias = tuple[Service, Worker]


def settle(stage: Stage, slot: int, *both: Held) -> tuple[Held, Held]:
    """Of two workers of a slot exactly one ends, by itself, with 5. Who goes on comes first, and will be judged."""
    until(lambda: not all(worker.alive for _, worker in both), f"one of two workers of slot {slot} ends", PATIENCE_S)
    winner, loser = sorted(both, key=lambda held: not held[1].alive)
    code = loser[1].wait(1)
    assert code == 5, f"exit {code}: {loser[1].said()[-3000:]}"
    winner[1].until_ready()
    stage.services[slot] = winner[0]
    return winner, loser
