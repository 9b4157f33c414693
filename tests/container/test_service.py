"""The image at work: against a real broker, confined as in production, with its state in a volume."""

from __future__ import annotations

from tests.container.engine import Engine
from tests.container.pod import place
from tests.kafka.events import events
from tests.kafka.service import ServiceFactory


def test_it_learns_publishes_and_goes_on_after_a_stop(engine: Engine, image: str, service: ServiceFactory) -> None:
    work = service(input={"batch_max": 50}).make_topics()
    with place(engine, image, work) as here:
        first = here.start()
        first.until_ready()
        work.topics.produce(work.input, events(500))
        work.until_committed(500, first)

        assert first.status("/live") == first.status("/ready") == 200
        assert first.healthcheck() == 0
        assert first.within("olstream", "health", "--ready").returncode == 0
        assert first.within("cat", "/proc/1/cmdline").stdout.split("\0")[1:4] == [
            "/opt/olstream/bin/olstream", "run", "/etc/olstream/config.yaml",
        ]  # fmt: skip
        first.stop()  # by SIGTERM, within 10 s, exit 0

        second = here.start().until_ready()
        work.topics.produce(work.input, events(300, seed=2, first=500))
        work.until_committed(800, second)
        second.stop()
        here.verify()

        assert sorted(p["offset"] for p in work.predicted()) == list(range(800))
        assert work.inspect()["learners"]["model"]["seen"] == 800
        assert {path.stat().st_uid for path in work.state.rglob("*")} == {10001}
        assert "compile" not in second.said()
        assert not list(work.state.rglob("*.nbc"))


def test_a_worker_that_waits_for_kafka_is_alive_and_stops(engine: Engine, image: str, service: ServiceFactory) -> None:
    work = service(kafka={"bootstrap.servers": "127.0.0.1:1"})
    with place(engine, image, work) as here:
        pod = here.start()
        pod.until_answers()

        assert pod.status("/ready") == 503
        assert pod.healthcheck() == 0
        pod.stop()


def test_a_mistake_in_the_configuration_is_told(engine: Engine, image: str, service: ServiceFactory) -> None:
    work = service(learners={"model": {"algorithm": "arrow"}})
    with place(engine, image, work) as here:
        done = here.run()

        assert done.returncode == 2
        assert "arrow" in done.stderr
        assert "Traceback" not in done.stderr
