"""What an operator meets: no broker, no topic yet, lost records, a changed configuration."""

from __future__ import annotations

import json

import yaml

from tests.kafka.events import events
from tests.kafka.service import Service, ServiceFactory
from tests.kafka.topics import until


def test_a_wrong_address_is_given_up_after_kafka_wait(service: ServiceFactory) -> None:
    made = service(kafka={"bootstrap.servers": "127.0.0.1:1"}, kafka_wait="2s")

    worker = made.start()

    assert worker.wait(60) == 3
    assert "127.0.0.1:1" in worker.said()


def test_a_topic_made_later_is_waited_for(service: ServiceFactory) -> None:
    made = service(kafka_wait="60s", consumer={"enable.partition.eof": True})
    for topic in (made.predictions, made.dead_letters):
        made.topics.create(topic)

    worker = made.start()
    until(lambda: made.input in worker.said() or not worker.alive, "it says what it waits for", 90)
    assert worker.status("/ready") == 503
    made.topics.create(made.input)
    made.topics.produce(made.input, events(1))
    made.until_committed(1, worker)

    assert worker.status("/ready") == 200
    assert [p["id"] for p in made.predicted()] == ["e0"]
    worker.stop()


def with_a_gap(service: ServiceFactory) -> Service:
    """Offset 10 is committed, 100 records are in the topic, and the first 50 are gone."""
    made = service().make_topics()
    made.topics.produce(made.input, events(10))
    made.run_to(10)
    made.topics.produce(made.input, events(100)[10:])
    made.topics.delete_before(made.input, 50)
    return made


def test_a_gap_is_refused_with_the_number_lost(service: ServiceFactory) -> None:
    made = with_a_gap(service)
    before = made.inspect()

    worker = made.start()

    assert worker.wait(60) == 4
    assert "40" in worker.said()
    assert "on_gap" in worker.said()
    assert made.inspect() == before


def test_a_gap_is_skipped_where_the_configuration_says_so(service: ServiceFactory) -> None:
    made = with_a_gap(service)

    worker = made.start(input={"on_gap": "skip"})
    made.until_committed(100, worker)

    assert worker.counted("olstream_offsets_lost_total") == 40
    assert [p["offset"] for p in made.predicted()] == [*range(10), *range(50, 100)]
    worker.stop()


def test_another_algorithm_on_the_same_state_is_refused(service: ServiceFactory) -> None:
    made = service(learners={"model": {"algorithm": "arow", "task": "binary", "params": {"r": 1.0}}}).make_topics()
    made.topics.produce(made.input, events(20))
    made.run_to(20)
    before = made.inspect()

    worker = made.start(learners={"model": {"algorithm": "pa1", "task": "binary", "params": {"C": 1.0}}})

    assert worker.wait(60) == 4
    assert "algorithm" in worker.said()
    assert "params" in worker.said()
    assert made.inspect() == before


def test_the_same_settings_in_other_words_load(service: ServiceFactory) -> None:
    made = service(learners={"model": {"algorithm": "arow", "task": "binary", "params": {"r": 1.0}}}).make_topics()
    made.topics.produce(made.input, events(20))
    made.run_to(20)

    turned = {key: made.config[key] for key in reversed(made.config)}
    path = made.directory / "turned.yaml"
    path.write_text("# the same\n" + yaml.safe_dump(turned, sort_keys=False).replace(": 1.0\n", ":   1\n"))
    worker = made.start_from(path).until_ready()
    worker.stop()

    assert made.inspect()["learners"]["model"]["seen"] == 20
    assert json.loads((made.directory / "config.yaml").read_text()) == yaml.safe_load(path.read_text())


def test_a_reset_group_is_not_believed(service: ServiceFactory) -> None:
    """Somebody moved the committed offset by hand: only they know what they want."""
    made = service(consumer={"session.timeout.ms": 6000}).make_topics()  # a static member stays that long
    made.topics.produce(made.input, events(20))
    made.run_to(20)
    made.topics.reset(made.group, made.input, 5)

    worker = made.start()

    assert worker.wait(60) == 4
