"""Where the configuration changes under way, what was counted is counted on, and new series begin."""

from __future__ import annotations

from typing import Any

from olstream.alarms import Alarm
from olstream.model import Model
from olstream.status import describe
from tests.page import Service, example

TWO: dict[str, Any] = {"fraud": {"algorithm": "arow"}, "kind": {"algorithm": "pa1"}}
ROUTE = [{"when": {}, "learner": "fraud", "shadows": ["kind"]}]


def reconfigured(service: Service, **sections: Any) -> None:
    """What the loop does after a commit, with the models that the configuration names."""
    said = service.config.model_dump(mode="json", by_alias=True, exclude_unset=True)
    now = service.config = type(service.config).model_validate(said | sections)
    made = {name: Model(name, of, now.monitor) for name, of in now.learners.items()}
    service.models = {name: service.models.get(name, model) for name, model in made.items()}
    service.metrics.reconfigure(now)


def test_a_learner_that_is_new_begins_at_zero_and_the_others_count_on() -> None:
    service = Service()
    service.take("fraud", *[example(label=1) for _ in range(10)])
    service.metrics.checkpoint_written(0.1, 1000)

    reconfigured(service, learners=TWO, routes=ROUTE)
    before = service.samples()
    service.take("fraud", *[example(label=1) for _ in range(5)])
    service.take("kind", *[example(label=1) for _ in range(5)])
    after = service.samples()

    scored = 'scored_events_total{{learner="{}"}}'.format
    assert (before[scored("fraud")], before[scored("kind")]) == (10, 0)
    assert (after[scored("fraud")], after[scored("kind")]) == (15, 5)
    assert after['event_features_count{learner="fraud"}'] == 15
    assert after["checkpoint_bytes"] == 1000
    assert after['commits_total{outcome="committed"}'] == 3


def test_what_was_not_told_yet_is_told_before() -> None:
    service = Service(TWO)
    rows = service.models["fraud"].predict_then_update([example(label=1)] * 3)
    service.metrics.rows("fraud", rows)

    reconfigured(service, learners={"fraud": TWO["fraud"]})

    assert service.samples()['scored_events_total{learner="fraud"}'] == 3


def test_the_info_of_a_learner_is_that_of_now() -> None:
    service = Service(TWO)

    reconfigured(service, routes=ROUTE)

    roles = {name for name in service.samples() if name.startswith('learner_info{algorithm="pa1"')}
    assert len(roles) == 1 and 'role="shadow"' in roles.pop()
    assert describe(service.metrics)["learners"]["kind"]["role"] == "shadow"


def test_a_learner_that_is_gone_leaves_no_series() -> None:
    service = Service(TWO)
    service.metrics.alarm("kind", Alarm(0, "adwin", "error", 2, 1))
    assert any("last_detection" in name and "kind" in name for name in service.samples())

    reconfigured(service, learners={"fraud": TWO["fraud"]})

    assert not [name for name in service.samples() if 'learner="kind"' in name]
    assert list(describe(service.metrics)["learners"]) == ["fraud"]


def test_detectors_come_and_go_with_their_series() -> None:
    service = Service()

    reconfigured(service, monitor={"drift": ["ddm", "adwin"]})

    detectors = {name for name in service.samples() if name.startswith("drift_detections_total")}
    assert len(detectors) == 2 and any('detector="ddm"' in name for name in detectors)


def test_a_window_of_hindsight_goes_on_where_it_is_the_same() -> None:
    service = Service(monitor={"hindsight": {"window": 50, "every": 50}})
    service.take("fraud", *[example(label=i % 2, x=float(i % 2)) for i in range(60)])
    service.metrics.hindsight["fraud"].wait()
    known = service.samples()['hindsight_loss{learner="fraud"}']

    reconfigured(service, learners=TWO)

    assert service.samples()['hindsight_loss{learner="fraud"}'] == known
    reconfigured(service, monitor={"hindsight": {"window": 20, "every": 20}})
    assert 'hindsight_loss{learner="fraud"}' not in service.samples()


def test_what_became_of_a_reload_is_counted_over_the_next_one() -> None:
    service = Service()

    service.metrics.reloaded("success")
    reconfigured(service, learners=TWO)
    service.metrics.reloaded("failure")

    samples = service.samples()
    assert samples['config_reloads_total{result="success"}'] == 1
    assert samples['config_reloads_total{result="failure"}'] == 1
