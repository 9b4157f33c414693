"""The message contract case by case: what each odd value must come to, in every kind of learner.

`cases/messages.json` holds sessions: messages that one fresh model meets in order. A value is
written a character a byte; `built` ones are too long to list.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from olstream.config import Config, parse
from olstream.messages import Chunk, label_text
from olstream.model import Model
from olstream.pipeline import Pipeline, Processed

SESSIONS = json.loads((Path(__file__).parent / "cases" / "messages.json").read_text())
SETUPS = {
    "cls": ("pa1", ("multiclass", "binary")),
    "dense": ("pa1", ("multiclass", "binary")),
    "cls2": ("pa1", ("binary",)),
    "pa": ("pa", ("multiclass", "binary")),
    "routes": ("pa1", ("multiclass", "binary")),
    "reg": ("pa1", ("regression",)),
    "join": ("pa1", ("multiclass", "binary")),
}


def value_of(message: dict[str, Any]) -> bytes | None:
    """The bytes of a message, as written or as built."""
    if "built" not in message:
        return None if message["value"] is None else message["value"].encode("latin-1")
    built = message["built"]
    if "joined" in built:
        middle = built["by"].join(built["joined"] % i for i in range(built["count"]))
    else:
        middle = "".join(unit * count for unit, count in built["repeated"])
    return str(built["prefix"] + middle + built["suffix"]).encode()


def texts_of_labels(session: dict[str, Any]) -> set[str]:
    """How many classes the accepted messages of a session name."""
    texts = set()
    for message in session["messages"]:
        if message.get("effect") == "predict_update":
            texts.add(label_text(json.loads((value_of(message) or b"").decode("utf-8-sig")).get("label")))
    return texts


def cases() -> Iterator[Any]:
    for session in SESSIONS:
        algorithm, tasks = SETUPS.get(session["setup"], ("", ()))
        for task in tasks:
            if task != "binary" or len(texts_of_labels(session)) <= 2:
                yield pytest.param(session, algorithm, task, id=f"{session['case']}-{session['name']}-{task}")


def configured(algorithm: str, task: str, names: tuple[str, ...] = ("a",)) -> Config:
    learner = {"algorithm": algorithm, "task": task, "bias": False}
    settings = {"learners": dict.fromkeys(names, learner), "join": {"pending_max": 2}, "output": {"outcomes": "joined"}}
    return parse(json.dumps(settings), "config.yaml", {})


class Fed:
    """A pipeline that is fed values, and remembers how many."""

    def __init__(self, config: Config) -> None:
        self.models = {name: Model(name, learner, config.monitor) for name, learner in config.learners.items()}
        self.pipeline = Pipeline(config, self.models)
        self.n = 0

    def feed(self, *values: bytes | None) -> Processed:
        offsets = list(range(self.n, self.n + len(values)))
        self.n += len(values)
        nothing = [None] * len(values)
        return self.pipeline.process(Chunk("events", 0, offsets, [*nothing], [*nothing], list(values), nothing))

    def digests(self) -> dict[str, str]:
        return {name: model.digest() for name, model in self.models.items()}

    def labelled(self) -> int:
        return sum(model.tally.labelled for model in self.models.values())

    def waiting(self) -> int:
        return sum(len(model.waiting) for model in self.models.values())


@pytest.mark.parametrize(("session", "algorithm", "task"), list(cases()))
def test_each_message_comes_to_what_its_case_says(session: dict[str, Any], algorithm: str, task: str) -> None:
    fed = Fed(configured(algorithm, task, ("a", "b") if session["setup"] == "routes" else ("a",)))
    records: list[dict[str, Any] | None] = []

    for message in session["messages"]:
        before, labelled = fed.digests(), fed.labelled()
        done = fed.feed(value_of(message))
        [prediction] = done.predictions
        records.append(None if prediction is None else json.loads(prediction, parse_constant=pytest.fail))

        if "reasons" in message:
            check_refused(message, done)
            assert fed.digests() == before
        elif message["effect"] == "none":
            duplicates = int(message.get("counted") == "duplicate_label")
            assert (prediction, done.dead_letters, done.tombstones) == (None, [], 1 - duplicates)
            assert done.joined.unmatched == ({("a", "duplicate"): 1} if duplicates else {})
            assert fed.digests() == before
        else:
            assert not done.rejects and not done.joined.unmatched
            assert fed.labelled() - labelled == (message["effect"] in ("predict_update", "update"))
            check_published(message, done, records)
        assert all(math.isfinite(model.weight_abs_max()) for model in fed.models.values())
    assert session["setup"] != "join" or fed.waiting() == 0


def check_published(message: dict[str, Any], done: Processed, records: list[dict[str, Any] | None]) -> None:
    """A prediction of features, an outcome of a label that met its features, nothing of one that waits for them."""
    assert len(done.outcomes) == (message["effect"] == "update")
    if message["effect"] in ("pending", "update"):
        assert done.predictions == [None]
    else:
        check_predicted(message, records)


def check_refused(message: dict[str, Any], done: Processed) -> None:
    [letter] = done.dead_letters
    headers = dict(letter.headers)
    reason = headers["olstream.reason"]

    assert reason is not None and reason.decode() in message["reasons"]
    assert done.predictions == [None]
    value = value_of(message)
    assert value is not None
    if len(value) <= 900_000:
        assert letter.value == value
    else:
        assert (letter.value, headers["olstream.size"]) == (value[:1024], b"%d" % len(value))


def check_predicted(message: dict[str, Any], records: list[dict[str, Any] | None]) -> None:
    record = records[-1]
    assert record is not None
    assert all(math.isfinite(value) for value in record.values() if isinstance(value, float))
    if "predicted" in message:
        assert json.dumps(record["prediction"]) == json.dumps(message["predicted"])
    if "score" in message:
        assert record["score"] == pytest.approx(message["score"], rel=1e-9)
    if "score_of" in message:
        other = records[message["score_of"]]
        assert other is not None and record["score"] == other["score"]


@pytest.mark.parametrize(("session", "algorithm", "task"), list(cases()))
def test_a_session_fed_at_once_comes_to_the_same(session: dict[str, Any], algorithm: str, task: str) -> None:
    config = configured(algorithm, task, ("a", "b") if session["setup"] == "routes" else ("a",))
    values = [value_of(message) for message in session["messages"]]
    one_by_one, at_once = Fed(config), Fed(config)

    singly = [one_by_one.feed(value) for value in values]
    together = at_once.feed(*values)

    assert together.predictions == [done.predictions[0] for done in singly]
    assert together.dead_letters == [letter for done in singly for letter in done.dead_letters]
    assert at_once.digests() == one_by_one.digests()


def test_every_session_is_run() -> None:
    run = {case.values[0]["name"] for case in cases()}

    assert {session["name"] for session in SESSIONS} == run
    assert sum(len(session["messages"]) for session in SESSIONS) == 128
