"""The message contract's cases on a broker: one worker meets them all, each session in a learner of its own.

What each value means is checked one by one in tests/test_cases.py; here, that Kafka gets it: one
prediction or one dead letter each, and models as if the refused ones had never been sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.kafka.service import Service, ServiceFactory
from tests.kafka.topics import Record, headers
from tests.test_cases import SESSIONS, SETUPS, value_of

ROUTED = [session for session in SESSIONS if session["setup"] in SETUPS]
MESSAGES = [(session, message) for session in ROUTED for message in session["messages"]]
LONG = "20000000"


def configuration() -> dict[str, Any]:
    """Sessions of the setup `routes` choose by what the message says, all others by a header."""
    a_or_b = {"algorithm": "pa1", "task": "multiclass", "bias": False}
    learners = {"a": a_or_b, "b": a_or_b}
    routes = []
    for session in ROUTED:
        if session["setup"] != "routes":
            algorithm, tasks = SETUPS[session["setup"]]
            learners[session["name"]] = {"algorithm": algorithm, "task": tasks[0], "bias": False}
            routes.append({"when": {"header.session": session["name"]}, "learner": session["name"]})
    return {"learners": learners, "routes": routes}


def record(session: dict[str, Any], message: dict[str, Any]) -> Record:
    return Record(value_of(message), b"a key", [("session", session["name"].encode()), ("other", b"\xff")])


def fed(service: ServiceFactory, wanted: Callable[[dict[str, Any]], bool]) -> tuple[Service, list[dict[str, Any]]]:
    """A service after all wanted messages, and those messages by offset."""
    chosen = [(session, message) for session, message in MESSAGES if wanted(message)]
    made = service(**configuration())
    made.topics.create(made.input, max_message_bytes=LONG)
    made.make_topics()
    made.topics.produce(made.input, [record(session, message) for session, message in chosen])
    made.run_to(len(chosen))
    return made, [message | {"session": session["name"]} for session, message in chosen]


def test_every_case_is_one_prediction_or_one_dead_letter(service: ServiceFactory) -> None:
    made, messages = fed(service, lambda message: True)

    predictions = {p["offset"]: p for p in made.predicted()}
    letters = {int(dict(headers(m))["olstream.offset"] or -1): m for m in made.topics.read(made.dead_letters)}
    refused = {i for i, message in enumerate(messages) if "reasons" in message}
    silent = {i for i, message in enumerate(messages) if message.get("effect") in ("none", "pending", "update")}
    assert set(letters) == refused
    assert set(predictions) == set(range(len(messages))) - refused - silent
    for i in refused:
        assert_quoted(letters[i], messages[i])
    for i, prediction in predictions.items():
        if "predicted" in messages[i]:
            assert json.dumps(prediction["prediction"]) == json.dumps(messages[i]["predicted"])

    clean, _ = fed(service, lambda message: "reasons" not in message)
    assert made.inspect()["learners"] == clean.inspect()["learners"]


def assert_quoted(letter: Any, message: dict[str, Any]) -> None:
    value, told = value_of(message), dict(headers(letter))
    assert value is not None
    assert told["olstream.reason"] in [reason.encode() for reason in message["reasons"]]
    assert (letter.value() or b"") == (value if len(value) <= 900_000 else value[:1024])
    assert letter.key() == b"a key"
    assert (told["session"], told["other"]) == (message["session"].encode(), b"\xff")


def test_no_case_is_left_out() -> None:
    assert len(MESSAGES) == sum(len(session["messages"]) for session in SESSIONS)
    assert len({session["name"] for session in ROUTED}) == len(ROUTED) > 70
