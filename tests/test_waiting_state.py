"""What waits, as arrays: it comes back as it was, and what was made up is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import orjson
import pytest

from olstream.config import MonitorConfig
from olstream.errors import StateError
from olstream.model import Model
from tests.test_pipeline import chunk_of, pipeline_of

SEVERAL = {"m": {"algorithm": "arow", "task": "multiclass"}}


def saved(learners: dict[str, Any] = SEVERAL) -> tuple[Model, dict[str, Any], dict[str, Any]]:
    """A learner of three classes; two rows and a label wait for it, in this order."""
    pipeline = pipeline_of(learners)
    known = [{"id": f"known {i}", "features": {"x": 1.0, "y": -i}, "label": "abc"[i]} for i in range(3)]
    pipeline.process(chunk_of(*known, {"id": 7, "features": {"x": 2, "new": 0.5}}))
    pipeline.process(chunk_of({"id": "ä\n", "features": {"colour": "r\ned"}, "weight": 0.5, "ts": 9}))
    pipeline.process(chunk_of(b'{"id": %d, "label": %d, "learner": "m"}' % (2**64 - 1, 10**30)))
    model = pipeline.models["m"]
    return (model, *model.state())


def restored(model: Model, meta: dict[str, Any], arrays: dict[str, Any]) -> Model:
    return Model.restore("m", model.config, MonitorConfig(), meta, arrays)


def test_what_waits_comes_back_as_it_was() -> None:
    model, meta, arrays = saved()

    again = restored(model, orjson.loads(orjson.dumps(meta)), arrays)

    assert list(again.waiting.entries.items()) == list(model.waiting.entries.items())
    assert again.waiting.clocks == model.waiting.clocks
    assert (again.waiting.nbytes, again.waiting.early) == (model.waiting.nbytes, 1)
    assert list(again.waiting.settled) == ["known 0", "known 1", "known 2"]
    assert again.digest() == model.digest()


def test_a_state_from_before_late_labels_were_joined_is_taken() -> None:
    model, meta, arrays = saved()
    del meta["waiting"]

    again = restored(model, meta, {key: a for key, a in arrays.items() if not key.startswith("waiting.")})

    assert len(again.waiting) == 0


def text(value: object) -> np.ndarray[Any, Any]:
    return np.frombuffer(value if isinstance(value, bytes) else orjson.dumps(value), np.uint8)


def put(name: str, place: Any, value: float) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def change(_meta: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays[f"waiting.{name}"] = arrays[f"waiting.{name}"].copy()
        arrays[f"waiting.{name}"][place] = value

    return change


def instead(name: str, array: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda _meta, arrays: arrays.__setitem__(f"waiting.{name}", array)


def without(name: str) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda _meta, arrays: arrays.__delitem__(f"waiting.{name}")


def told(key: str, value: object) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda meta, _arrays: meta["waiting"].__setitem__(key, value)


def texts(first: bytes, last: bytes = b'"a"') -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return instead("texts", text(b"\n".join([first, b'{"x":1.0}', last])))


FORGED = {
    "an id twice": instead("ids", text([7, "7", 8])),
    "an id that is null": instead("ids", text([None, "b", 8])),
    "an id that is no whole number": instead("ids", text([1.5, "b", 8])),
    "an id that is too long": instead("ids", text(["a" * 257, "b", 8])),
    "fewer ids": instead("ids", text([7])),
    "ids that are no list": instead("ids", text({"a": 1})),
    "ids that are no JSON": instead("ids", text(b"[7, ")),
    "ids of another type": instead("ids", np.zeros(3)),
    "a weight of zero": put("numbers", (0, 0), 0.0),
    "a weight below zero": put("numbers", (0, 0), -1.0),
    "a score that is not finite": put("numbers", (0, 1), np.inf),
    "a variance below zero": put("numbers", (0, 2), -1.0),
    "a fresh variance below zero": put("numbers", (0, 3), -1e-9),
    "a variance of a class below zero": put("spreads", 0, -1.0),
    "a number too few": instead("numbers", np.ones((3, 3))),
    "a kind that is none": put("codes", (0, 0), 3),
    "a class that was predicted and is not there": put("codes", (0, 2), 3),
    "more classes known than there are scores": put("codes", (0, 3), 2),
    "fewer than no classes": put("codes", (0, 3), -1),
    "a topic that is not there": put("places", (0, 0), 1),
    "a learner that is not there": put("places", (0, 3), 9),
    "a partition below zero": put("places", (0, 1), -1),
    "an offset below zero": put("places", (0, 2), -1),
    "places too short": instead("places", np.zeros((3, 3), np.int64)),
    "features that are null": texts(b"null"),
    "features that are a number": texts(b"1"),
    "features that are a text": texts(b'"x"'),
    "a feature that is an array": texts(b'{"x":[1.0]}'),
    "a feature without a name": texts(b'{"":1.0}'),
    "a feature that is not finite": texts(b'{"x":1e999}'),
    "a feature that is no number": texts(b'{"x":NaN}'),
    "an array with a text": texts(b'[1.0,"2"]'),
    "features that are no JSON": texts(b"{"),
    "a label that is null": texts(b'{"x":1.0}', b"null"),
    "a label that is an object": texts(b'{"x":1.0}', b"{}"),
    "an empty label": texts(b'{"x":1.0}', b'""'),
    "a label that is not finite": texts(b'{"x":1.0}', b"1e999"),
    "more texts": texts(b'{"x":1.0}\n{}'),
    "scores too many": instead("scores", np.zeros(9)),
    "scores that are cut elsewhere": instead("score_ends", np.array([2, 6, 6])),
    "scores that end before they begin": instead("score_ends", np.array([6, 3, 6])),
    "spreads that are cut elsewhere": instead("spread_ends", np.array([2, 6, 6])),
    "no texts": without("texts"),
    "no codes": without("codes"),
    "settled ids that are no JSON": instead("settled", text(b"[")),
    "settled ids that are a number": instead("settled", text(b"1")),
    "a count of joined ones below zero": told("joined", -1),
    "topics that are none": told("topics", None),
    "learners too few": told("learners", []),
    "a clock without a time": told("clocks", [["events", 0]]),
    "a clock that tells no time": told("clocks", [["events", 0, "noon", []]]),
    "a clock that has told none": told("clocks", [["events", 0, 1, [None]]]),
}  # fmt: skip


@pytest.mark.parametrize("forged", FORGED)
def test_what_was_made_up_is_refused(forged: str) -> None:
    model, meta, arrays = saved()

    FORGED[forged](meta, arrays)

    with pytest.raises(StateError, match="does not hold together"):
        restored(model, meta, arrays)


def test_predictions_of_two_classes_and_of_a_regression_come_back_too() -> None:
    for learner, label in (({"algorithm": "scw1"}, "a"), ({"algorithm": "arow", "task": "regression"}, 2.5)):
        pipeline = pipeline_of({"m": learner}, output={"outcomes": "outcomes"})
        rows = [{"features": {"x": 1.0}, "label": label}, {"id": 1, "features": {"x": 2.0}}]
        pipeline.process(chunk_of(*rows))
        model = pipeline.models["m"]
        again = pipeline_of({"m": learner}, output={"outcomes": "outcomes"})
        again.models["m"] = restored(model, *model.state())
        resumed = type(pipeline)(again.config, again.models)

        outcomes = [each.process(chunk_of({"id": 1, "label": label})).outcomes for each in (pipeline, resumed)]

        assert outcomes[0] == outcomes[1] != {}
