"""Live and ready, as a probe hears it."""

from __future__ import annotations

from olstream.health import Health


class Clock:
    """A number that somebody moves."""

    at_s = 1000.0

    def __call__(self) -> float:
        return self.at_s


def at_work(clock: Clock) -> Health:
    health = Health(live_within_s=30.0, monotonic=clock, now=clock)
    health.restored()
    health.assigned(2)
    health.broker(True)
    return health


def test_a_worker_that_starts_is_alive_and_not_ready() -> None:
    health = Health(monotonic=Clock(), now=Clock())

    assert health.live()[0]
    assert health.ready() == (False, "Not restored yet: starting.")
    assert health.polled_epoch_s is None


def test_a_worker_is_ready_once_it_is_restored_and_assigned() -> None:
    health = Health(monotonic=Clock(), now=Clock())

    health.restoring("12 records to learn again")
    restoring = health.ready()
    health.restored()
    unassigned = health.ready()
    health.assigned(2)

    assert restoring == (False, "Not restored yet: 12 records to learn again.")
    assert not unassigned[0] and "No assignment" in unassigned[1]
    assert health.ready() == (True, "Restored, 2 partitions assigned.")


def test_a_worker_that_waits_for_its_broker_says_so_before_it_is_restored() -> None:
    health = Health(monotonic=Clock(), now=Clock())

    health.broker(False, "no broker answers at kafka:9092")

    assert health.ready() == (False, "No Kafka: no broker answers at kafka:9092.")


def test_a_stuck_loop_is_neither_alive_nor_ready() -> None:
    clock = Clock()
    health = at_work(clock)

    health.polled()
    clock.at_s += 31.0

    assert not health.live()[0] and "stuck" in health.live()[1]
    assert not health.ready()[0]
    assert health.polled_epoch_s == 1000.0


def test_an_idle_loop_stays_alive_and_ready() -> None:
    clock = Clock()
    health = at_work(clock)

    for _ in range(100):
        clock.at_s += 20.0
        health.polled()

    assert health.live()[0]
    assert health.ready()[0]


def test_without_a_broker_the_worker_is_alive_and_not_ready() -> None:
    health = at_work(Clock())

    health.broker(False, "no broker answers")
    down = health.live()[0], health.ready()
    health.broker(True)

    assert down == (True, (False, "No Kafka: no broker answers."))
    assert health.ready()[0]


def test_a_worker_whose_topic_is_gone_is_not_ready_though_the_broker_answers() -> None:
    health = at_work(Clock())

    health.topics("there is no topic events")
    health.broker(True)
    gone = health.ready()
    health.topics(None)

    assert gone == (False, "Not all of Kafka: there is no topic events.")
    assert health.ready()[0]


def test_a_revoked_assignment_takes_readiness_and_an_empty_one_does_not() -> None:
    health = at_work(Clock())

    health.assigned(None)
    revoked = health.ready()[0]
    health.assigned(0)

    assert not revoked
    assert health.ready() == (True, "Restored, 0 partitions assigned.")
