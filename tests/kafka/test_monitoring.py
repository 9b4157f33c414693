"""A real Prometheus scrapes a real service over a stream that drifts: every panel, mark and alert has its answer.

That an expression can be parsed and names what there is (tests/deploy) does not say that its joins join.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import re
import time
from collections.abc import Iterator

import pytest

from tests.deploy.boards import NOT_LIVE, alerts, filled, marks, queries, rules, selectors
from tests.deploy.prometheus import Prometheus, promtool, tool
from tests.kafka.beside import Beside
from tests.kafka.service import Service as Running
from tests.kafka.service import ServiceFactory
from tests.kafka.topics import until

SOON_S = 60.0  # a deadline only: it takes a few seconds where the machine has time
A_SECOND = 400  # records that are fed
SWITCHED_AFTER = 3000  # rows measured before the concept turns round
LATE_MAX = 40  # labels that are owed at once


class Stream(Beside):
    """A thread that feeds a steady stream. One record in a hundred is no JSON; `turn` reverses the concept.

    Some labels come in a message of their own, right after some other records.
    """

    def __init__(self, service: Running) -> None:
        super().__init__()
        self._service = service
        self._random = random.Random(1)
        self._sign = 1.0
        self._late: list[dict[str, object]] = []
        self._ids = itertools.count()

    def turn(self) -> float:
        """The moment at which it turned."""
        self._sign = -self._sign
        return time.time()

    def _work(self) -> None:
        while not self._ended.wait(0.05):
            records = [self._record() for _ in range(A_SECOND // 20)]
            self._service.topics.produce(self._service.input, records)

    def _record(self) -> bytes:
        if self._random.random() < 0.01:
            return b"{"
        features = {name: self._random.gauss(0, 1) for name in ("amount", "age", "speed")}
        score = self._sign * (features["amount"] - features["age"]) + self._random.gauss(0, 0.3)
        if len(self._late) > LATE_MAX:
            return json.dumps(self._late.pop(0)).encode()
        label = int(score > 0)
        if self._random.random() < 0.2:
            identity = {"id": f"late {next(self._ids)}"}
            self._late.append({**identity, "label": label})
            return json.dumps({**identity, "features": features}).encode()
        message: dict[str, object] = {"features": features, "label": label}
        if self._random.random() < 0.2:
            message = {"features": features, "label": score, "learner": "price"}
        return json.dumps(message).encode()


def made(service: ServiceFactory) -> Running:
    """A champion and its shadow, and a regression and its own beside them."""
    return service(
        learners={
            "now": {"algorithm": "arow", "task": "binary", "classes": [0, 1]},
            "next": {"algorithm": "pa1", "task": "binary", "classes": [0, 1]},
            "price": {"algorithm": "pa2", "task": "regression"},
            "price-next": {"algorithm": "pa1", "task": "regression"},
        },
        routes=[
            {"when": {"learner": "price"}, "learner": "price", "shadows": ["price-next"]},
            {"learner": "now", "shadows": ["next"]},
        ],
        monitor={
            "drift": {"adwin": {}, "page_hinkley": {}},
            "hindsight": {"window": 500, "every": 200},
        },
    ).make_topics()


def asked() -> Iterator[tuple[str, str]]:
    """(where, expression) of all that must have a value: panels, marks, rules, and what alerts read."""
    for where, expr in {**queries(), **marks()}.items():
        if where not in NOT_LIVE:
            yield where, filled(expr)
    for rule in rules():
        if "record" in rule:
            yield rule["record"], rule["record"]
            continue
        for read in selectors(re.sub(r"\babsent\([^)]*\)", "", rule["expr"])):
            yield f"{rule['alert']}: {read.metric}", read.metric
    yield "OlstreamDrift fires", 'ALERTS{alertname="OlstreamDrift",alertstate="firing"}'


def until_all_have_a_value(prometheus: Prometheus) -> None:
    waiting = dict(asked())

    def gone() -> bool:
        for where, expr in list(waiting.items()):
            if prometheus.has(expr):
                del waiting[where]
        return not waiting

    try:
        until(gone, "every expression has a finite value", SOON_S)
    except AssertionError:
        told = {where: (expr, prometheus.query(expr)[:2]) for where, expr in waiting.items()}
        pytest.fail(f"no finite value after {SOON_S:.0f} s: {json.dumps(told, indent=2)}")


def test_every_panel_mark_and_alert_has_its_answer(service: ServiceFactory) -> None:
    tool("promtool")
    it = made(service)
    start_s = time.time()
    with Prometheus(it.directory, f"127.0.0.1:{it.config['http']['port']}") as prometheus, Stream(it) as stream:
        worker = it.start().until_ready()
        until(lambda: worker.counted("olstream_scored_events_total", learner="now") > SWITCHED_AFTER, "it has learnt")
        until(lambda: prometheus.has('learner:olstream_error_ratio:rate5m{learner="now"}'), "it was scraped", SOON_S)
        worker.kill()

        worker = it.start().until_ready()
        turned_s = stream.turn()
        until(lambda: worker.counted("olstream_drift_detections_total") > 0, "drift is met", SOON_S)
        until_all_have_a_value(prometheus)

        says_what_happened(prometheus, start_s, turned_s)
        every_rule_is_evaluated(prometheus)
        nothing_was_ever_out_of_range(prometheus, start_s)
        assert promtool("check", "metrics", given=worker.page("/metrics")) == (0, "")


def says_what_happened(prometheus: Prometheus, start_s: float, turned_s: float) -> None:
    def panel(where: str) -> dict[str, float]:
        return {of.get("learner", ""): value for of, value in prometheus.query(filled(queries()[where]))}

    assert panel("quality: Shadows against the champion: A").keys() == {"next"}
    assert panel("quality: Shadows against the champion: B").keys() == {"next", "price-next"}
    assert -1.0 < panel("quality: Shadows against the champion: A")["next"] < 1.0
    assert 0.05 < panel("quality: Error now: A")["now"] < 1.0
    assert panel("quality: Mean absolute error: A").keys() == {"price", "price-next"}
    assert panel("quality: Restarts in a day: A") == {"": 1.0}
    assert panel("runtime: Ready: A") == {"": 1.0}
    assert 0.001 < panel("runtime: Dead letters: A")[""] < 0.1
    drifts = [value / 1000 for of, value in prometheus.query(filled(marks()["Drift"])) if of["learner"] == "now"]
    assert drifts and all(turned_s <= drift_s <= time.time() for drift_s in drifts)
    (started,), (restored,) = (prometheus.query(filled(marks()[name])) for name in ("Start", "Restore"))
    assert start_s < started[1] / 1000 == restored[1] / 1000 < turned_s


def every_rule_is_evaluated(prometheus: Prometheus) -> None:
    found = [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]

    assert {rule["name"] for rule in found if rule["type"] == "alerting"} == alerts().keys()
    assert [rule for rule in found if rule["health"] != "ok"] == []


def nothing_was_ever_out_of_range(prometheus: Prometheus, start_s: float) -> None:
    """From the first scrape on, over the crash."""
    values = {
        where: [value for _, series in prometheus.span(filled(expr), start_s, time.time()) for value in series]
        for where, expr in {**queries(), **marks()}.items()
    }

    assert {where: found for where, found in values.items() if not all(map(math.isfinite, found))} == {}
