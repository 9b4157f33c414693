"""Keys of the last records of some topics, with the partition that each stands in: a sample, for `check`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException, TopicPartition

from olstream.config import Config
from olstream.io.client import Errors, reader

_TAIL: Final = -2000  # the client's own way to write an offset that is so many records before the end
_RECORDS_MAX: Final = 5000  # of a topic
_PATIENCE_S: Final = 3.0


def sampled(config: Config, topics: Mapping[str, int]) -> dict[str, dict[bytes | None, int]]:
    """{topic: {key: partition}} from `topics` with their counts of partitions, as far as it comes in a moment."""
    consumer = reader(config, Errors())
    tails = [
        TopicPartition(topic, p, _TAIL - max(1, _RECORDS_MAX // count))
        for topic, count in topics.items()
        for p in range(count)
    ]
    found: dict[str, dict[bytes | None, int]] = {topic: {} for topic in topics}
    unfinished = {(tp.topic, tp.partition) for tp in tails}
    give_up_s = time.monotonic() + _PATIENCE_S
    try:
        consumer.assign(tails)
        while unfinished and time.monotonic() < give_up_s:
            for message in consumer.consume(1000, 0.05):
                topic, partition, key, error = message.topic(), message.partition(), message.key(), message.error()
                if error is None and topic in found and partition is not None:
                    found[topic][key.encode() if isinstance(key, str) else key] = partition
                elif error is not None and error.code() != ClientError._TRANSPORT:
                    unfinished.discard((topic or "", -1 if partition is None else partition))
    except KafkaException:
        return {}
    finally:
        consumer.close()
    return found
