"""What `olstream check` looks at: is Kafka as this configuration needs it? One finding a line.

The rules are functions of the configuration and of what was seen of the cluster.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from olstream.config import Config
from olstream.pairs import MAKE_EQUAL, UNEQUAL, unequal

Level: TypeAlias = Literal["ok", "note", "warn", "FAIL"]
Topics: TypeAlias = dict[str, str]  # topic -> what it is to us, such as "predictions"

CONFIGURATION: Final = 2
KAFKA: Final = 3

# How much longer than the time between checkpoints an input should be kept: an outage must fit in.
_OUTAGE_MS: Final = 3_600_000
# A dead letter carries up to 900,000 bytes of value, its key, and headers.
_DEAD_LETTER_BYTES: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: what is so, and what to do where it is not well. `exit_code` counts for FAIL."""

    level: Level
    subject: str
    sentence: str
    exit_code: int = CONFIGURATION


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that is there. Settings are empty where we may not see them; `permitted` None where nobody tells."""

    partitions: int
    replicas: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)
    permitted: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of the cluster."""

    brokers: int
    topics: Mapping[str, Topic]
    group_permitted: frozenset[str] | None = None
    hidden: Mapping[str, Sequence[str]] = field(default_factory=dict)  # topics that we may not see: what to permit
    keys: Mapping[str, Mapping[bytes | None, int]] = field(default_factory=dict)  # of some records: their partitions


def outputs(config: Config) -> Topics:
    """The topics that are written to, less the journal."""
    given = {
        config.output.predictions: "predictions",
        config.output.dead_letters: "dead letters",
        config.output.outcomes: "outcomes",
        config.output.shadows: "shadows",
    }
    return {topic: what for topic, what in given.items() if topic is not None}


def of_the_file(config: Config) -> Iterator[Finding]:
    """What the file alone tells."""
    count = len(config.learners)
    named = ", ".join(f"{name} ({learner.algorithm}, {learner.task})" for name, learner in config.learners.items())
    yield Finding("ok", "file", f"valid, {count} learner{'s' if count > 1 else ''}: {named}")
    yield Finding(
        "note",
        "slots",
        f"this is slot {config.slot} of group {config.group}; each slot learns a model of its own from its own "
        "partitions: N slots are N models",
    )
    if config.http.token is None and config.http.host not in ("127.0.0.1", "::1", "localhost"):
        yield Finding("note", "http", f"{config.http.host}:{config.http.port} is open to others without a token")


def of_the_cluster(config: Config, seen: Seen) -> Iterator[Finding]:
    """What Kafka is like, against what the configuration needs."""
    for topic in config.input.topics:
        yield from _input(config, topic, seen)
    yield from _partitions(config, seen)
    for topic, what in outputs(config).items():
        yield from _output(topic, what, seen)
    yield from _journal(config, seen)
    yield from _group(config, seen)


def _input(config: Config, name: str, seen: Seen) -> Iterator[Finding]:
    topic = seen.topics.get(name)
    if topic is None:
        yield _missing(name, "input", seen)
        return
    yield from _judged(f"input {name}", topic, _of_input(config, topic, f"input {name}"))


def _of_input(config: Config, topic: Topic, subject: str) -> Iterator[Finding]:
    kept = _retention_ms(topic)
    if "compact" in topic.settings.get("cleanup.policy", ""):
        yield Finding(
            "FAIL",
            subject,
            "is compacted, so records that were learnt vanish and cannot be learnt again: set cleanup.policy=delete",
        )
    interval_ms = config.checkpoint.interval_s * 1000
    if kept is not None and kept < interval_ms:
        yield Finding(
            "FAIL", subject, f"keeps records {_span(kept)}, less than checkpoint.interval: raise retention.ms"
        )
    elif kept is not None and kept < interval_ms + _OUTAGE_MS:
        yield Finding(
            "warn", subject, f"keeps records {_span(kept)} only: a longer outage ends in a gap (input.on_gap)"
        )
    if topic.settings.get("retention.bytes", "-1") != "-1":
        yield Finding("warn", subject, "is cut by retention.bytes too: under load that can be sooner than retention.ms")
    yield from _may(topic, "READ", subject)


def _partitions(config: Config, seen: Seen) -> Iterator[Finding]:
    counts = {name: seen.topics[name].partitions for name in config.input.topics if name in seen.topics}
    if not counts:
        return
    if told := unequal(counts):
        allowed = config.join.allow_partition_mismatch
        yield Finding(
            "warn" if allowed else "FAIL",
            "partitions",
            f"{told}: {UNEQUAL}" + (" (join.allow_partition_mismatch)" if allowed else f"; {MAKE_EQUAL}"),
        )
    else:
        yield from _keys(seen)
    widest = max(counts.values())
    if config.slot >= widest:
        yield Finding("warn", "slots", f"no input has more than {widest} partitions: slot {config.slot} may get none")
    for name, learner in config.learners.items():
        if widest > 1 and learner.task == "binary" and learner.classes is None:
            yield Finding(
                "note",
                f"learner {name}",
                f"which class is positive is the order in which labels come, and that may differ between {widest} "
                "partitions: declare classes: [negative, positive]",
            )


def _keys(seen: Seen) -> Iterator[Finding]:
    """Equal counts are in vain where records have no keys, or producers share them out in different ways."""
    for topic, keys in seen.keys.items():
        if None in keys:
            yield Finding(
                "note",
                "keys",
                f"records of {topic} have none: a label that comes on a topic of its own needs the key of its features",
            )
    for one, other in itertools.combinations(seen.keys, 2):
        ours, theirs = seen.keys[one], seen.keys[other]
        shared = sorted(key for key in ours.keys() & theirs.keys() if key is not None)
        apart = [key for key in shared if ours[key] != theirs[key]]
        if apart:  # no key is shown: they may be about people
            yield Finding(
                "warn",
                "keys",
                f"{len(apart)} of {len(shared)} that {one} and {other} share are in different partitions, such as "
                f"{one}[{ours[apart[0]]}] and {other}[{theirs[apart[0]]}]: produce both with the same partitioner, "
                "such as murmur2_random, which Java clients and `olstream send` use",
            )
        elif shared:
            yield Finding("ok", "keys", f"{len(shared)} that {one} and {other} share are in the same partitions")


def _output(name: str, what: str, seen: Seen) -> Iterator[Finding]:
    topic = seen.topics.get(name)
    if topic is None:
        yield _missing(name, what, seen)
        return
    yield from _judged(f"{what} {name}", topic, _of_output(topic, what, f"{what} {name}", seen))


def _of_output(topic: Topic, what: str, subject: str, seen: Seen) -> Iterator[Finding]:
    if what == "dead letters" and int(topic.settings.get("max.message.bytes", _DEAD_LETTER_BYTES)) < _DEAD_LETTER_BYTES:
        yield Finding("note", subject, f"max.message.bytes is below {_DEAD_LETTER_BYTES}: long dead letters are cut")
    yield from _replicas(topic, subject, seen)
    yield from _may(topic, "WRITE", subject)


def _journal(config: Config, seen: Seen) -> Iterator[Finding]:
    name = config.journal_topic
    topic = seen.topics.get(name)
    if topic is None and name in seen.hidden:
        yield _missing(name, "journal", seen)
        return
    if topic is None:
        yield Finding("note", f"journal {name}", "is not there yet: `run` makes it, and so does --create")
        return
    yield from _judged(f"journal {name}", topic, _of_journal(config, topic, f"journal {name}", seen))


def _of_journal(config: Config, topic: Topic, subject: str, seen: Seen) -> Iterator[Finding]:
    if "compact" in topic.settings.get("cleanup.policy", ""):
        yield Finding("FAIL", subject, "is compacted, which loses what was learnt: set cleanup.policy=delete")
    kept = _retention_ms(topic)
    if kept is not None and kept < max(_input_retention_ms(config, seen), default=0.0):
        yield Finding(
            "FAIL", subject, f"keeps lines {_span(kept)}, less than an input keeps records: set retention.ms=-1"
        )
    elif kept is not None:
        yield Finding("warn", subject, f"keeps lines {_span(kept)}: `on_missing: replay` needs all, retention.ms=-1")
    if topic.settings.get("retention.bytes", "-1") != "-1":
        yield Finding("warn", subject, "is cut by retention.bytes: a start may find its lines gone; set it to -1")
    yield from _replicas(topic, subject, seen)
    for operation in ("READ", "WRITE"):
        yield from _may(topic, operation, subject)


def _group(config: Config, seen: Seen) -> Iterator[Finding]:
    if seen.group_permitted is None:
        yield Finding("note", f"group {config.group}", "the broker does not tell what this user may do with it")
    elif "READ" not in seen.group_permitted:
        yield Finding(
            "FAIL", f"group {config.group}", "this user may not join it: permit READ on the group", exit_code=KAFKA
        )
    else:
        yield Finding("ok", f"group {config.group}", "this user may join it")
    if config.guarantee == "exactly_once":
        yield Finding(
            "note",
            "transactions",
            f"needs WRITE on the transactional id {config.group}-{config.slot}, which only `run` can find out",
        )


def _judged(subject: str, topic: Topic, found: Iterator[Finding]) -> Iterator[Finding]:
    """What was found, and that the topic will do where none of it is a FAIL."""
    findings = list(found)
    if not any(finding.level == "FAIL" for finding in findings):
        yield Finding("ok", subject, f"{_count(topic)}, {_kept(topic)}")
    yield from findings


def _missing(name: str, what: str, seen: Seen) -> Finding:
    if operations := seen.hidden.get(name):
        sentence = f"this user may not see it, if it is there: permit {' and '.join(operations)} on the topic"
    else:
        sentence = "is not there: make it, or run with --create"
    return Finding("FAIL", f"{what} {name}", sentence, KAFKA)


def _may(topic: Topic, operation: str, subject: str) -> Iterator[Finding]:
    if topic.permitted is not None and operation not in topic.permitted:
        yield Finding("FAIL", subject, f"this user may not {operation.lower()}: permit {operation} on the topic", KAFKA)


def _replicas(topic: Topic, subject: str, seen: Seen) -> Iterator[Finding]:
    if topic.replicas == 1 and seen.brokers > 1:
        yield Finding("warn", subject, "has one replica: what was committed is lost with that broker's disk")


def _input_retention_ms(config: Config, seen: Seen) -> Iterator[float]:
    for name in config.input.topics:
        if name in seen.topics and seen.topics[name].settings:
            yield _retention_ms(seen.topics[name]) or math.inf


def _retention_ms(topic: Topic) -> float | None:
    """How long records are kept; None is for ever, or not to be seen."""
    kept = int(topic.settings.get("retention.ms", "-1"))
    return None if kept < 0 or topic.settings.get("cleanup.policy") == "compact" else float(kept)


def _kept(topic: Topic) -> str:
    if not topic.settings:
        return "settings not to be seen"
    kept = _retention_ms(topic)
    return f"cleanup {topic.settings.get('cleanup.policy', '?')}, kept {'for ever' if kept is None else _span(kept)}"


def _count(topic: Topic) -> str:
    return f"{topic.partitions} partition{'s' if topic.partitions > 1 else ''}"


def _span(ms: float) -> str:
    for unit, size in (("days", 86_400_000), ("hours", 3_600_000), ("minutes", 60_000)):
        if ms >= 2 * size:
            return f"{ms / size:.3g} {unit}"
    return f"{ms / 1000:.3g} seconds"
