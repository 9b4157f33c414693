"""Kafka client properties: which names librdkafka has, and which of them are not the user's to set.

One table says what the guarantees rest on, each with its reason. The names are those of librdkafka 2.16,
less what only a program can use (callbacks) and what its share consumer needs.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from olstream.hidden import HIDDEN, USER_IN_URL, remember

Value: TypeAlias = str | int | float | bool
Properties: TypeAlias = Mapping[str, Value]


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CONSUMER: Final = _names(
    """
    auto.commit.enable auto.commit.interval.ms auto.offset.reset check.crcs consume.callback.max.messages
    coordinator.query.interval.ms enable.auto.commit enable.auto.offset.store enable.partition.eof
    fetch.error.backoff.ms fetch.max.bytes fetch.message.max.bytes fetch.min.bytes fetch.queue.backoff.ms
    fetch.wait.max.ms group.id group.instance.id group.protocol group.protocol.type group.remote.assignor
    heartbeat.interval.ms isolation.level max.partition.fetch.bytes max.poll.interval.ms offset.store.method
    offset.store.path offset.store.sync.interval.ms partition.assignment.strategy queued.max.messages.kbytes
    queued.min.messages session.timeout.ms
    """
)
_PRODUCER: Final = _names(
    """
    acks batch.num.messages batch.size compression.codec compression.level compression.type
    delivery.report.only.error delivery.timeout.ms enable.gapless.guarantee enable.idempotence linger.ms
    message.send.max.retries message.timeout.ms partitioner produce.offset.report
    queue.buffering.backpressure.threshold queue.buffering.max.kbytes queue.buffering.max.messages
    queue.buffering.max.ms queuing.strategy request.required.acks request.timeout.ms retries
    sticky.partitioning.linger.ms transaction.timeout.ms transactional.id
    """
)
_BOTH: Final = _names(
    """
    allow.auto.create.topics api.version.fallback.ms api.version.request api.version.request.timeout.ms
    bootstrap.servers broker.address.family broker.address.ttl broker.version.fallback client.dns.lookup client.id
    client.rack connections.max.idle.ms debug enable.metrics.push enable.random.seed
    enable.sasl.oauthbearer.unsecure.jwt enable.ssl.certificate.verification https.ca.location https.ca.pem
    internal.termination.signal log.connection.close log.queue log.thread.name log_level max.in.flight
    max.in.flight.requests.per.connection message.copy.max.bytes message.max.bytes metadata.broker.list
    metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy plugin.library.paths
    receive.message.max.bytes reconnect.backoff.jitter.ms reconnect.backoff.max.ms reconnect.backoff.ms
    retry.backoff.max.ms retry.backoff.ms sasl.kerberos.keytab sasl.kerberos.kinit.cmd
    sasl.kerberos.min.time.before.relogin sasl.kerberos.principal sasl.kerberos.service.name sasl.mechanism
    sasl.mechanisms sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
    sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
    sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
    sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
    sasl.oauthbearer.assertion.jwt.template.file sasl.oauthbearer.assertion.private.key.file
    sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.private.key.pem
    sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
    sasl.oauthbearer.client.id sasl.oauthbearer.client.secret sasl.oauthbearer.config sasl.oauthbearer.extensions
    sasl.oauthbearer.grant.type sasl.oauthbearer.metadata.authentication.type sasl.oauthbearer.method
    sasl.oauthbearer.scope sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url sasl.password
    sasl.username security.protocol socket.blocking.max.ms socket.connection.setup.timeout.ms
    socket.keepalive.enable socket.max.fails socket.nagle.disable socket.receive.buffer.bytes
    socket.send.buffer.bytes socket.timeout.ms ssl.ca.certificate.stores ssl.ca.location ssl.ca.pem
    ssl.certificate.location ssl.certificate.pem ssl.cipher.suites ssl.crl.location ssl.curves.list
    ssl.endpoint.identification.algorithm ssl.engine.id ssl.engine.location ssl.key.location ssl.key.password
    ssl.key.pem ssl.keystore.location ssl.keystore.password ssl.providers ssl.sigalgs.list statistics.interval.ms
    topic.blacklist topic.metadata.propagation.max.ms topic.metadata.refresh.fast.cnt
    topic.metadata.refresh.fast.interval.ms topic.metadata.refresh.interval.ms topic.metadata.refresh.sparse
    """
)
NAMES: Final = _CONSUMER | _PRODUCER | _BOTH

_ALIASES: Final = {
    "metadata.broker.list": "bootstrap.servers",
    "auto.commit.enable": "enable.auto.commit",
    "request.required.acks": "acks",
    "max.in.flight.requests.per.connection": "max.in.flight",
    "message.send.max.retries": "retries",
    "message.timeout.ms": "delivery.timeout.ms",
    "queue.buffering.max.ms": "linger.ms",
    "sasl.mechanisms": "sasl.mechanism",
    "compression.codec": "compression.type",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
}

# How long a dead worker's open transaction may hold readers back, unless `transaction.timeout.ms` says otherwise.
TRANSACTION_TIMEOUT_S: Final = 10.0
# How long a member that is dead counts as one: what clients, and brokers under KIP-848, have by default.
SESSION_TIMEOUT_S: Final = 45.0
# What a transaction needs beyond the commit interval: a turn of the loop, a revoke, a slow broker.
_COMMIT_MARGIN_S: Final = 5.0

# What a property holds, by its name. `acks` is text: it may be "all".
Kind: TypeAlias = Literal["number", "fraction", "switch", "text"]
_NUMBER: Final = re.compile(
    r".*(\.ms|bytes|messages|\.seconds|\.cnt|\.fails|\.ttl|\.size|compression\.level|log_level|retries|\.threshold|max\.in\.flight.*"
    r"|\.relogin|\.signal)"
)
_FRACTION: Final = _names("linger.ms queue.buffering.max.ms")
_SWITCH: Final = re.compile(
    r"enable\..*|.*\.(enable|disable|crcs|sparse|include)|auto\.commit\.enable|allow\.auto\.create\.topics"
    r"|api\.version\.request|log\.(connection\.close|queue|thread\.name)|produce\.offset\.report"
)

_NO: Final = {"false", "f", "0"}
_YES: Final = {"true", "t", "1"}


@dataclass(frozen=True, slots=True)
class Rule:
    """The values of a property under which the guarantees hold, and why others break them."""

    allowed: Callable[[str], bool]
    reason: str


def _one_of(*values: str) -> Callable[[str], bool]:
    return lambda value: value in values


def _whole(low: int, high: int) -> Callable[[str], bool]:
    return lambda value: value.lstrip("-").isdigit() and low <= int(value) <= high


RULES: Final[dict[str, Rule]] = {
    # Consumer
    "enable.auto.commit": Rule(_one_of(*_NO), "offsets are committed together with what was learnt from them"),
    "enable.auto.offset.store": Rule(_one_of(*_NO), "offsets are committed together with what was learnt from them"),
    "offset.store.method": Rule(_one_of("broker"), "committed offsets live in Kafka, beside the predictions"),
    "auto.offset.reset": Rule(
        _one_of("error"), "a silent jump would lose or repeat records; `input.start` and `input.on_gap` decide"
    ),
    "isolation.level": Rule(
        _one_of("read_committed"), "aborted records would be learnt, and a start could read offsets that are not final"
    ),
    "group.id": Rule(_one_of(), "it is the key `group`"),
    "group.instance.id": Rule(
        _one_of(), "it is made of the keys `group` and `slot`, so that a slot keeps its partitions"
    ),
    "partition.assignment.strategy": Rule(
        _one_of("range"), "partition i of every input topic must come to the same slot, which only range does"
    ),
    "group.remote.assignor": Rule(
        _one_of("range"), "partition i of every input topic must come to the same slot, which only range does"
    ),
    # Producer
    "transactional.id": Rule(_one_of(), "it is made of the keys `group` and `slot`, so that a restart fences its past"),
    "transaction.timeout.ms": Rule(
        _whole(1_000, 900_000), "below 1000 no commit fits in, and brokers refuse more than 900000 by default"
    ),
    "enable.idempotence": Rule(_one_of(*_YES), "without it a retry could publish a prediction twice or out of order"),
    "acks": Rule(_one_of("all", "-1"), "a prediction counts as published once every in-sync replica has it"),
    "max.in.flight": Rule(_whole(1, 5), "more than 5 requests in flight cannot be kept in order"),
    "retries": Rule(_whole(1, 2**31 - 1), "without retries one lost connection would fail a transaction"),
    "queuing.strategy": Rule(_one_of("fifo"), "predictions and journal lines must keep their order"),
    "delivery.report.only.error": Rule(_one_of(), "a commit waits for the report of each of its records"),
    # Every client
    "log.queue": Rule(_one_of(*_NO), "nothing reads that queue, so it would grow without bound"),
    "test.mock.num.brokers": Rule(
        _one_of("0"), "each client would get a broker of its own; `olstream demo` runs an embedded one"
    ),
}


def complaint(section: str, name: str, value: object) -> str | None:
    """What is wrong with one property of `kafka`, `consumer` or `producer`; None where nothing is."""
    if isinstance(value, Mapping):
        return f"write the property's name in full, such as `{name}.{next(iter(value), '...')}`"
    if value is None or isinstance(value, list):
        return "must be text, a number, true or false; several values are one text, joined by commas"
    if unlike := _unlike(kind(name), text(value).strip()):
        return unlike
    rule = RULES.get(canonical(name))
    if rule and not rule.allowed(text(value).strip().lower()):
        return f"must not be set to {text(value)!r}: {rule.reason}"
    if name not in NAMES and rule is None:
        near = difflib.get_close_matches(name, sorted(NAMES), 1, 0.6)
        return "is no property of librdkafka" + (f"; did you mean `{near[0]}`?" if near else "")
    other = "producer" if section == "consumer" else "consumer"
    if section != "kafka" and name in (_PRODUCER if section == "consumer" else _CONSUMER):
        return f"is a property of the {other}; move it to `{other}`"
    return None


def kind(name: str) -> Kind:
    """What librdkafka takes for a property."""
    if name in _FRACTION:
        return "fraction"
    if name not in NAMES or not (_NUMBER.fullmatch(name) or _SWITCH.fullmatch(name)):
        return "text"
    return "number" if _NUMBER.fullmatch(name) else "switch"


def _unlike(kind_: Kind, value: str) -> str | None:
    """What is wrong with a value of that kind; None where nothing is."""
    if kind_ == "switch":
        return None if value.lower() in _YES | _NO else f"must be true or false, not {value!r}"
    if kind_ == "fraction":
        return None if re.fullmatch(r"[0-9]+(\.[0-9]*)?", value) else f"must be a number, not {value!r}"
    return None if kind_ == "text" or re.fullmatch(r"-?[0-9]+", value) else f"must be a whole number, not {value!r}"


def too_short(commit_interval_s: float, producer: Properties) -> str | None:
    """What is wrong with the transaction's timeout against the interval of commits; None where it suffices."""
    timeout_s = transaction_timeout_s(producer)
    if timeout_s >= commit_interval_s + _COMMIT_MARGIN_S:
        return None
    return (
        f"{commit_interval_s:g} s and {_COMMIT_MARGIN_S:g} s more do not fit into transactions of {timeout_s:g} s: "
        "make it shorter, or raise transaction.timeout.ms under `producer`"
    )


def transaction_timeout_s(producer: Properties) -> float:
    timeout_ms = number(producer, "transaction.timeout.ms")
    return TRANSACTION_TIMEOUT_S if timeout_ms is None else timeout_ms / 1000


def session_timeout_s(consumer: Properties) -> float:
    timeout_ms = number(consumer, "session.timeout.ms")
    return SESSION_TIMEOUT_S if timeout_ms is None else timeout_ms / 1000


def rules_text() -> str:
    """The table of refused properties, for `olstream check --help`."""
    return "\n".join(f"{name}: {rule.reason}" for name, rule in RULES.items())


def canonical(name: str) -> str:
    """The one name of a property that librdkafka knows under two."""
    return _ALIASES.get(name, name)


def text(value: object) -> str:
    """A value as librdkafka reads it."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def number(properties: Properties, name: str) -> int | None:
    """A property's whole number, where it is set to one."""
    for key, value in properties.items():
        if canonical(key) == name and text(value).lstrip("-").isdigit():
            return int(value)
    return None


def for_client(kind: Literal["consumer", "producer", "admin"], common: Properties, own: Properties) -> dict[str, str]:
    """The properties of one client: the common ones that concern it, then its own; each under one name."""
    foreign = {"consumer": _PRODUCER, "producer": _CONSUMER, "admin": _CONSUMER | _PRODUCER}[kind]
    merged = {canonical(name): text(value) for name, value in common.items() if name not in foreign}
    return merged | {canonical(name): text(value) for name, value in own.items()}


_SECRET: Final = ("password", "secret", "passphrase", ".pem", "sasl.oauthbearer.config", "sasl.oauthbearer.extensions")


def is_secret(name: str) -> bool:
    return any(part in name for part in _SECRET)


def remember_secrets(tree: object) -> None:
    """Those that stand in a configuration are never to be said."""
    for section in ("kafka", "consumer", "producer", "http"):
        said = tree.get(section) if isinstance(tree, dict) else None
        for name, value in said.items() if isinstance(said, dict) else ():
            if name == "token" or is_secret(name):
                remember(text(value))


def without_secrets(said: str, *given: Properties) -> str:
    """What a client said, less the values that nobody may read."""
    for name, value in ((name, text(value)) for section in given for name, value in section.items()):
        if is_secret(name) and value:
            said = said.replace(value, HIDDEN)
    return USER_IN_URL.sub(HIDDEN, said)
