"""`check`, `send` and the making of topics against a real broker."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from olstream.__main__ import main
from olstream.config import load
from olstream.errors import ConfigError
from olstream.io import kafka_admin
from olstream.io.kafka_feed import Out
from tests.kafka.topics import Topics

Written = Callable[..., Path]
NOWHERE = "127.0.0.1:1"


@pytest.fixture
def written(kafka: str, name: str, tmp_path: Path) -> Written:
    """Writes a configuration with topics of its own."""

    def write(bootstrap: str = kafka, more: str = "") -> Path:
        path = tmp_path / "config.yaml"
        path.write_text(
            f"kafka: {{bootstrap.servers: '{bootstrap}'}}\ngroup: {name}\ninput: {{topics: [{name}]}}\n"
            f"output: {{predictions: {name}-predictions, dead_letters: {name}-dead}}\n"
            f"checkpoint: {{path: {tmp_path}/state}}\nlearners: {{a: {{classes: [no, yes]}}}}\n{more}"
        )
        return path

    return write


def test_check_finds_what_is_missing_makes_it_and_is_content(
    written: Written, name: str, topics: Topics, capsys: pytest.CaptureFixture[str]
) -> None:
    topics.create(name, partitions=3)
    config = written()

    assert main(["check", str(config)]) == 3
    assert f"FAIL  predictions {name}-predictions: is not there" in capsys.readouterr().out

    assert main(["check", str(config), "--create"]) == 0
    made = capsys.readouterr().out
    assert f"ok    created: {name}-predictions, {name}-dead, {name}-journal" in made
    assert f"ok    predictions {name}-predictions: 3 partitions" in made

    assert main(["check", str(config)]) == 0
    assert "FAIL" not in capsys.readouterr().out


def test_the_journal_is_made_for_ever_and_as_wide_as_the_widest_input(written: Written, name: str) -> None:
    config = load(written())
    admin = kafka_admin.admin(config)

    made = kafka_admin.ensure_journal(admin, config, 3)
    assert made is not None and made.partitions == 3
    assert kafka_admin.ensure_journal(admin, config, 5) == made  # one that is there stays as it is

    settings = kafka_admin.topic_settings(admin, [config.journal_topic])[config.journal_topic]
    assert (settings["cleanup.policy"], settings["retention.ms"]) == ("delete", "-1")


def test_topics_are_told_with_their_ids_and_missing_ones_left_out(written: Written, name: str, topics: Topics) -> None:
    topics.create(name, partitions=2)
    admin = kafka_admin.admin(load(written()))

    there = kafka_admin.topics(admin, [name, f"{name}-not-there"])

    assert list(there) == [name]
    assert there[name].partitions == 2
    assert there[name].id
    assert not kafka_admin.topics(admin, [f"{name}-not-there"])  # and asking has not made it


def test_no_broker_is_no_topic_and_exit_code_3(written: Written, capsys: pytest.CaptureFixture[str]) -> None:
    config = written(NOWHERE)

    assert kafka_admin.topics(kafka_admin.admin(load(config)), ["a"], timeout_s=0.2) == {}
    assert main(["check", str(config)]) == 3
    shown = capsys.readouterr()
    assert f"FAIL  broker: Kafka at {NOWHERE} cannot be reached" in shown.out
    assert "Connection refused" in shown.out
    assert shown.err == ""


def test_a_property_that_librdkafka_refuses_is_told_without_secrets(written: Written) -> None:
    config = load(written(more="producer: {ssl.key.password: hunter2, compression.type: hunter2}\n"))

    with pytest.raises(ConfigError) as caught:
        Out(config, "events")

    assert 'Invalid value "***" for configuration property "compression.' in str(caught.value)


def test_check_tells_what_only_librdkafka_knows_to_be_wrong(
    written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    config = written(more="producer: {delivery.timeout.ms: 60000}\n")

    assert main(["check", str(config), "--create"]) == 2
    assert "FAIL  clients: kafka, consumer or producer: librdkafka refuses a property" in capsys.readouterr().out


def test_a_file_is_sent_with_ids_as_keys_and_every_byte_as_it_was(
    written: Written, name: str, topics: Topics, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topics.create(name)
    lines = [b'{"id": 7,  "features": {}}', b"\xff no message", b"", b'{"id": "x"}']
    (tmp_path / "events.ndjson.gz").write_bytes(gzip.compress(b"\n".join(lines) + b"\n"))

    assert main(["send", str(written()), str(tmp_path / "events.ndjson.gz")]) == 0

    sent = topics.read(name)
    assert [record.value() for record in sent] == lines
    assert [record.key() for record in sent] == [b"7", None, None, b"x"]
    assert f"sent 4 records to {name}" in capsys.readouterr().out


def test_a_table_is_sent_as_messages_that_the_service_understands(
    written: Written, name: str, topics: Topics, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topics.create(name)
    (tmp_path / "rows.csv").write_text("id,wind,day,label\n1,2.5,mo,yes\n2,3\n3,,tu,no\n")

    assert main(["send", str(written()), str(tmp_path / "rows.csv")]) == 0

    sent = [json.loads(record.value() or b"") for record in topics.read(name)]
    assert sent == [
        {"id": 1, "label": "yes", "features": {"wind": 2.5, "day": "mo"}},
        {"id": 3, "label": "no", "features": {"wind": None, "day": "tu"}},
    ]
    assert "1 line could not be read" in capsys.readouterr().out


def test_sending_to_a_topic_that_is_not_there_is_refused(
    written: Written, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "events.ndjson").write_text("{}\n")

    assert main(["send", str(written()), str(tmp_path / "events.ndjson")]) == 3
    assert "is not there: make it with `olstream check CONFIG --create`" in capsys.readouterr().err
