"""Everything together: faults drawn at random, one after the other, at workers that share a group."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Final

from tests.kafka.chaos.crew import CLASSIC, KIP_848, PLAIN, SESSION_S, START_S, TRANSACTION_S, Crew, settle
from tests.kafka.chaos.scenario import scenario
from tests.kafka.chaos.stage import Stage
from tests.kafka.chaos.verdict import assert_whole

SLOTS_MAX: Final = 3


@scenario(bounded=False, partitions=6, count=4, kafka_wait="2m", **CLASSIC)
def faults_at_random(stage: Stage) -> None:
    """Two or three workers on six partitions, hit by `count` faults of any kind; at the end nothing shows."""
    Soup(stage).cook()


@scenario(partitions=6, count=4, bounded=False, kafka_wait="2m", **KIP_848)
def faults_at_random_kip848(stage: Stage) -> None:
    """The same under the newer group protocol."""
    Soup(stage).cook()


@scenario(partitions=6, count=4, bounded=False, kafka_wait="2m", **PLAIN)
def faults_at_random_at_least_once(stage: Stage) -> None:
    """The same without transactions: nothing is lost, and learnt by two only where its partition moved."""
    Soup(stage).cook()


class Soup:
    """After each fault as many workers run as before, or one more, or one less."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.rng, self.crew = stage, stage.rng, Crew(stage)
        self.faults: list[Callable[[], None]] = [
            self.kill,
            self.stand_still_for_a_moment,
            self.stand_still_for_long,
            self.restart,
            self.kill_the_broker,
            self.freeze_the_broker,
            self.come_or_go,
            self.double,
        ]

    def cook(self) -> None:
        with self.stage.flow():
            self.crew.start(0, 1)
            self.crew.until_ready()
            for _ in range(self.stage.count):
                self.crew.until_all_move()
                self.stage.work_on(self.rng.uniform(0, 0.5))
                fault = self.rng.choice(self.faults)
                self.stage.notes[:] = [f"last {fault.__name__}"]
                fault()
        self.crew.finish()
        assert_whole(self.stage)

    def somebody(self) -> int:
        return self.rng.choice(sorted(self.crew.at_work))

    def kill(self) -> None:
        slot = self.somebody()
        self.crew.kill(slot)
        self.crew.start(slot)

    def restart(self) -> None:
        slot = self.somebody()
        self.crew.at_work[slot].until_ready()
        self.crew.stop(slot)
        self.crew.start(slot)

    def stand_still_for_a_moment(self) -> None:
        self.crew.freeze(self.somebody(), self.rng.uniform(0, 2))

    def stand_still_for_long(self) -> None:
        longer_than = self.rng.choice((TRANSACTION_S, SESSION_S))
        self.crew.freeze(self.somebody(), longer_than + self.rng.uniform(1, 3))

    def kill_the_broker(self) -> None:
        self.stage.kafka.kill()
        self.stage.fault()
        self.stage.work_on(self.rng.uniform(0, 2))
        self.stage.kafka.start()

    def freeze_the_broker(self) -> None:
        self.stage.kafka.pause()
        self.stage.fault()
        self.stage.work_on(3)
        self.stage.kafka.resume()

    def come_or_go(self) -> None:
        free = [slot for slot in range(SLOTS_MAX) if slot not in self.crew.at_work]
        if free and (len(self.crew.at_work) == 1 or self.rng.random() < 0.5):
            self.crew.start(self.rng.choice(free))
            self.stage.fault()
        else:
            self.crew.kill(self.somebody())

    def double(self) -> None:
        """A second pod for a slot, the first of which stands still or not: whoever goes on has the slot from now on."""
        slot = self.somebody()
        first, stands_still = self.crew.at_work[slot], self.rng.random() < 0.5
        if stands_still:
            first.send(signal.SIGSTOP)
        twin = self.stage.double(slot)
        second = twin.start()
        self.stage.fault()
        self.stage.work_on(self.rng.uniform(0, 2 * START_S))
        if stands_still:
            first.send(signal.SIGCONT)
        winner, _ = settle(self.stage, slot, (self.stage.slot(slot), first), (twin, second))
        self.crew.at_work[slot] = winner[1]
