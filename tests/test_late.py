"""A prediction whose label comes later is measured as if the label had been there, by every kind of learner."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pytest

from olstream.config import LearnerConfig, MonitorConfig
from olstream.late import AT_ONCE, AT_ONCE_FULL
from olstream.messages import Example
from olstream.model import Model
from olstream.pipeline import Pipeline
from tests.learners.kinds import EVERY, PLAIN, Kind, every_kind
from tests.learners.test_contract import stream
from tests.test_pipeline import chunk_of, pipeline_of, published


def tolerance(kind: Kind) -> float:
    """Exact, but for variances: the terms of their sum stand in another order where a row is learnt."""
    return 1e-12 if kind.is_second_order else 0.0


def pipeline(kind: Kind, **settings: Any) -> Pipeline:
    learner = {"algorithm": kind.name, "task": kind.task, "params": kind.params, "multiclass": kind.multiclass}
    return pipeline_of({"m": learner | settings}, output={"outcomes": "outcomes"})


def messages(kind: Kind, n: int, seed: int) -> list[dict[str, Any]]:
    rows, labels, weights = stream(kind.task, n, seed)
    told = zip(rows, labels, weights, strict=True)
    return [{"id": i, "features": x, "label": y, "weight": w} for i, (x, y, w) in enumerate(told) if w > 0.0]


def features(message: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key != "label"}


def label(message: dict[str, Any]) -> dict[str, Any]:
    return {"id": message["id"], "label": message["label"]}


def outcomes(done: Any) -> list[dict[str, Any]]:
    return [
        orjson.loads(value)
        for records in done.outgoing
        if records.topic == "outcomes"
        for value in records.values
        if value is not None
    ]


@every_kind
def test_features_and_then_their_label_come_to_what_one_record_does(kind: Kind) -> None:
    scale = "standard" if kind in PLAIN else "none"
    told = messages(kind, kind.some(40), seed=2)
    at_once, in_turn = pipeline(kind, scale=scale), pipeline(kind, scale=scale)

    wholes = published(at_once.process(chunk_of(*told)))
    joined = outcomes(
        in_turn.process(chunk_of(*(part for message in told for part in (features(message), label(message)))))
    )

    for whole, late in zip(wholes, joined, strict=True):
        assert whole is not None
        assert late == {key: whole[key] for key in ("id", "learner", "prediction", "score", "label", "correct")} | {
            "loss": pytest.approx(whole["loss"], rel=tolerance(kind), abs=tolerance(kind)), "delay_ms": 1
        }  # fmt: skip
    one, other = at_once.models["m"].state()[1], in_turn.models["m"].state()[1]
    for key, array in one.items():
        if key.startswith(("tally.", "drift.")):
            assert other[key] == pytest.approx(array, rel=1e-12, abs=1e-12), key
        else:
            assert np.array_equal(other[key], array), key


@every_kind
def test_the_loss_is_that_of_the_learner_as_it_was_whatever_it_has_learnt_since(kind: Kind) -> None:
    told = messages(kind, 14 if kind.some(40) < 40 else 50, seed=3)
    learnt, waiting, others = told[:4], told[4:9], told[9:]  # these bring classes that those did not know
    late = pipeline(kind)
    model = late.models["m"]
    measured: dict[int, float] = {}

    late.process(chunk_of(*learnt))
    for message in waiting:
        then = Model.restore("m", model.config, MonitorConfig(), *model.state())
        example = Example(message["id"], message["features"], message["label"], None, message["weight"])
        measured[message["id"]] = float(then.predict_then_update([example]).loss[0])
        late.process(chunk_of(features(message)))
    late.process(chunk_of(*others))
    done = late.process(chunk_of(*(label(message) for message in reversed(waiting))))

    found = {told["id"]: told["loss"] for told in outcomes(done)}
    assert found == {id_: pytest.approx(loss, rel=1e-12, abs=1e-12) for id_, loss in measured.items()}
    assert list(found) == [message["id"] for message in reversed(waiting)]


@pytest.mark.parametrize("kind", [kind for kind in EVERY if str(kind) in (
    "scw1-multiclass", "arow-multiclass-covariance=full", "arow-multiclass-covariance=shared", "pa1-multiclass-rest",
)], ids=str)  # fmt: skip
def test_a_class_that_came_between_prediction_and_label_is_one_without_weights(kind: Kind) -> None:
    late = pipeline(kind)
    known = [{"features": {"x": 1.0 + i, "y": -1.0}, "label": "ab"[i % 2]} for i in range(6)]
    late.process(chunk_of(*known, {"id": 1, "features": {"x": 1.0, "y": 2.0, "new": 3.0}}))
    example = Example(1, {"x": 1.0, "y": 2.0, "new": 3.0}, "d")
    model = late.models["m"]
    wanted = Model.restore("m", model.config, MonitorConfig(), *model.state()).predict_then_update([example])

    others = [{"features": {"x": 1.0, "y": 2.0, "new": 3.0}, "label": c} for c in "cdcdcd"]
    (outcome,) = outcomes(late.process(chunk_of(*others, {"id": 1, "label": "d"})))

    assert outcome["loss"] == pytest.approx(float(wanted.loss[0]), rel=1e-12)
    assert outcome["loss"] > 0.0 and outcome["correct"] is False and outcome["prediction"] in ("a", "b")


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_any_number_of_labels_may_come_at_once(covariance: str) -> None:
    n = 2 * (AT_ONCE if covariance == "diagonal" else AT_ONCE_FULL) + 3
    kind = Kind("arow", "multiclass", {"covariance": covariance})
    told = messages(kind, 3 * n // 2, seed=5)[:n]
    at_once, singly = pipeline(kind), pipeline(kind)
    for each in (at_once, singly):
        for at in range(0, n, 7):
            each.process(chunk_of(*(features(message) for message in told[at : at + 7]), *told[at : at + 3]))
    waiting = [message for i, message in enumerate(told) if i % 7 >= 3]

    together = outcomes(at_once.process(chunk_of(*map(label, waiting))))
    apart = [outcome for message in waiting for outcome in outcomes(singly.process(chunk_of(label(message))))]

    for one, other in zip(together, apart, strict=True):
        assert one | {"delay_ms": 0} == other | {"delay_ms": 0}
    assert at_once.models["m"].digest() == singly.models["m"].digest()
    assert len(together) > n // 2


def test_a_label_of_a_regression_is_measured_by_how_far_off_the_prediction_was() -> None:
    learner = LearnerConfig(algorithm="pa", task="regression", bias=False, params={"eps": 0.5})
    late = pipeline_of({"m": learner.model_dump()}, output={"outcomes": "outcomes"})

    late.process(chunk_of({"features": {"x": 1.0}, "label": 3.5}, {"id": "r", "features": {"x": 2.0}}))
    (outcome,) = outcomes(late.process(chunk_of({"features": {"x": 1.0}, "label": 0.0}, {"id": "r", "label": 7})))

    assert (outcome["prediction"], outcome["loss"], outcome["correct"]) == (6.0, 0.5, None)
    assert (outcome["id"], outcome["label"]) == ("r", 7.0)
    assert late.models["m"].tally.absolute_sum == 3.5 + 3.0 + 1.0
