"""How records are cut into turns changes no bit of the model and no byte of a prediction."""

from __future__ import annotations

from tests.kafka.events import events
from tests.kafka.service import ServiceFactory

N = 3000


def test_batches_of_1_7_and_500_give_the_same_bytes(service: ServiceFactory) -> None:
    learners = {"model": {"algorithm": "arow", "task": "binary", "scale": "standard"}}
    runs = [service(learners=learners, input={"batch_max": n}) for n in (1, 7, 500)]
    source = runs[0].make_topics()
    source.topics.produce(source.input, events(N))

    for run in runs[1:]:
        run.reads(source.input).make_topics()
    for run in runs:
        run.run_to(N)

    digests = {run.inspect()["digest"] for run in runs}
    outputs = [run.topics.values(run.predictions) for run in runs]
    assert len(digests) == 1
    assert len(outputs[0]) == N
    assert outputs[0] == outputs[1] == outputs[2]


def test_shadows_learn_the_same_records_and_stay_silent(service: ServiceFactory) -> None:
    learners = {
        "champion": {"algorithm": "arow", "task": "binary"},
        "next": {"algorithm": "pa1", "task": "binary"},
        "other": {"algorithm": "pa2", "task": "binary"},
        "unused": {"algorithm": "pa", "task": "binary"},
    }
    route = {"when": {}, "learner": "champion", "shadows": ["next", "other"]}
    made = service(learners=learners, routes=[route]).make_topics()
    made.topics.produce(made.input, events(500))

    made.run_to(500)

    saved = made.inspect()["learners"]
    seen = {name: each["seen"] for name, each in saved.items()}
    assert seen == {"champion": 500, "next": 500, "other": 500, "unused": 0}
    assert saved["next"]["updates"] > 0
    assert [(p["learner"], p["offset"]) for p in made.predicted()] == [("champion", i) for i in range(500)]
