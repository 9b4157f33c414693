"""Kafka client properties: the names are the installed client's, and the guarantees cannot be set away."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import confluent_kafka
import pytest

from olstream.config import parse
from olstream.errors import ConfigError
from olstream.properties import NAMES, RULES, Properties, for_client, kind, rules_text, without_secrets

LEARNER = "learners: {a: }\n"


@pytest.fixture(scope="module")
def values_of_the_client(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What librdkafka itself prints as its properties and their values; aliases too, hidden ones not."""
    shown = tmp_path_factory.mktemp("client") / "shown"
    libraries = [*Path(confluent_kafka.__file__).parent.parent.glob("confluent_kafka.libs/librdkafka*")]
    if not libraries:
        pytest.skip("this build of the client does not bring its library along")
    kafka, c = ctypes.CDLL(str(libraries[0])), ctypes.CDLL(None)
    c.fopen.restype = ctypes.c_void_p
    file = ctypes.c_void_p(c.fopen(str(shown).encode(), b"w"))
    kafka.rd_kafka_conf_properties_show(file)
    c.fclose(file)
    return dict(re.findall(r"^([a-z][a-z0-9._]+) +\| +[CP*] +\| ([^|]*?) +\|", shown.read_text(), re.MULTILINE))


def test_the_known_names_are_those_of_the_installed_client(values_of_the_client: dict[str, str]) -> None:
    names = {name for name in values_of_the_client if not name.endswith("_cb")}
    for_programs = {
        "builtin.features", "default_topic_conf", "enabled_events", "interceptors", "max.poll.records", "msg_order_cmp",
        "opaque", "share.acknowledgement.mode", "ssl_ca", "ssl_certificate", "ssl_engine_callback_data", "ssl_key",
    }  # fmt: skip

    assert names - for_programs == NAMES


def test_numbers_and_switches_are_known_as_the_installed_client_knows_them(
    values_of_the_client: dict[str, str],
) -> None:
    shown_of = values_of_the_client.items()
    numbers = {name for name, shown in shown_of if re.fullmatch(r"-?[0-9]+ \.\. -?[0-9]+", shown)}
    switches = {name for name, shown in shown_of if shown == "true, false"}

    assert {name for name in NAMES if kind(name) != "text"} == (numbers | switches) & NAMES - {
        "acks",  # "all" is a number too
        "request.required.acks",
        "delivery.report.only.error",
    }
    assert {name for name in NAMES if kind(name) == "switch"} <= switches
    assert {name for name in NAMES if kind(name) in ("number", "fraction")} <= numbers


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("producer: {linger.ms: abc}", "producer.linger.ms: must be a number, not 'abc'"),
        ("producer: {queue.buffering.max.ms: ''}", "producer.queue.buffering.max.ms: must be a number, not ''"),
        ("consumer: {fetch.max.bytes: 1.5}", "consumer.fetch.max.bytes: must be a whole number, not '1.5'"),
        ("kafka: {socket.timeout.ms: 30s}", "kafka.socket.timeout.ms: must be a whole number, not '30s'"),
        ("kafka: {socket.timeout.ms: true}", "kafka.socket.timeout.ms: must be a whole number, not 'true'"),
        ("producer: {transaction.timeout.ms: x}", "producer.transaction.timeout.ms: must be a whole number, not 'x'"),
        (
            "kafka: {log.queue: maybe}",
            "kafka.log.queue: must be true or false, not 'maybe'",
        ),
        ("consumer: {enable.auto.commit: no}", "consumer.enable.auto.commit: must be true or false, not 'no'"),
    ],
)
def test_a_number_or_a_switch_that_is_none_is_refused_with_its_key(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(LEARNER + text, "c.yaml", {})

    assert str(caught.value) == f"c.yaml, line 2: {said}"


def test_numbers_and_switches_may_be_written_in_every_way_that_the_client_reads() -> None:
    given = "{linger.ms: 0.5, batch.size: 1e6, retries: '7', socket.keepalive.enable: T, log.connection.close: 0}"
    config = parse(f"{LEARNER}kafka: {given}", "c.yaml", {})

    assert for_client("producer", config.kafka, {})["batch.size"] == "1000000"


@pytest.mark.parametrize(
    "refused",
    [
        "consumer: {enable.auto.commit: true}",
        "consumer: {auto.commit.enable: true}",
        "consumer: {enable.auto.offset.store: true}",
        "consumer: {auto.offset.reset: earliest}",
        "consumer: {isolation.level: read_uncommitted}",
        "consumer: {group.id: mine}",
        "consumer: {group.instance.id: mine}",
        "consumer: {partition.assignment.strategy: 'range,roundrobin'}",
        "consumer: {partition.assignment.strategy: cooperative-sticky}",
        "consumer: {group.remote.assignor: uniform}",
        "consumer: {offset.store.method: file}",
        "producer: {transactional.id: mine}",
        "producer: {enable.idempotence: false}",
        "producer: {acks: 1}",
        "producer: {request.required.acks: 0}",
        "producer: {max.in.flight: 6}",
        "producer: {max.in.flight.requests.per.connection: 6}",
        "producer: {retries: 0}",
        "producer: {queuing.strategy: lifo}",
        "producer: {transaction.timeout.ms: 500}",
        "producer: {transaction.timeout.ms: 900001}",
        "kafka: {test.mock.num.brokers: 3}",
        "kafka: {log.queue: true}",
    ],
)
def test_a_property_that_the_guarantees_rest_on_is_refused_with_the_reason(refused: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(LEARNER + refused, "c.yaml", {})

    section = refused.split(":")[0]
    assert f"c.yaml, line 2: {section}." in str(caught.value)
    assert any(f"must not be set to {value}" in str(caught.value) for value in ("'", '"'))
    assert any(rule.reason in str(caught.value) for rule in RULES.values())


@pytest.mark.parametrize("section", ["kafka", "consumer", "producer"])
def test_it_is_refused_in_every_section(section: str) -> None:
    with pytest.raises(ConfigError, match="is the key `group`"):
        parse(f"{LEARNER}{section}: {{group.id: mine}}", "c.yaml", {})


def test_what_only_repeats_the_guarantees_is_accepted() -> None:
    config = parse(
        LEARNER + "consumer: {enable.auto.commit: false, isolation.level: read_committed, group.protocol: consumer,"
        "  group.remote.assignor: range, enable.partition.eof: true}\n"
        "producer: {acks: all, enable.idempotence: true, max.in.flight: 5, transaction.timeout.ms: 60000}",
        "c.yaml",
        {},
    )

    assert config.producer["acks"] == "all"


def test_a_property_of_the_other_client_is_sent_there() -> None:
    with pytest.raises(
        ConfigError, match=r"consumer\.linger\.ms: is a property of the producer; move it to `producer`"
    ):
        parse(LEARNER + "consumer: {linger.ms: 5}", "c.yaml", {})


def test_a_property_is_written_in_full() -> None:
    with pytest.raises(ConfigError, match=r"kafka\.sasl: write the property's name in full, such as `sasl\.mechanism`"):
        parse(LEARNER + "kafka: {sasl: {mechanism: PLAIN}}", "c.yaml", {})


def test_a_client_gets_the_common_properties_that_concern_it_under_one_name() -> None:
    common: Properties = {
        "metadata.broker.list": "a",
        "linger.ms": 5,
        "fetch.max.bytes": 10,
        "socket.keepalive.enable": True,
    }

    consumer = for_client("consumer", common, {"fetch.max.bytes": 20})
    producer = for_client("producer", common, {"queue.buffering.max.ms": 1})
    admin = for_client("admin", common, {})

    assert consumer == {"bootstrap.servers": "a", "socket.keepalive.enable": "true", "fetch.max.bytes": "20"}
    assert producer == {"bootstrap.servers": "a", "socket.keepalive.enable": "true", "linger.ms": "1"}
    assert admin == {"bootstrap.servers": "a", "socket.keepalive.enable": "true"}


def test_what_a_client_said_is_told_without_secrets() -> None:
    said = without_secrets("hunter2 and user were refused", {"sasl.password": "hunter2", "sasl.username": "user"})

    assert said == "*** and user were refused"


def test_every_refused_property_is_told_with_its_reason() -> None:
    assert "isolation.level: " in rules_text()
    assert len(rules_text().splitlines()) == len(RULES)
