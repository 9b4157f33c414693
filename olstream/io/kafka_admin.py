"""Topics: which there are, how they are set, and making the missing ones.

Asked for by name in the list of all topics, never one by one: a broker may make a topic that it is asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient, ClusterMetadata, ConfigResource, NewTopic, ResourceType

from olstream import logs, properties
from olstream.config import Config
from olstream.errors import ConfigError, KafkaError
from olstream.io import tls

_CALL_S: Final = 5.0
_FOR_EVER: Final = "-1"
_NO_ID: Final = "A" * 22  # zero: from brokers too old to give ids
BROKER_DEFAULT: Final = -1  # as many partitions, or replicas, as the broker gives by itself
T = TypeVar("T")

# Who we are is not believed, or who the broker is. It may be again in a moment, while passwords are changed.
CREDENTIALS: Final = frozenset({ClientError._AUTHENTICATION, ClientError._SSL, ClientError.SASL_AUTHENTICATION_FAILED})
TRUST: Final = "check the credentials and certificates under `kafka`"


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic that exists. `id` is None where the broker does not tell."""

    partitions: int
    replicas: int
    id: str | None


def admin(config: Config, on_error: Callable[[ClientError], None] | None = None) -> AdminClient:
    """A client that asks about topics; ConfigError where librdkafka refuses a property."""
    given: dict[str, Any] = {
        "client.id": f"olstream-{config.group}-{config.slot}",
        "log_level": 4,
        **properties.for_client("admin", config.kafka, {}),
        "error_cb": on_error or (lambda error: None),
    }
    try:
        return AdminClient(given, logger=logs.librdkafka())
    except KafkaException as error:
        raise refused_property(error, config) from None


def reached(
    admin: AdminClient, config: Config, refusals: list[ClientError], timeout_s: float = _CALL_S
) -> ClusterMetadata:
    """The cluster, or KafkaError with what the client said of it; `refusals` are what `on_error` was told."""
    found = cluster(admin, timeout_s)
    if found is None:
        broker = properties.for_client("admin", config.kafka, {}).get("bootstrap.servers", "")
        for error in refusals:
            if error.code() in CREDENTIALS:
                why = properties.without_secrets(tls.explained(config, error), config.kafka)
                raise KafkaError(f"Kafka at {broker} and this client do not trust each other ({why}): {TRUST}")
        told = [error.str() for error in refusals if error.code() != ClientError._ALL_BROKERS_DOWN]
        why = properties.without_secrets(told[-1], config.kafka) if told else f"no answer in {timeout_s:g} s"
        raise KafkaError(f"Kafka at {broker} cannot be reached ({why}): is it up, and is the address right?")
    return found


def lacking(admin: AdminClient, needs: Mapping[str, Collection[str]]) -> dict[str, list[str]]:
    """{topic: [operation]} of what this user needs and may not do, as far as the broker tells."""
    if not needs:
        return {}
    answers = admin.describe_topics(
        TopicCollection(list(needs)), include_authorized_operations=True, request_timeout=_CALL_S
    )
    found: dict[str, list[str]] = {}
    for name, future in answers.items():
        try:
            may = future.result().authorized_operations
        except KafkaException as error:
            if error.args[0].code() == ClientError.TOPIC_AUTHORIZATION_FAILED:  # it is hidden, if it is there
                found[name] = list(needs[name])
            continue
        if may is not None and (lacks := [each for each in needs[name] if each not in _names(may)]):
            found[name] = lacks
    return found


def needs(config: Config) -> dict[str, list[str]]:
    """What a worker does with each topic."""
    output = config.output
    written = [output.predictions, output.dead_letters, output.outcomes, output.shadows]
    wanted: dict[str, list[str]] = {topic: ["READ"] for topic in config.input.topics}
    for topic in filter(None, written):
        wanted.setdefault(topic, []).append("WRITE")
    return {**wanted, config.journal_topic: ["READ", "WRITE"]}


def to_grant(config: Config, error: ClientError) -> str:
    """What somebody has to grant after a refusal: `WRITE on topic predictions`."""
    if error.code() == ClientError.GROUP_AUTHORIZATION_FAILED:
        return f"READ on group {config.group}"
    if error.code() == ClientError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        return f"WRITE on transactional id {config.group}-{config.slot}"
    if error.code() == ClientError.CLUSTER_AUTHORIZATION_FAILED:
        return "IDEMPOTENT_WRITE on the cluster"
    wanted = needs(config)
    found = lacking(admin(config), wanted)
    return ", ".join(f"{' and '.join(lacks)} on topic {name}" for name, lacks in (found or wanted).items())


def refused_property(error: KafkaException, config: Config) -> ConfigError:
    """What librdkafka said when it was given the properties, as an error of the configuration."""
    said = properties.without_secrets(error.args[0].str(), config.kafka, config.consumer, config.producer)
    return ConfigError(f"kafka, consumer or producer: librdkafka refuses a property: {said.strip()}")


def cluster(admin: AdminClient, timeout_s: float = _CALL_S) -> ClusterMetadata | None:
    """Brokers and all topics as one broker tells them; None where none answers in time."""
    try:
        return admin.list_topics(timeout=timeout_s)
    except KafkaException:
        admin.poll(0)  # tells `on_error` why
        return None


def topics(admin: AdminClient, names: Collection[str], timeout_s: float = _CALL_S) -> dict[str, TopicFacts]:
    """The topics among `names` that exist; none at all where no broker answers in time."""
    found = cluster(admin, timeout_s)
    return facts(admin, found, names) if found is not None else {}


def facts(admin: AdminClient, found: ClusterMetadata, names: Collection[str]) -> dict[str, TopicFacts]:
    """The same, from an answer of `cluster`."""
    there = {name: found.topics[name].partitions for name in names if name in found.topics}
    imitation = str(found.cluster_id).startswith("mockCluster")  # librdkafka's: has no ids, and lets us wait for them
    ids = {} if imitation or not there else identified(admin, there)[0]
    return {
        name: TopicFacts(len(partitions), min((len(p.replicas) for p in partitions.values()), default=0), ids.get(name))
        for name, partitions in there.items()
        if partitions
    }


def topic_settings(admin: AdminClient, names: Collection[str]) -> dict[str, dict[str, str]]:
    """How each topic is set (`cleanup.policy`, `retention.ms`, ...); left out where we may not see it."""
    asked = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    answers = {r.name: f for r, f in admin.describe_configs(asked, request_timeout=_CALL_S).items()} if asked else {}
    return {
        name: {key: entry.value for key, entry in settings.items()} for name, settings in _answered(answers).items()
    }


def permitted(admin: AdminClient, names: Collection[str]) -> dict[str, frozenset[str]]:
    """What this user may do with each topic, such as READ; left out where the broker does not tell."""
    if not names:
        return {}
    answers = admin.describe_topics(
        TopicCollection(list(names)), include_authorized_operations=True, request_timeout=_CALL_S
    )
    told = {name: topic.authorized_operations for name, topic in _answered(answers).items()}
    return {name: _names(operations) for name, operations in told.items() if operations is not None}


def permitted_group(admin: AdminClient, group: str) -> frozenset[str] | None:
    """What this user may do with the consumer group; None where the broker does not tell."""
    answers = admin.describe_consumer_groups([group], include_authorized_operations=True, request_timeout=_CALL_S)
    refusal = answers[group].exception()
    if isinstance(refusal, KafkaException) and refusal.args[0].code() == ClientError.GROUP_AUTHORIZATION_FAILED:
        return frozenset()
    told = _answered(answers).get(group)
    return _names(told.authorized_operations) if told and told.authorized_operations is not None else None


def members(admin: AdminClient, group: str) -> list[str]:
    """Who is in a consumer group, by the names that clients gave themselves; KafkaError where we may not know."""
    try:
        described = admin.describe_consumer_groups([group], request_timeout=_CALL_S)[group].result()
    except KafkaException as error:
        if error.args[0].code() == ClientError.GROUP_ID_NOT_FOUND:
            return []
        raise KafkaError(f"cannot see who is in group {group} ({error.args[0].str()}): grant DESCRIBE on it") from None
    return [f"{member.client_id} at {member.host.lstrip('/')}" for member in described.members]


def make_topic(admin: AdminClient, name: str, partitions: int, settings: Mapping[str, str] | None = None) -> None:
    """Make a topic with the broker's default replication; one that another worker made meanwhile is as good."""
    new = NewTopic(name, num_partitions=partitions, replication_factor=BROKER_DEFAULT, config=dict(settings or {}))
    try:
        admin.create_topics([new], request_timeout=_CALL_S, operation_timeout=_CALL_S)[name].result()
    except KafkaException as error:
        if error.args[0].code() != ClientError.TOPIC_ALREADY_EXISTS:
            raise KafkaError(
                f"topic {name} is missing, or hidden from this user, and cannot be made ({error.args[0].str()}): "
                f"make it{_stated(partitions, settings)}, or permit this user to"
            ) from None


def ensure_journal(admin: AdminClient, config: Config, widest: int) -> TopicFacts | None:
    """The journal topic, which is made where it is missing, kept for ever, never compacted; None while it comes up."""
    name = config.journal_topic
    there = topics(admin, [name])
    if name not in there:
        make_topic(admin, name, widest, {"cleanup.policy": "delete", "retention.ms": _FOR_EVER})
        there = topics(admin, [name])
    return there.get(name)


def identified(admin: AdminClient, names: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """{topic: id} of those that are there, as far as brokers tell, and which are certainly not there."""
    answers = admin.describe_topics(TopicCollection(list(names)), request_timeout=_CALL_S)
    ids: dict[str, str] = {}
    missing: list[str] = []
    for name, future in answers.items():
        try:
            topic_id = future.result().topic_id
        except KafkaException as error:
            if error.args[0].code() == ClientError.UNKNOWN_TOPIC_OR_PART:
                missing.append(name)
        else:
            if topic_id is not None and str(topic_id) != _NO_ID:
                ids[name] = str(topic_id)
    return ids, missing


def not_seen(admin: AdminClient, config: Config, missing: Collection[str]) -> str:
    """The sentence on topics that are not there, or hidden from this user: brokers show only what one may use."""
    wanted = needs(config)
    if hidden := lacking(admin, {name: wanted[name] for name in missing}):
        told = ", ".join(f"{name} ({' and '.join(operations)})" for name, operations in hidden.items())
        return f"this user may not see the topic {told}: grant that on it"
    return no_topic(missing)


def no_topic(missing: Iterable[str]) -> str:
    """The sentence on topics that are not there."""
    return f"there is no topic {', '.join(missing)}: make it, or run `olstream check --create`"


def _names(operations: Iterable[AclOperation]) -> frozenset[str]:
    return frozenset(operation.name for operation in operations)


def _answered(answers: Mapping[str, Future[T]]) -> dict[str, T]:
    """The answers that came; one that is refused is a thing that we may not know."""
    results: dict[str, T] = {}
    for name, future in answers.items():
        try:
            results[name] = future.result()
        except KafkaException:
            continue
    return results


def _stated(partitions: int, settings: Mapping[str, str] | None) -> str:
    given = [f"{key}={value}" for key, value in (settings or {}).items()]
    if partitions != BROKER_DEFAULT:
        given.insert(0, f"{partitions} partitions")
    return f" with {', '.join(given)}" if given else ""
