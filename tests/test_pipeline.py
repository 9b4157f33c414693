"""What one chunk of records becomes."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from olstream.config import Config
from olstream.encode import HEADERS_MAX_BYTES, LONGEST_BYTES
from olstream.messages import Chunk, Headers, Reason
from olstream.model import Model
from olstream.pipeline import Pipeline, Processed

TWO = {"a": {"algorithm": "pa1"}, "b": {"algorithm": "arow"}}


def pipeline_of(learners: dict[str, Any] = TWO, **sections: Any) -> Pipeline:
    config = Config.model_validate({"input": {"topics": ["events"]}, "learners": learners} | sections)
    return Pipeline(config, {n: Model(n, c, config.monitor) for n, c in config.learners.items()})


def chunk_of(*messages: object, headers: list[Headers | None] | None = None, topic: str = "events") -> Chunk:
    n = len(messages)
    values = [m if m is None or isinstance(m, bytes) else orjson.dumps(m) for m in messages]
    keys: list[bytes | None] = [b"k%d" % i for i in range(n)]
    return Chunk(topic, 0, list(range(n)), [1000 + i for i in range(n)], keys, values, headers or [None] * n)


def labelled(i: int, **more: Any) -> dict[str, Any]:
    return {"id": i, "features": {"x": 1.0 + i, "y": -1.0}, "label": i % 2, **more}


def published(done: Processed) -> list[dict[str, Any] | None]:
    return [None if value is None else orjson.loads(value) for value in done.predictions]


def test_predictions_stand_where_their_records_stood() -> None:
    pipeline = pipeline_of()

    done = pipeline.process(chunk_of(labelled(0), b"{", None, labelled(3, learner="b")))

    assert [p and (p["id"], p["learner"], p["offset"]) for p in published(done)] == [
        (0, "a", 0),
        None,
        None,
        (3, "b", 3),
    ]
    assert {i: reject.reason for i, reject in done.rejects.items()} == {1: Reason.BAD_JSON}
    assert done.tombstones == 1
    (records,) = done.outgoing
    assert (records.topic, records.keys[3]) == ("predictions", b"k3")


def test_a_dead_letter_carries_the_bytes_and_the_place() -> None:
    done = pipeline_of().process(chunk_of(labelled(0), b"{"))

    (letter,) = done.dead_letters
    assert (letter.topic, letter.key, letter.value) == ("dead-letters", b"k1", b"{")
    assert dict(letter.headers)["olstream.offset"] == b"1"


def test_a_shadow_learns_from_what_its_champion_accepted_and_publishes_nothing() -> None:
    routes = [{"when": {}, "learner": "a", "shadows": ["b"]}]
    pipeline = pipeline_of(routes=routes)

    done = pipeline.process(chunk_of(labelled(0), labelled(1), labelled(2, label="third class")))

    assert [p and p["learner"] for p in published(done)] == ["a", "a", None]
    assert done.rejects[2].reason == Reason.UNKNOWN_LABEL
    assert [pipeline.models[name].tally.seen for name in "ab"] == [2, 2]
    assert len(done.outgoing) == 1


def test_a_shadows_predictions_go_to_their_own_topic_where_one_is_named() -> None:
    routes = [{"when": {}, "learner": "a", "shadows": ["b"]}]
    pipeline = pipeline_of(routes=routes, output={"shadows": "shadow-predictions"})

    done = pipeline.process(chunk_of(labelled(0), labelled(1)))

    assert [records.topic for records in done.outgoing] == ["predictions", "shadow-predictions"]
    shadow = orjson.loads(done.outgoing[1].values[1] or b"")
    assert (shadow["id"], shadow["learner"], shadow["shadow"]) == (1, "b", True)


def test_a_model_that_two_routes_share_meets_its_rows_in_stream_order() -> None:
    routes = [
        {"when": {"field.kind": "first"}, "learner": "a", "shadows": ["b"]},
        {"when": {}, "learner": "b", "shadows": ["a"]},
    ]
    messages = [labelled(i, kind="first" if i % 3 else "second") for i in range(12)]
    whole, one_by_one = pipeline_of(routes=routes), pipeline_of(routes=routes)

    done = whole.process(chunk_of(*messages))
    for message in messages:
        one_by_one.process(chunk_of(message))

    assert [p and p["learner"] for p in published(done)] == ["a" if i % 3 else "b" for i in range(12)]
    assert [m.digest() for m in whole.models.values()] == [m.digest() for m in one_by_one.models.values()]


@pytest.mark.parametrize(
    ("when", "chunk"),
    [
        ({"field.meta.kind": "card"}, chunk_of(labelled(0, meta={"kind": "card"}))),
        ({"header.kind": ["card", "cash"]}, chunk_of(labelled(0), headers=[[("kind", b"cash")]])),
        ({"topic": "cards"}, chunk_of(labelled(0), topic="cards")),
        ({"learner": "a"}, chunk_of(labelled(0, learner="a"))),
    ],
)
def test_a_route_looks_at_fields_headers_topics_and_learners(when: dict[str, Any], chunk: Chunk) -> None:
    pipeline = pipeline_of(routes=[{"when": when, "learner": "b"}])

    (found,) = published(pipeline.process(chunk))
    (other,) = published(pipeline.process(chunk_of(labelled(0))))

    assert found and found["learner"] == "b"
    assert other and other["learner"] == "a"


def test_chosen_headers_are_copied_to_the_prediction() -> None:
    headers: list[Headers | None] = [[("traceparent", b"00-ab"), ("other", b"x")], None]

    done = pipeline_of().process(chunk_of(labelled(0), labelled(1), headers=headers))

    assert done.outgoing[0].headers == [[("traceparent", b"00-ab")], None]


def test_headers_that_no_topic_would_take_are_not_copied() -> None:
    """They come after the learning, where nothing can be refused any more."""
    headers: list[Headers | None] = [[("traceparent", b"00-ab"), ("tracestate", b"x" * HEADERS_MAX_BYTES)]]

    done = pipeline_of().process(chunk_of(labelled(0), headers=headers))

    assert done.outgoing[0].headers == [[("traceparent", b"00-ab")]]


def test_a_record_is_refused_for_a_key_that_no_prediction_can_have() -> None:
    pipeline = pipeline_of()
    chunk = chunk_of(labelled(0), labelled(1), None)
    chunk.keys[1] = chunk.keys[2] = b"k" * (LONGEST_BYTES + 1)

    done = pipeline.process(chunk)

    assert [p and p["id"] for p in published(done)] == [0, None, None]
    assert {i: reject.reason for i, reject in done.rejects.items()} == {1: Reason.TOO_LARGE}
    assert done.tombstones == 1
    assert pipeline.models["a"].tally.seen == 1


def test_a_label_without_features_waits_at_its_learner_and_does_nothing_else() -> None:
    pipeline = pipeline_of()

    done = pipeline.process(chunk_of({"id": 1, "label": 1}, {"id": 2, "label": 1, "learner": "b"}))

    assert done.joined.label_only == {"a": 1, "b": 1}
    assert [len(model.waiting) for model in pipeline.models.values()] == [1, 1]
    assert not done.outgoing and not done.dead_letters and not done.rejects
    assert all(model.tally.seen == 0 for model in pipeline.models.values())


def test_learning_again_publishes_nothing_and_learns_the_same() -> None:
    live = pipeline_of()
    again = Pipeline(live.config, {n: Model(n, c, live.config.monitor) for n, c in live.config.learners.items()}, False)
    chunk = chunk_of(labelled(0), b"{", labelled(1))

    live.process(chunk)
    done = again.process(chunk)

    assert not done.outgoing and not done.dead_letters
    assert [m.digest() for m in again.models.values()] == [m.digest() for m in live.models.values()]
