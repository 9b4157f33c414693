"""Detectors at work over a model: what they say, what follows, and that batches and restarts leave no trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from olstream.alarms import DRIFT, Alarm
from olstream.config import LearnerConfig, MonitorConfig
from olstream.drift import Detector
from olstream.messages import Chunk, Example
from olstream.model import Model, digest_of
from olstream.pipeline import Pipeline
from tests.test_pipeline import chunk_of, pipeline_of

SWITCH = 10_000


def switching(seed: int, n: int, switch: int, features: int = 10) -> list[Example]:
    """A linear concept, one label in twenty wrong, that is another one from row `switch` on."""
    rng = np.random.default_rng(seed)
    before, after = rng.normal(size=(2, features))
    x = rng.normal(size=(n, features))
    score = np.where(np.arange(n) < switch, x @ before, x @ after)
    label = (score > 0) ^ (rng.random(n) < 0.05)
    return [Example(features=row, label=int(y)) for row, y in zip(x.tolist(), label.tolist(), strict=True)]


def model(drift: Any = "adwin", on_drift: Any = "none", window: int = 100, **config: Any) -> Model:
    return Model(
        "m",
        LearnerConfig(**{"algorithm": "arow"} | config),
        MonitorConfig(drift=drift, on_drift=on_drift, window=window),
    )


def learnt(m: Model, examples: list[Example], size: int = 500) -> list[Alarm]:
    found: list[Alarm] = []
    start = 0
    while start < len(examples):
        taken = examples[start : start + min(size, m.room)]
        found += m.predict_then_update(taken).alarms
        start += len(taken)
    return found


def test_adwin_finds_a_switched_concept_within_500_rows_and_says_nothing_before() -> None:
    in_time, silent_before = 0, 0

    for seed in range(20):
        rows = [alarm.labelled for alarm in learnt(model(), switching(seed, SWITCH + 500, SWITCH))]
        in_time += any(SWITCH < row <= SWITCH + 500 for row in rows)
        silent_before += all(row > SWITCH for row in rows)

    assert in_time >= 18
    assert silent_before >= 18


def test_a_detector_sees_the_errors_of_labelled_rows_in_order() -> None:
    examples = switching(3, 700, 400)
    examples[::7] = [Example(features=example.features) for example in examples[::7]]
    m, alone = model("ddm"), Detector("ddm")
    rows = m.predict_then_update(examples)
    measured = np.flatnonzero(rows.measured)

    levels = alone.update_many((rows.correct[measured] == 0).astype(np.float64))

    begins = np.flatnonzero((levels == 2) | ((levels == 1) & (np.append(0, levels[:-1]) != 1)))
    assert begins.size >= 2
    assert [(alarm.row, alarm.level, alarm.labelled) for alarm in rows.alarms] == [
        (int(measured[i]), int(levels[i]), int(i) + 1) for i in begins
    ]
    reading = m.alarms.readings()[0]
    assert (reading.statistic, reading.threshold) == (alone.statistic, alone.threshold)
    assert (reading.detections, reading.warnings) == (np.sum(levels == 2), np.sum(levels[begins] == 1))


def test_a_refused_row_does_not_move_an_alarm_to_another_row() -> None:
    examples = switching(3, 700, 400)
    with_refused = [*examples[:100], Example(features={"named": 1.0}, label=1), *examples[100:]]

    clean, mixed = model().predict_then_update(examples), model().predict_then_update(with_refused)

    assert list(mixed.rejects) == [100]
    assert [alarm.row + 1 for alarm in clean.alarms] == [alarm.row for alarm in mixed.alarms]


def test_errors_that_fall_are_no_drift_unless_they_are_asked_for() -> None:
    learning = switching(1, 3000, 3000)

    told, only_rises = model({"adwin": {"mode": "both"}}), model()

    assert learnt(told, learning)
    assert learnt(only_rises, learning) == []


def test_a_loss_is_given_as_its_share_of_itself_and_the_mean_of_the_second_hundred_rows() -> None:
    losses = np.array([5.0] * 100 + [1.0] * 50 + [3.0] * 50 + [0.0, 2.0, 6.0, 1.7e308])
    m = model({"page_hinkley": {"signal": "loss"}})
    seen = values_seen(m)

    for part in (slice(0, 130), slice(130, 204)):
        wanted = np.ones(part.stop - part.start, np.uint8)
        m.alarms.add(wanted, wanted.astype(np.int8), losses[part], part.start)

    assert np.concatenate(seen).tolist() == pytest.approx([0.0, 0.5, 0.75, 1.0], abs=1e-12)


def test_where_there_was_no_loss_any_loss_is_a_whole_one() -> None:
    m = model({"page_hinkley": {"signal": "loss"}})
    seen = values_seen(m)

    m.alarms.add(np.ones(203, np.uint8), np.ones(203, np.int8), np.array([0.0] * 201 + [1e-9, 0.0]), 0)

    assert seen[0].tolist() == [0.0, 1.0, 0.0]


def values_seen(m: Model) -> list[np.ndarray[Any, Any]]:
    """What the first detector of a model is given from now on."""
    watch, seen = next(iter(m.alarms._watches.values())), list[np.ndarray[Any, Any]]()
    add = watch.add

    def noting(values: Any, rows: Any, numbers: Any) -> list[Alarm]:
        seen.append(values)
        return add(values, rows, numbers)

    watch.add = noting  # type: ignore[method-assign]
    return seen


def test_a_regression_is_watched_by_its_loss_and_not_by_detectors_of_errors() -> None:
    m = model(["adwin", "ddm", "eddm"], task="regression", algorithm="pa1")

    assert [(reading.detector, reading.signal) for reading in m.alarms.readings()] == [("adwin", "loss")]


def test_a_sudden_growth_of_a_regressions_errors_is_drift_in_any_unit() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(3000, 3))
    target = 1e6 * (x @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=3000))
    target[2000:] *= -1.0
    m = model(task="regression")

    examples = [Example(features=f, label=y) for f, y in zip(x.tolist(), target.tolist(), strict=True)]
    rows = [alarm.labelled for alarm in learnt(m, examples)]

    assert rows and 2000 < rows[0] <= 2500


@pytest.mark.parametrize("drift", [["adwin"], ["adwin", "ddm", "eddm", "hddm_a", "hddm_w", "page_hinkley", "kswin"]])
@pytest.mark.parametrize("on_drift", ["none", {"widen": 0.5}, "reset"])
def test_batches_leave_no_trace_in_what_detectors_say_and_do(drift: list[str], on_drift: Any) -> None:
    examples = switching(2, 1500, 800)

    digests = []
    for size in (1, 37, 1500):
        m = model(drift, on_drift)
        learnt(m, examples, size)
        digests.append(m.digest())

    assert len(set(digests)) == 1


@pytest.mark.parametrize("on_drift", ["none", {"widen": 0.5}, "reset"])
@pytest.mark.parametrize("cut", [700, 817, 831, 832, 850])
def test_a_restored_model_goes_on_to_the_same_bit(on_drift: Any, cut: int) -> None:
    examples = switching(2, 1500, 800)
    whole, first = model(on_drift=on_drift), model(on_drift=on_drift)
    learnt(whole, examples)
    learnt(first, examples[:cut])
    meta, arrays = first.state()

    back = Model.restore("m", first.config, MonitorConfig(on_drift=on_drift, window=100), meta, arrays)
    learnt(back, examples[cut:])

    assert digest_of(*back.state()) == whole.digest()
    assert back.alarms.readings() == whole.alarms.readings()


def test_a_detector_with_other_parameters_begins_anew_and_its_neighbour_goes_on() -> None:
    before = model(["adwin", "hddm_a"])
    learnt(before, switching(2, 1200, 800))
    meta, arrays = before.state()
    monitor = MonitorConfig(drift={"adwin": {"delta": 0.01}, "hddm_a": {}}, window=100)

    adwin, hddm = Model.restore("m", before.config, monitor, meta, arrays).alarms.readings()

    assert (adwin.detections, adwin.statistic, adwin.marks) == (0, None, [])
    assert hddm == before.alarms.readings()[1]


def test_widening_brings_variances_so_far_toward_the_prior_and_leaves_weights() -> None:
    examples = switching(5, 900, 600)
    plain, widened = model(window=10), model(on_drift={"widen": 0.25}, window=10)
    first = next(a.row for a in learnt(plain, examples, 900) if a.level == DRIFT) // 32 * 32 + 32

    plain = model(window=10)
    learnt(plain, examples[:first])
    learnt(widened, examples[:first])

    assert widened.weights() == plain.weights()
    before, after = plain.variances(), widened.variances()
    assert before is not None and after is not None
    assert after == pytest.approx({name: v + 0.25 * (1.0 - v) for name, v in before.items()}, rel=1e-12)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_a_widened_covariance_is_the_mean_of_itself_and_the_prior(covariance: str) -> None:
    m = model(params={"covariance": covariance, "a": 2.0} if covariance == "full" else {"a": 2.0})
    learnt(m, switching(5, 200, 200, features=4))
    before = m.covariance() or {None: (["all"], np.diag(list((m.variances() or {}).values())))}

    m._state.widen(1, m.vocabulary.n_columns, 0.5)

    after = m.covariance() or {None: (["all"], np.diag(list((m.variances() or {}).values())))}
    prior = 2.0 * np.eye(len(before[None][1]))
    assert after[None][1] == pytest.approx(0.5 * before[None][1] + 0.5 * prior, rel=1e-9, abs=1e-12)


def test_a_reset_learner_forgets_its_weights_and_keeps_names_classes_and_counts() -> None:
    m = model(scale="standard")
    learnt(m, switching(5, 320, 320))

    m._state.reset()

    assert set(m.weights().values()) == {0.0}
    assert m.n_features == 10 and m.tally.labelled == 320
    assert m.classes is not None and m.classes.known == 2


@pytest.mark.parametrize("algorithm", ["scw1", "alm_svm", "nherd"])
def test_every_kind_of_learner_learns_again_after_a_reset(algorithm: str) -> None:
    m = model(on_drift="reset", algorithm=algorithm)

    learnt(m, switching(8, 3000, 1500))

    again = m.tally.error_rate("sliding")
    assert m.alarms.readings()[0].detections >= 1
    assert again is not None and again < 0.2


@pytest.mark.parametrize("on_drift", ["reset", {"widen": 0.5}])
def test_the_errors_of_the_model_that_was_do_not_count_against_the_one_that_is(on_drift: Any) -> None:
    m = model(["adwin", "hddm_w"], on_drift=on_drift)
    examples = switching(8, 2000, 1000)
    answered = next(i for i in range(0, 2000, 32) if m.predict_then_update(examples[i : i + 32]).answer)

    readings = m.alarms.readings()

    assert answered >= 960
    assert sum(reading.detections for reading in readings) >= 1
    assert [(of.level, of.statistic, of.window_events) for of in readings] == [(0, None, None)] * 2


def test_a_reset_is_not_followed_by_another_because_of_it() -> None:
    m = model(on_drift="reset")
    examples = switching(8, 4000, 2000)
    answers = [m.predict_then_update(examples[i : i + 32]).answer for i in range(0, 4000, 32)]

    assert answers.count("reset") == 1


def test_widening_lets_a_sure_learner_follow_the_new_concept() -> None:
    examples = switching(8, 6000, 4000)
    stubborn, widened = model(), model(on_drift={"widen": 0.9})

    learnt(stubborn, examples)
    learnt(widened, examples)

    assert (widened.tally.error_rate("sliding") or 1.0) < 0.7 * (stubborn.tally.error_rate("sliding") or 0.0)


def test_a_learner_has_its_own_answer_to_drift() -> None:
    config = LearnerConfig(algorithm="arow", on_drift="reset")  # type: ignore[arg-type]

    assert Model("m", config, MonitorConfig()).room == 32
    assert model().room > 10**9


def test_a_frozen_learner_is_watched_and_never_changed() -> None:
    m = model(on_drift="reset", learn=False, classes=[0, 1])

    found = learnt(m, [*switching(1, 500, 500), *([Example(features=[1.0] * 10, label=0)] * 500)])

    assert m.room > 10**9
    assert found or m.alarms.readings()[0].statistic is not None


def test_a_drift_that_nothing_followed_from_is_not_answered_after_the_settings_changed() -> None:
    m = model()
    learnt(m, switching(2, 1000, 800))

    assert m.alarms.readings()[0].detections >= 1
    assert m.alarms.unanswered is False


def test_what_follows_from_drift_is_the_same_whatever_shares_the_chunks() -> None:
    examples = switching(2, 1500, 800)
    monitor = {"on_drift": "reset", "window": 100}
    learners = {"a": {"algorithm": "arow"}, "b": {"algorithm": "scw1", "on_drift": {"widen": 0.5}}}
    routes = [{"learner": "a", "shadows": ["b"]}]

    digests = {
        tuple(processed(pipeline_of(learners, monitor=monitor, routes=routes), examples, size)) for size in (41, 500)
    }

    assert len(digests) == 1


def processed(pipeline: Pipeline, examples: list[Example], size: int) -> list[str]:
    for start in range(0, len(examples), size):
        part = examples[start : start + size]
        chunk: Chunk = chunk_of(*({"features": e.features, "label": e.label} for e in part))
        done = pipeline.process(chunk)
        assert sum(value is not None for value in done.predictions) == len(part)
    return [m.digest() for m in pipeline.models.values()]


def test_what_is_compiled_at_the_start_leaves_the_model_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    m = model({"adwin": {}, "page_hinkley": {"signal": "loss"}})
    before, seen = m.digest(), list[str]()

    def update_many(detector: Detector, values: Any) -> Any:
        seen.append(detector.name)
        return levels(detector, values)

    levels = Detector.update_many
    monkeypatch.setattr(Detector, "update_many", update_many)
    m.warm_up()

    assert set(seen) == {"adwin", "page_hinkley"}
    assert m.digest() == before
