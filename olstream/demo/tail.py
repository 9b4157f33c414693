"""The last few predictions of the demo, to have seen one."""

from __future__ import annotations

import json
import time
from typing import Any, Final

from confluent_kafka import Consumer, TopicPartition

PATIENCE_S: Final = 5.0


def last_predictions(bootstrap: str, topic: str, n: int) -> list[dict[str, Any]]:
    """The newest n of a topic, in order of their input; fewer where the broker is slow."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"{topic}-tail", "log_level": 0})
    try:
        partitions = consumer.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions
        starts = []
        for partition in partitions:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), PATIENCE_S)
            if high > low:
                starts.append((TopicPartition(topic, partition, max(low, high - n)), high - max(low, high - n)))
        consumer.assign([start for start, _ in starts])
        wanted = sum(count for _, count in starts)
        found: list[bytes] = []
        deadline = time.monotonic() + PATIENCE_S
        while len(found) < wanted and time.monotonic() < deadline:
            found += [m.value() or b"null" for m in consumer.consume(wanted - len(found), 0.2) if m.error() is None]
    finally:
        consumer.close()
    return sorted(map(json.loads, found), key=lambda p: int(p["offset"]))[-n:]
