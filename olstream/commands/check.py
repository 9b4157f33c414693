"""`olstream check CONFIG`: is the file right, and is Kafka as it needs to be?"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from olstream import checks, properties
from olstream.checks import Finding, Seen, Topic
from olstream.config import Config, load
from olstream.errors import ConfigError, KafkaError, OlstreamError
from olstream.hidden import hide
from olstream.inert import inert
from olstream.io import starts

if TYPE_CHECKING:
    from confluent_kafka import KafkaError as ClientError
    from confluent_kafka.admin import AdminClient

_COLOURS: Final = {"ok": "green", "note": "cyan", "warn": "yellow", "FAIL": "red"}
_HELP: Final = """Say in one line each whether the configuration and Kafka are right, and what to do where not.

\b
Example:
  olstream check config.yaml --create

Exit code 0: `run` can start; 2: the configuration or a topic's settings; 3: Kafka is unreachable, or a topic or a
permission is missing.

Secrets do not have to stand in the file: ${NAME} takes a value from the environment, ${file:/run/secrets/name} from
a file, less the newline at its end. They appear in no log, page or message.

The guarantees rest on some of Kafka's client properties. These are refused under kafka, consumer and producer, but
for the values that keep the guarantees:

"""


@click.command(help=_HELP + "\n\n".join(properties.rules_text().splitlines()))
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--offline", is_flag=True, help="Only the file; ask no broker.")
@click.option("--create", is_flag=True, help="Make the topics that are missing.")
def command(config: Path, offline: bool, create: bool) -> int:
    settings = load(config)
    findings = [*_offline(settings)]
    if not offline:
        settings.needs_kafka()
        findings += _online(settings, create)
    for finding in findings:
        level = click.style(f"{finding.level:4}", fg=_COLOURS[finding.level])
        click.echo(hide(f"{level}  {finding.subject}: {finding.sentence}"))
    return max((finding.exit_code for finding in findings if finding.level == "FAIL"), default=0)


def _offline(config: Config) -> Iterator[Finding]:
    yield from checks.of_the_file(config)
    for key, _, sentence in (told.partition(": ") for told in inert(config)):
        yield Finding("warn", key, sentence)
    yield from _starts(config)
    yield _state_directory(config.checkpoint.path)


def _starts(config: Config) -> Iterator[Finding]:
    """Whether new learners can begin as they should."""
    for name, learner in config.learners.items():
        if learner.start_from is None:
            continue
        subject = f"learners.{name}.start_from"
        try:
            model = starts.begin(config, name).model
        except OlstreamError as error:
            yield Finding("FAIL", subject, str(error).removeprefix(f"{subject}: "), error.exit_code)
        else:
            yield Finding("ok", subject, f"a new one begins from {learner.start_from}, {model.tally.seen:,} rows seen")


def _state_directory(path: Path) -> Finding:
    """Whether checkpoints can be written there; nothing is written to find out."""
    there = path
    while not there.exists() and there != there.parent:
        there = there.parent
    if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
        return Finding("ok", "checkpoint.path", f"{path} can be written")
    return Finding(
        "warn",
        "checkpoint.path",
        f"{path} cannot be written here as uid {os.getuid()}, gid {os.getgid()}: `run` needs to, where it runs",
    )


def _online(config: Config, create: bool) -> Iterator[Finding]:
    from olstream.io import kafka_admin  # here: the rest needs no Kafka client

    yield from _clients(config)
    refused: list[ClientError] = []
    admin = kafka_admin.admin(config, refused.append)
    try:
        cluster = kafka_admin.reached(admin, config, refused)
    except KafkaError as error:
        yield Finding("FAIL", "broker", str(error), error.exit_code)
        return
    yield Finding("ok", "broker", f"answers, {len(cluster.brokers)} in the cluster")
    wanted = [*config.input.topics, *checks.outputs(config), config.journal_topic]
    there = kafka_admin.facts(admin, cluster, wanted)
    if create and (missing := [name for name in wanted if name not in there]):
        _make(config, admin)
        there = kafka_admin.topics(admin, wanted)
        yield Finding("ok", "created", ", ".join(missing))
    wanted_of = kafka_admin.needs(config)
    hidden = kafka_admin.lacking(admin, {name: wanted_of[name] for name in wanted if name not in there})
    set_to = kafka_admin.topic_settings(admin, there)
    permitted = kafka_admin.permitted(admin, there)
    topics = {
        name: Topic(facts.partitions, facts.replicas, set_to.get(name, {}), permitted.get(name))
        for name, facts in there.items()
    }
    yield from checks.of_the_cluster(
        config,
        Seen(
            len(cluster.brokers),
            topics,
            kafka_admin.permitted_group(admin, config.group),
            hidden,
            _keys(config, {name: topics[name].partitions for name in config.input.topics if name in topics}),
        ),
    )


def _keys(config: Config, inputs: Mapping[str, int]) -> Mapping[str, Mapping[bytes | None, int]]:
    """Where records stand, where that matters: a key must have one partition on all topics."""
    from olstream.io import kafka_keys

    return kafka_keys.sampled(config, inputs) if len(inputs) > 1 and max(inputs.values()) > 1 else {}


def _clients(config: Config) -> Iterator[Finding]:
    """Whether librdkafka takes the properties: it says so when it makes a client."""
    from confluent_kafka import KafkaException

    from olstream.io import client, kafka_admin

    try:
        client.producer(config, client.Errors())
        client.member(config, client.Errors(), lambda statistics: None).close()
    except KafkaException as error:
        refused = kafka_admin.refused_property(error, config)
        yield Finding("FAIL", "clients", str(refused), refused.exit_code)
    except ConfigError as refused:
        yield Finding("FAIL", "clients", str(refused), refused.exit_code)


def _make(config: Config, admin: AdminClient) -> None:
    """Make what is missing: inputs as wide as the widest that is there, the rest as wide as the inputs."""
    from olstream.io import kafka_admin

    inputs = config.input.topics
    there = kafka_admin.topics(admin, inputs)
    widest = max((facts.partitions for facts in there.values()), default=kafka_admin.BROKER_DEFAULT)
    for name in (name for name in inputs if name not in there):
        kafka_admin.make_topic(admin, name, widest)
    there = kafka_admin.topics(admin, [*inputs, *checks.outputs(config)])
    widest = max((there[name].partitions for name in inputs if name in there), default=kafka_admin.BROKER_DEFAULT)
    for name in (name for name in checks.outputs(config) if name not in there):
        kafka_admin.make_topic(admin, name, widest)
    kafka_admin.ensure_journal(admin, config, widest)
