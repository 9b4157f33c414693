"""Features wait for their label, and labels for their features: by hand, case by case."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import orjson
import pytest

from olstream.config import Config, LearnerConfig, MonitorConfig
from olstream.messages import Chunk, Example
from olstream.model import Model
from olstream.pipeline import Pipeline
from tests.learners.kinds import Kind, every_kind
from tests.learners.test_contract import stream
from tests.test_late import outcomes
from tests.test_pipeline import chunk_of, labelled, pipeline_of, published

ONE: dict[str, Any] = {"a": {"algorithm": "pa1", "bias": False}}
TWO: dict[str, Any] = {**ONE, "b": {"algorithm": "arow", "classes": ["u", "v"]}}
SHADOWED = [{"learner": "a", "shadows": ["b"]}]
OUT = {"outcomes": "outcomes"}


def fed(pipeline: Pipeline, *messages: object) -> Any:
    return pipeline.process(chunk_of(*messages))


def test_a_label_that_comes_first_waits_for_its_features() -> None:
    pipeline = pipeline_of(ONE)
    waiting = pipeline.models["a"].waiting

    first = fed(pipeline, {"id": "j1", "label": "a"})
    assert (len(waiting), waiting.early, published(first)) == (1, 1, [None])
    (prediction,) = published(fed(pipeline, {"id": "j1", "features": {"x": 1}}))

    assert prediction is not None and (prediction["prediction"], prediction["score"]) == (None, 0.0)
    assert (prediction["label"], prediction["correct"], prediction["updates"]) == ("a", False, 1)
    assert (len(waiting), waiting.early, waiting.nbytes) == (0, 0, 0)


def test_an_id_is_learnt_once() -> None:
    pipeline = pipeline_of(ONE, output=OUT)
    model = pipeline.models["a"]

    done = fed(
        pipeline, {"id": "j2", "features": {"x": 1}}, {"id": "j2", "label": "a"}, {"id": "j2", "label": "a"},
        {"id": "j2", "features": {"x": 1}}, {"id": "j2", "label": "b"},
    )  # fmt: skip

    assert [p and p["prediction"] for p in published(done)] == [None, None, None, "a", None]
    assert [o["label"] for o in outcomes(done)] == ["a"]
    assert done.joined.unmatched == {("a", "duplicate"): 2}
    assert (model.tally.seen, model.tally.labelled, model.tally.updates, len(model.waiting)) == (2, 1, 1, 0)


def test_an_outcome_tells_of_the_prediction_that_was_made_then_and_of_both_times() -> None:
    pipeline = pipeline_of(ONE, output=OUT)
    fed(pipeline, {"features": {"x": 1}, "label": "yes"}, {"features": {"y": 1}, "label": "no"})

    before = fed(pipeline, {"id": 7, "features": {"x": 0.25}, "ts": 1_000})
    fed(pipeline, {"features": {"x": 1}, "label": "no"}, {"features": {"x": 1}, "label": "no"})
    after = fed(pipeline, {"id": "7", "label": "no", "ts": 61_000})

    (prediction,) = published(before)
    assert prediction is not None and prediction["prediction"] == "yes"
    assert list(outcomes(after)[0].items()) == [
        ("id", 7), ("learner", "a"), ("prediction", "yes"), ("score", 0.25), ("label", "no"), ("loss", 1.25),
        ("correct", False), ("delay_ms", 60_000),
    ]  # fmt: skip


def test_features_are_counted_when_they_come_and_not_once_more_with_their_label() -> None:
    pipeline = pipeline_of(ONE)
    first = fed(pipeline, {"id": 7, "features": {"x": 1, "y": 2}})

    second = fed(pipeline, {"id": 7, "label": "u"}, {"features": {"x": 1}})

    counts = [result.rows.counts for done in (first, second) for result in done.results]
    assert sum(c.features for c in counts) == 3
    assert sum(c.seen for c in counts) == 2 and sum(c.late for c in counts) == 1


def test_an_outcome_has_the_key_and_the_headers_of_its_label() -> None:
    pipeline = pipeline_of(ONE, output=OUT)
    fed(pipeline, {"id": 7, "features": {"x": 0.25}})

    done = pipeline.process(
        chunk_of(labelled(1), {"id": 7, "label": 1}, headers=[None, [("traceparent", b"t"), ("mine", b"m")]])
    )

    (records,) = [records for records in done.outgoing if records.topic == "outcomes"]
    assert records.headers is not None and records.headers[1] == [("traceparent", b"t")]
    assert [(key, value is not None) for key, value in zip(records.keys, records.values, strict=True)] == [
        (b"k0", False), (b"k1", True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "refused",
    [
        {"id": "early", "features": [1.0, 2.0]},
        {"id": "early", "features": {"x": []}},
        {"id": 7, "label": "third class"},
        {"id": 8, "label": "third class"},
        {"id": 7, "label": []},
        {"id": 7, "features": {"x": 1}, "label": "third class"},
    ],
)
def test_a_message_that_is_refused_changes_nothing_of_what_waits(refused: dict[str, Any]) -> None:
    pipeline = pipeline_of(ONE, join={"ttl_s": 100.0})
    model = pipeline.models["a"]
    first = [{"features": {"x": 1.0}, "label": y} for y in "uv"]
    fed(pipeline, *first, {"id": 7, "features": {"x": 1.0}}, {"id": "early", "label": "u"})
    before, clocks = model.digest(), {at: list(clock.last) for at, clock in model.waiting.clocks.items()}

    done = fed(pipeline, *[refused | {"ts": 10**12}] * 6)

    assert len(done.dead_letters) == 6 and not done.joined.unmatched
    assert model.digest() == before
    assert {at: list(clock.last) for at, clock in model.waiting.clocks.items()} == clocks


def test_a_label_that_no_shadow_takes_is_known_to_all_the_same() -> None:
    pipeline = pipeline_of(TWO, routes=SHADOWED, output=OUT)
    fed(pipeline, {"id": 7, "features": {"x": 1}})

    done = fed(pipeline, {"id": 7, "label": "w"}, {"id": 7, "label": "w"})

    assert done.joined.unmatched == {("a", "duplicate"): 1}
    assert [len(model.waiting) for model in pipeline.models.values()] == [0, 0]
    assert [model.tally.labelled for model in pipeline.models.values()] == [1, 0]


def test_champion_and_shadow_are_measured_by_the_same_label_and_one_outcome_is_published() -> None:
    pipeline = pipeline_of(TWO, routes=SHADOWED, output=OUT)

    done = fed(pipeline, {"id": 7, "features": {"x": 1}}, {"id": 7, "label": "u"})

    assert [o["learner"] for o in outcomes(done)] == ["a"]
    assert [model.tally.labelled for model in pipeline.models.values()] == [1, 1]
    assert pipeline.models["b"].versus["a"].rows == 1


def test_a_label_goes_to_the_learner_that_predicted_whatever_its_own_route_is() -> None:
    routes = [{"when": {"field.kind": "b"}, "learner": "b"}, {"learner": "a"}]
    pipeline = pipeline_of(TWO, routes=routes, output=OUT)

    done = fed(pipeline, {"id": 7, "features": {"x": 1}, "kind": "b"}, {"id": 7, "label": "u"})

    assert [o["learner"] for o in outcomes(done)] == ["b"]
    assert [model.tally.labelled for model in pipeline.models.values()] == [0, 1]


def test_of_two_learners_that_predicted_an_id_each_has_its_own_label() -> None:
    routes = [{"when": {"field.kind": "b"}, "learner": "b"}, {"learner": "a"}]
    pipeline = pipeline_of(TWO, routes=routes, output=OUT)
    row = {"id": 7, "features": {"x": 1}}

    done = fed(pipeline, row | {"kind": "b"}, row, {"id": 7, "label": "u"}, {"id": 7, "label": "v", "kind": "b"})

    assert [(o["learner"], o["label"]) for o in outcomes(done)] == [("a", "u"), ("b", "v")]
    assert not done.joined.unmatched


def test_a_learner_that_a_message_names_is_the_one_that_its_route_makes_of_it() -> None:
    routes = [{"when": {"learner": "b"}, "learner": "a"}]
    in_turn, label_first = (pipeline_of(TWO, routes=routes, output=OUT) for _ in range(2))
    row, label = {"id": 7, "features": {"x": 1}, "learner": "b"}, {"id": 7, "label": "u", "learner": "b"}

    late, early = fed(in_turn, row, label), fed(label_first, label, row)

    assert [o["learner"] for o in outcomes(late)] == ["a"]
    assert published(early)[1]["label"] == "u"  # type: ignore[index]
    assert not late.joined.unmatched and not early.joined.unmatched


def test_a_label_that_waits_where_its_route_led_is_found_by_features_that_lead_elsewhere() -> None:
    routes = [{"when": {"field.kind": "b"}, "learner": "b"}, {"learner": "a"}]
    pipeline = pipeline_of(TWO, routes=routes)

    done = fed(pipeline, {"id": 7, "label": "u"}, {"id": 7, "features": {"x": 1}, "kind": "b"})

    assert published(done)[1]["label"] == "u"  # type: ignore[index]
    assert [len(model.waiting) for model in pipeline.models.values()] == [0, 0]


def test_a_label_that_waits_elsewhere_is_no_second_one_for_an_id_that_had_one() -> None:
    routes = [{"when": {"field.kind": "b"}, "learner": "b"}, {"learner": "a"}]
    pipeline = pipeline_of(TWO, routes=routes)
    row = {"id": 7, "features": {"x": 1}, "kind": "b"}

    done = fed(pipeline, {"id": 7, "label": "u"}, row | {"label": "v"}, row)

    assert [p and p["label"] for p in published(done)] == [None, "v", None]
    assert pipeline.models["b"].tally.labelled == 1


def test_weights_of_features_and_label_are_multiplied_and_stay_finite() -> None:
    twice = [{"id": i, "features": {"x": 1.0}, "weight": w} for i, w in enumerate([0.5, 1e300, 1e300])]
    pipeline = pipeline_of({"a": {"algorithm": "pa1", "bias": False, "params": {"C": 0.1}}})
    model = pipeline.models["a"]

    fed(pipeline, *twice, {"id": 0, "label": 1, "weight": 0.5})
    assert model.weights()["x"] == pytest.approx(0.1 * 0.25)
    fed(pipeline, {"id": 1, "label": 0, "weight": 1e300}, {"id": 3, "label": 1, "weight": 1e300})
    fed(pipeline, {"id": 3, "features": {"x": 1.0}, "weight": 1e300})

    assert model.tally.labelled == 3
    assert all(np.isfinite(array).all() for array in model.state()[1].values())


def test_what_weighs_nothing_waits_for_nothing() -> None:
    pipeline = pipeline_of(ONE)
    model = pipeline.models["a"]

    done = fed(pipeline, {"id": 1, "features": {"x": 1}, "weight": 0}, {"id": 2, "label": 1, "weight": 0})

    assert (len(model.waiting), model.tally.seen, done.joined.unmatched) == (0, 1, {})


def timed(pipeline: Pipeline, *told: tuple[int, dict[str, Any]], topic: str = "events", partition: int = 0) -> Any:
    values: list[bytes | None] = [orjson.dumps(message) for _, message in told]
    n = len(values)
    times: list[int | None] = [1000 * time_s for time_s, _ in told]
    return pipeline.process(Chunk(topic, partition, [*range(n)], times, [None] * n, values, [None] * n))


def test_what_waits_longer_than_ttl_goes_by_the_time_of_records_and_one_wild_time_moves_nothing() -> None:
    pipeline = pipeline_of(ONE, join={"ttl_s": 100.0})
    waiting = pipeline.models["a"].waiting
    row = {"features": {"x": 1}}

    timed(pipeline, (0, {"id": "old"} | row), (10, row), (20, row), (10**6, row), (40, row), (50, row), (99, row))
    assert len(waiting) == 1
    done = timed(pipeline, (120, row), (130, row), (140, row), (150, row))

    assert (len(waiting), done.joined.unmatched) == (0, {("a", "expired"): 1})


def test_a_topic_that_lags_behind_keeps_what_its_records_are_for() -> None:
    config = {"input": {"topics": ["features", "labels"]}, "join": {"ttl_s": 100.0}}
    pipeline = pipeline_of(ONE, **config)
    waiting = pipeline.models["a"].waiting

    timed(pipeline, *[(i, {"id": i, "features": {"x": 1}}) for i in range(0, 1000, 10)], topic="features")
    assert len(waiting) == 100
    joined = timed(pipeline, *[(i + 5, {"id": i, "label": 1}) for i in range(0, 200, 10)], topic="labels")
    assert (len(waiting), joined.joined.unmatched) == (80, {})
    done = timed(pipeline, *[(i + 150, {"id": i, "label": 1}) for i in range(400, 450, 10)], topic="labels")

    assert done.joined.unmatched == {("a", "expired"): 26}  # to 480 s, 20 s behind; the last two labels came too late
    assert waiting.early == 2


def test_partitions_have_times_of_their_own() -> None:
    pipeline = pipeline_of(ONE, join={"ttl_s": 100.0})
    waiting = pipeline.models["a"].waiting
    row = {"features": {"x": 1}}

    timed(pipeline, (0, {"id": "here"} | row))
    timed(pipeline, *[(1000, {"id": f"there {i}"} | row) for i in range(5)], partition=1)

    assert len(waiting) == 6


def test_nothing_that_waits_grows_past_its_bounds() -> None:
    n, most = 24_000, 1_000
    config = Config.model_validate({"learners": ONE, "join": {"pending_max": most}})
    pipeline = Pipeline(config, {"a": Model("a", config.learners["a"], config.monitor)}, publishes=False)
    model, evicted, sizes, held = pipeline.models["a"], 0, [], []

    tracemalloc.start()
    for first in range(0, n, 500):
        offsets = [*range(first, first + 500)]
        values: list[bytes | None] = [b'{"id":%d,"features":{"x":%d,"y":0.5}}' % (i, i % 7) for i in offsets]
        done = pipeline.process(Chunk("events", 0, offsets, [*offsets], [None] * 500, values, [None] * 500))
        evicted += done.joined.unmatched["a", "expired"]
        assert len(model.waiting) <= most
        if first % 4_000 == 0:
            del done
            held.append(tracemalloc.get_traced_memory()[0])
            sizes.append(sum(array.nbytes for array in model.state()[1].values()))
    tracemalloc.stop()

    assert (len(model.waiting), evicted, model.tally.seen) == (most, n - most, n)
    assert max(sizes[1:]) < 1.1 * sizes[1]
    assert max(held[2:]) < 1.1 * held[2]  # at first, what is settled once is still to come


@every_kind
@pytest.mark.parametrize("scale", ["none", "standard"])
def test_predicting_changes_no_state(kind: Kind, scale: str) -> None:
    rows, labels, weights = stream(kind.task, kind.some(40))
    learner = {"algorithm": kind.name, "task": kind.task, "params": kind.params, "multiclass": kind.multiclass}
    model = Model("m", LearnerConfig.model_validate(learner | {"scale": scale}), MonitorConfig())
    told = zip(rows, labels, weights, strict=True)
    model.predict_then_update([Example(features=x, label=y, weight=w) for x, y, w in told])
    others: list[dict[str, Any]] = [*rows, {"x": 200_000.0}, {"new": 1e308, "a": -1e308}, {"colour": "red"}, {}]
    meta, arrays, digest = *model.state(), model.digest()

    asked = model.predict([Example(features=row) for row in others])
    again = model.predict([Example("an id", row, labels[0]) for row in others])

    assert np.array_equal(asked.score, again.score) and model.digest() == digest
    model.predict_then_update([Example(features=row) for row in others])
    model.predict_then_update([Example(None, row, labels[0], None, 0.0) for row in others])
    now_meta, now = model.state()
    seen = now["tally.counts"][0]
    now["tally.counts"][0] -= 2 * len(others)
    assert seen == arrays["tally.counts"][0] + 2 * len(others)
    assert now_meta == meta and now.keys() == arrays.keys()
    assert all(np.array_equal(now[key], array) for key, array in arrays.items())


def test_a_digest_knows_what_waits_and_since_when_and_not_where_it_came_from() -> None:
    rows = [{"id": i, "features": {"x": i + 0.5}, "ts": 1000 * i} for i in range(3)]
    told = [*rows, {"id": "early", "label": 1, "ts": 5000}]

    def digest(messages: list[dict[str, Any]], topic: str = "events", partition: int = 0, first: int = 0) -> str:
        pipeline = pipeline_of(ONE, input={"topics": [topic]})
        values: list[bytes | None] = [orjson.dumps(message) for message in messages]
        n = len(values)
        offsets, times = [*range(first, first + n)], [*range(first, first + n)]
        pipeline.process(Chunk(topic, partition, offsets, [*times], [None] * n, values, [None] * n))
        return pipeline.models["a"].digest()

    same = digest(told)
    assert digest(told, "elsewhere", 3, first=1000) == same
    assert digest([{**told[0], "learner": "a"}, *told[1:]]) == same
    for other in (
        told[:-1], [*told[1:], told[0]], [{**told[0], "id": 9}, *told[1:]], [{**told[0], "ts": 7}, *told[1:]],
        [{**told[0], "weight": 2}, *told[1:]], [{**told[0], "features": {"x": 9}}, *told[1:]],
        [*told[:-1], {**told[-1], "label": 0}], [*told[:-1], {**told[-1], "ts": 4999}],
    ):  # fmt: skip
        assert digest(other) != same


def test_a_digest_knows_nothing_of_ids_that_had_their_label_and_of_other_learners() -> None:
    row = {"features": {"x": 1.0}, "label": 1}
    shadowed, alone = pipeline_of(TWO, routes=SHADOWED), pipeline_of(TWO, routes=[{"learner": "b"}])
    with_ids = pipeline_of(TWO, routes=SHADOWED)

    fed(shadowed, row | {"label": "u"})
    fed(alone, row | {"label": "u"})
    fed(with_ids, row | {"label": "u", "id": 1})

    assert shadowed.models["b"].versus and not alone.models["b"].versus
    assert shadowed.models["b"].digest() == alone.models["b"].digest() == with_ids.models["b"].digest()
    assert with_ids.models["b"].waiting.is_settled("1")
