"""What `check` finds in a cluster."""

from __future__ import annotations

from dataclasses import replace

from olstream.checks import Finding, Seen, Topic, of_the_cluster, of_the_file
from olstream.config import Config, parse

DAY_MS = 86_400_000
EVERYTHING = frozenset({"READ", "WRITE", "DESCRIBE"})
KEPT_WEEK = {"cleanup.policy": "delete", "retention.ms": str(7 * DAY_MS)}
TWO = "input: {topics: [events, labels]}\n"
KEPT_FOR_EVER = {"cleanup.policy": "delete", "retention.ms": "-1"}


def config(text: str = "", learner: str = "{classes: [no, yes]}") -> Config:
    return parse(f"kafka: {{bootstrap.servers: k}}\nlearners: {{a: {learner}}}\n" + text, "c.yaml", {})


def topic(settings: dict[str, str] | None = None, partitions: int = 1, replicas: int = 1) -> Topic:
    return Topic(partitions, replicas, KEPT_WEEK if settings is None else settings, EVERYTHING)


def cluster(brokers: int = 1, **changed: Topic | None) -> Seen:
    topics = {
        "events": topic(),
        "predictions": topic(),
        "dead_letters": topic(),
        "journal": topic(KEPT_FOR_EVER),
        **changed,
    }
    names = {"dead_letters": "dead-letters", "journal": "olstream-journal"}
    there = {names.get(name, name): found for name, found in topics.items() if found is not None}
    return Seen(brokers, there, EVERYTHING)


def found(seen: Seen, of: Config | None = None) -> list[Finding]:
    return list(of_the_cluster(of or config("input: {topics: [events]}"), seen))


def worst(findings: list[Finding], level: str) -> list[str]:
    return [f"{finding.subject}: {finding.sentence}" for finding in findings if finding.level == level]


def test_a_cluster_as_it_should_be_has_nothing_to_say_against_it() -> None:
    findings = found(cluster())

    assert {finding.level for finding in findings} == {"ok", "note"}
    assert "input events" in [finding.subject for finding in findings]


def test_slots_are_said_to_be_models_of_their_own() -> None:
    notes = worst(list(of_the_file(config("slot: 2"))), "note")

    assert "N slots are N models" in notes[0]
    assert "this is slot 2 of group olstream" in notes[0]


def test_an_open_port_without_a_token_is_noted() -> None:
    notes = worst(list(of_the_file(config("http: {host: 0.0.0.0}"))), "note")

    assert "http: 0.0.0.0:9108 is open to others without a token" in notes


def test_a_missing_topic_is_a_failure_of_kafka_and_a_missing_journal_is_none() -> None:
    findings = found(cluster(events=None, journal=None))

    assert [finding.exit_code for finding in findings if finding.level == "FAIL"] == [3]
    assert "input events: is not there" in worst(findings, "FAIL")[0]
    assert any("`run` makes it" in note for note in worst(findings, "note"))


def test_a_compacted_input_or_journal_is_refused() -> None:
    compacted = topic({"cleanup.policy": "compact"})

    failures = worst(found(cluster(events=compacted, journal=compacted)), "FAIL")

    assert [failure.split(":")[0] for failure in failures] == ["input events", "journal olstream-journal"]


def test_a_topic_that_fails_is_not_called_ok_too() -> None:
    findings = found(cluster(events=topic({"cleanup.policy": "compact,delete"})))

    assert [finding.level for finding in findings if finding.subject == "input events"] == ["FAIL"]


def test_input_must_be_kept_longer_than_the_time_between_checkpoints() -> None:
    ten_seconds = topic({"cleanup.policy": "delete", "retention.ms": "10000"})
    ten_minutes = topic({"cleanup.policy": "delete", "retention.ms": "600000"})

    assert "less than checkpoint.interval" in worst(found(cluster(events=ten_seconds)), "FAIL")[0]
    assert "a longer outage ends in a gap" in worst(found(cluster(events=ten_minutes)), "warn")[0]


def test_the_journal_is_kept_at_least_as_long_as_the_input() -> None:
    day = topic({"cleanup.policy": "delete", "retention.ms": str(DAY_MS)})

    assert "less than an input keeps records" in worst(found(cluster(journal=day)), "FAIL")[0]
    assert worst(found(cluster(journal=topic())), "FAIL") == []
    assert "on_missing: replay" in worst(found(cluster(journal=topic())), "warn")[0]
    assert worst(found(cluster(events=topic(KEPT_FOR_EVER), journal=topic())), "FAIL") != []


def test_inputs_of_different_width_are_refused_unless_allowed() -> None:
    seen = cluster(labels=topic(partitions=3))
    two = "input: {topics: [events, labels]}\n"

    refused = found(seen, config(two))
    allowed = found(seen, config(two + "join: {allow_partition_mismatch: true}"))

    assert "events has 1 partition, labels has 3 partitions: features and labels" in worst(refused, "FAIL")[0]
    assert worst(allowed, "FAIL") == []
    assert "events has 1 partition, labels has 3 partitions: features and labels" in worst(allowed, "warn")[0]


def test_a_key_that_stands_in_different_partitions_is_warned_of_without_being_shown() -> None:
    keys: dict[str, dict[bytes | None, int]] = {
        "events": {b"ann": 0, b"bob": 1, b"eve": 2},
        "labels": {b"ann": 0, b"bob": 2, b"joe": 1},
    }
    seen = replace(cluster(events=topic(partitions=3), labels=topic(partitions=3)), keys=keys)

    (warned,) = worst(found(seen, config(TWO)), "warn")

    assert warned.startswith(
        "keys: 1 of 2 that events and labels share are in different partitions, such as events[1] and"
    )
    assert "labels[2]: produce both with the same partitioner" in warned
    assert "bob" not in warned


def test_keys_that_stand_in_the_same_partitions_are_well() -> None:
    keys: dict[str, dict[bytes | None, int]] = {"events": {b"ann": 0, b"bob": 1}, "labels": {b"ann": 0}}
    seen = replace(cluster(events=topic(partitions=3), labels=topic(partitions=3)), keys=keys)

    findings = found(seen, config(TWO))

    assert worst(findings, "warn") == []
    assert "keys: 1 that events and labels share are in the same partitions" in worst(findings, "ok")


def test_records_without_a_key_are_noted_where_there_are_two_topics() -> None:
    keys: dict[str, dict[bytes | None, int]] = {"events": {b"ann": 0}, "labels": {None: 1}}
    seen = replace(cluster(events=topic(partitions=3), labels=topic(partitions=3)), keys=keys)

    noted = [note for note in worst(found(seen, config(TWO)), "note") if note.startswith("keys: ")]

    assert len(noted) == 1
    assert noted[0].startswith("keys: records of labels have none: ")


def test_a_binary_learner_without_classes_over_several_partitions_is_noted() -> None:
    seen = cluster(events=topic(partitions=3))

    noted = worst(found(seen, config("input: {topics: [events]}", "{}")), "note")

    assert any("declare classes" in note for note in noted)
    assert not any("declare classes" in note for note in worst(found(seen), "note"))


def test_a_slot_beyond_the_partitions_is_warned_of() -> None:
    warned = worst(found(cluster(), config("input: {topics: [events]}\nslot: 1")), "warn")

    assert warned == ["slots: no input has more than 1 partitions: slot 1 may get none"]


def test_a_permission_that_is_missing_is_named() -> None:
    reads = Topic(1, 1, KEPT_WEEK, frozenset({"READ"}))
    nobody = Seen(1, cluster(predictions=reads).topics, frozenset())

    failures = [finding for finding in found(nobody) if finding.level == "FAIL"]

    assert [(failure.subject, failure.exit_code) for failure in failures] == [
        ("predictions predictions", 3),
        ("group olstream", 3),
    ]
    assert "permit WRITE on the topic" in failures[0].sentence


def test_one_replica_among_several_brokers_is_warned_of() -> None:
    assert worst(found(cluster(brokers=3)), "warn")[0].startswith("predictions predictions: has one replica")
    assert worst(found(cluster(brokers=1)), "warn") == []


def test_what_the_broker_does_not_tell_is_not_held_against_it() -> None:
    unknown = Topic(1, 1, {}, None)
    seen = Seen(1, cluster(events=unknown, journal=unknown, predictions=unknown, dead_letters=unknown).topics, None)

    assert worst(found(seen), "FAIL") == []
    assert any("does not tell" in note for note in worst(found(seen), "note"))
