"""A model over batches: what it refuses, what it counts, what it keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from olstream.config import LearnerConfig, MonitorConfig
from olstream.errors import ConfigError, StateError
from olstream.messages import Example, Label, Reason
from olstream.model import Model, Rows, digest_of


def model(**config: Any) -> Model:
    keys: dict[str, Any] = {"algorithm": "pa1", "bias": False} | config
    return Model("m", LearnerConfig(**keys), MonitorConfig(window=10))


def row(features: Any = None, label: Any = None, weight: float = 1.0) -> Example:
    return Example(features={"x": 1.0} if features is None else features, label=label, weight=weight)


def predicted(rows: Rows) -> list[Label | None]:
    return [rows.classes[k] if k >= 0 else None for k in rows.predicted.tolist()]


def reasons(rows: Rows) -> dict[int, Reason]:
    return {i: reject.reason for i, reject in rows.rejects.items()}


def test_each_row_is_predicted_before_it_is_learnt() -> None:
    rows = model().predict_then_update([row(label="a"), row(label="a"), row()])

    assert rows.score.tolist() == [0.0, 1.0, 1.0]
    assert predicted(rows) == [None, "a", "a"]
    assert rows.correct.tolist() == [0, 1, -1]
    assert rows.loss.tolist() == pytest.approx([1.0, 0.0, np.nan], nan_ok=True)
    assert rows.updated.tolist() == [1, 0, 0]
    assert rows.updates.tolist() == [1, 1, 1]


def test_the_only_known_class_is_predicted_whatever_the_score() -> None:
    m = model()
    m.predict_then_update([row(label=0)])

    rows = m.predict_then_update([row({"x": -3.0}), row({"x": 3.0})])

    assert predicted(rows) == [0, 0]
    assert rows.score.tolist() == [3.0, -3.0]
    assert rows.probability.tolist() == [1.0, 1.0]


def test_zeros_and_ones_learn_the_same_as_minus_ones_and_ones() -> None:
    def stream(negative: int) -> list[Example]:
        return [row({"x": 1.0}, 1) if i % 2 == 0 else row({"y": 1.0}, negative) for i in range(20)]

    zero, minus = model(), model()
    rows_zero, rows_minus = zero.predict_then_update(stream(0)), minus.predict_then_update(stream(-1))

    assert zero.weights() == minus.weights()
    assert predicted(rows_zero)[2:] == [1, 0] * 9
    assert predicted(rows_minus)[2:] == [1, -1] * 9
    assert rows_zero.correct[-10:].all() and rows_minus.correct[-10:].all()


def test_refused_rows_change_nothing_and_the_others_are_taken() -> None:
    clean, dirty = model(), model()
    good = [row({"x": 1.0}, "a"), row({"y": 1.0}, "b"), row({"x": 2.0, "y": 1.0}), row({"z": 1.0}, "a")]
    bad = [row(label="c"), row({"new": 1.0}, 1.5), row([1.0, 2.0]), row([1.0], "d"), row(label="")]

    expected = clean.predict_then_update(good)
    mixed = dirty.predict_then_update([*good[:2], bad[0], bad[1], good[2], *bad[2:], good[3]])

    assert reasons(mixed) == {
        2: Reason.UNKNOWN_LABEL, 3: Reason.BAD_LABEL, 5: Reason.DIMENSION, 6: Reason.DIMENSION, 7: Reason.BAD_LABEL,
    }  # fmt: skip
    accepted = [0, 1, 4, 8]
    for name in ("score", "loss", "margin_after", "predicted", "correct", "updates", "entries", "skip", "truth"):
        assert np.array_equal(getattr(mixed, name)[accepted], getattr(expected, name), equal_nan=True), name
    assert mixed.counts == expected.counts
    assert mixed.measured[[2, 3, 5, 6, 7]].sum() == mixed.updated[[2, 3, 5, 6, 7]].sum() == 0
    assert set(mixed.entries[[2, 3, 5, 6, 7]].tolist()) == {-1}
    assert dirty.digest() == clean.digest()


def test_a_row_in_the_wrong_form_brings_no_class() -> None:
    m = model(task="multiclass")

    rows = m.predict_then_update([row(label="a"), row([1.0], "b"), row(label="a")])

    assert reasons(rows) == {1: Reason.DIMENSION}
    assert m.classes is not None and m.classes.forms == ["a"]


def test_a_batch_of_nothing_but_refused_rows_is_fine() -> None:
    m = model()
    m.predict_then_update([row(label="a")])
    before = m.digest()

    rows = m.predict_then_update([row([1.0]), row(label=2.5)])

    assert len(rows) == 2
    assert set(reasons(rows).values()) == {Reason.DIMENSION, Reason.BAD_LABEL}
    assert m.digest() == before


def test_no_rows_at_all_are_fine() -> None:
    assert len(model().predict_then_update([])) == 0


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_arrays_have_one_length_from_the_first_accepted_row_on(task: str) -> None:
    m = model(task=task)
    label = 1 if task != "regression" else 2.5

    rows = m.predict_then_update(
        [
            row([1.0, 2.0], "bad" if task == "regression" else 1.5),
            row([1.0, 2.0, 3.0], label),
            row([1.0, 2.0], label),
            row([1.0, 2.0, 3.0, 4.0]),
            row({"0": 1.0}, label),
            row([1.0, 2.0, 3.0]),
        ]
    )

    assert reasons(rows) == {0: Reason.BAD_LABEL, 2: Reason.DIMENSION, 3: Reason.DIMENSION, 4: Reason.DIMENSION}
    assert set(m.vocabulary.exported()) == {"0", "1", "2"}


def test_an_unlabelled_row_fixes_the_form_and_one_of_weight_zero_does_not() -> None:
    m = model()

    rows = m.predict_then_update([row([1.0, 2.0], weight=0.0), row({"x": 1.0}), row([1.0, 2.0])])

    assert reasons(rows) == {2: Reason.DIMENSION}


@pytest.mark.parametrize("label", ["a", True, None, "1"])
def test_a_regression_takes_numbers_only(label: Label | None) -> None:
    rows = model(task="regression").predict_then_update([row(label=label)])

    assert reasons(rows) == ({} if label is None else {0: Reason.BAD_LABEL})


def test_a_regression_takes_integers_of_any_size_that_a_double_holds() -> None:
    m = model(task="regression")

    rows = m.predict_then_update([row(label=10**30), row(label=10**400), row(label=3)])

    assert reasons(rows) == {1: Reason.NOT_FINITE}
    assert m.tally.labelled == 2


def test_weight_zero_is_reported_and_brings_no_class_name_or_form() -> None:
    m = model(task="multiclass", scale="standard")

    rows = m.predict_then_update([row({"x": 1.0}, "a", weight=0.0)])

    assert (m.tally.seen, m.tally.labelled) == (1, 0)
    assert m.classes is not None and m.classes.known == 0
    assert (m.n_features, m.vocabulary.form) == (0, None)
    assert (rows.loss[0], rows.correct[0], rows.measured[0]) == (0.0, 0, 0)
    assert rows.counts.seen == 1
    assert rows.counts.labelled == rows.counts.unlabelled == 0


def test_a_frozen_model_is_measured_and_does_not_learn() -> None:
    open_model = model()
    open_model.predict_then_update([row({"x": 1.0}, "a"), row({"y": 1.0}, "b")])
    meta, arrays = open_model.state()
    frozen = Model.restore("m", open_model.config.model_copy(update={"learn": False}), MonitorConfig(), meta, arrays)
    weights = frozen.weights()

    rows = frozen.predict_then_update([row({"x": 1.0}, "b"), row({"new": 1.0}, "a"), row({"x": 1.0}, "c")])

    assert frozen.weights() == weights
    assert (frozen.tally.labelled, frozen.tally.errors) == (4, 2 + 1)
    assert reasons(rows) == {2: Reason.UNKNOWN_LABEL}
    assert rows.counts.updated == 0
    assert frozen.n_features == 2


def test_a_frozen_empty_model_is_always_wrong() -> None:
    m = model(task="multiclass", learn=False)

    rows = m.predict_then_update([row(label="a"), row(label="a")])

    assert (m.tally.labelled, m.tally.errors) == (2, 2)
    assert m.classes is not None and m.classes.known == 0
    assert rows.truth.tolist() == [-1, -1]


def test_class_weights_multiply_the_weight_of_a_row() -> None:
    weighted, plain = model(class_weights={"1": 0.25, "0": 2.0}), model()
    labels = [1, 0, 1, 0, 1]
    xs = [{"x": 1.0, "y": 0.3 * i} for i in range(5)]

    weighted.predict_then_update([row(x, label) for x, label in zip(xs, labels, strict=True)])
    plain.predict_then_update([row(x, label, 0.25 if label else 2.0) for x, label in zip(xs, labels, strict=True)])

    assert weighted.weights() == plain.weights()


def test_the_threshold_moves_the_decision_and_not_the_loss() -> None:
    eager, shy = model(classes=[0, 1]), model(classes=[0, 1], threshold=0.5)

    examples = [row({"x": 0.4}, 1), row({"x": 0.5}, 1), row({"x": -1.0}, 0)]
    first, second = eager.predict_then_update(examples), shy.predict_then_update(examples)

    assert np.array_equal(first.loss, second.loss)
    assert predicted(first) == [1, 1, 0]
    assert predicted(second) == [0, 0, 0]


def test_declared_classes_are_known_from_the_start() -> None:
    binary, several = model(classes=["no", "yes"]), model(task="multiclass", classes=["a", "b", "c"])

    assert predicted(binary.predict_then_update([row()])) == ["yes"]
    rows = several.predict_then_update([row(), row(label="c")])
    assert predicted(rows) == ["a", "a"]
    assert rows.updated[1] == 1
    assert several.tally.confusion[2, 0] == 1


@pytest.mark.parametrize(("algorithm", "task"), [("arow", "binary"), ("pa1", "binary"), ("pa1", "multiclass")])
def test_probabilities_of_huge_scores_are_probabilities(algorithm: str, task: str) -> None:
    m = model(algorithm=algorithm, task=task)
    names = "ab" if task == "binary" else "abc"
    for _ in range(3):
        m.predict_then_update([row({name: 1.0}, name) for name in names])

    with np.errstate(all="raise"):
        rows = m.predict_then_update([row({name: x}) for name in names for x in (1e6, -1e6, 1e300)])

    for i in range(len(rows)):
        probabilities, scores = rows.probabilities_of(i) or {}, rows.scores_of(i) or {}
        assert probabilities.keys() == scores.keys() == set(names)
        assert all(0.0 <= p <= 1.0 for p in probabilities.values())
        assert sum(probabilities.values()) == pytest.approx(1.0, abs=1e-9)
        assert rows.probability[i] == pytest.approx(max(probabilities.values()))
        winner = rows.texts[rows.predicted[i]]
        assert scores[str(winner)] == max(scores.values())
    assert np.isfinite(rows.score).all()


def test_what_a_batch_adds_to_counters() -> None:
    m = model(task="regression", params={"eps": 0.5})

    counts = m.predict_then_update(
        [row(label=2.0), row(label=1.2), row(), row({}, 1.0), row({"x": 1.0, "new": 1.0}, weight=0.0)]
    ).counts

    assert (counts.seen, counts.labelled, counts.unlabelled) == (5, 3, 1)
    assert (counts.updated, counts.passive, counts.skipped, counts.unstable) == (1, 1, 1, 0)
    assert (counts.features, counts.novel) == (5, 2)
    assert counts.absolute_error == pytest.approx(2.0 + 0.2 + 1.0)
    assert counts.squared_error == pytest.approx(4.0 + 0.04 + 1.0)
    assert counts.loss == pytest.approx(1.5 + 0.0 + 0.5)
    assert counts.absolute_error == pytest.approx(m.tally.absolute_sum)


def test_an_update_that_would_not_be_finite_is_dropped_and_counted() -> None:
    m = model(algorithm="pa", task="regression")
    m.predict_then_update([row({"x": 1.0}, 1.0)])
    before = m.weights()

    rows = m.predict_then_update([row({"x": 1e-150}, 1e300)])

    assert m.weights() == before
    assert (rows.counts.skipped, rows.counts.unstable) == (1, 1)


def test_neither_class_moves_where_one_of_them_could_not() -> None:
    m = model(algorithm="pa", task="multiclass")
    m.start_from({"a": {"x": 1e170}, "b": {"x": 0.0}})
    before = m.weights()

    rows = m.predict_then_update([row({"x": 1e-150}, "b")])

    assert m.weights() == before
    assert rows.counts.unstable == 1


def test_a_score_past_the_largest_double_is_clamped_and_never_nan() -> None:
    m = model(task="regression")
    m.start_from({"a": 1e200, "b": -1e200, "c": 1e200})

    rows = m.predict_then_update(
        [
            row({"a": 1e200}),
            row({"b": 1e200}),
            row({"a": 1e200, "b": 1e200}),
            row({"a": 1e200, "b": 1e200, "c": 1e-200}),
            row({"a": 1e300, "b": 1.5e300, "c": 1e300}),
        ]
    )

    largest = np.finfo(np.float64).max
    assert rows.score.tolist() == [largest, -largest, 0.0, pytest.approx(1.0, abs=1.0), largest]


def test_a_copy_of_the_state_does_not_move_with_the_model() -> None:
    m = model(algorithm="arow", scale="standard")
    m.predict_then_update([row({"x": 1.0}, 1), row({"x": 2.0, "y": 1.0}, 0)])
    meta, arrays = m.state()
    then = m.digest()

    m.predict_then_update([row({"x": 3.0, "z": 1.0}, 1)] * 3)

    assert digest_of(meta, arrays) == then
    assert m.digest() != then
    assert Model.restore("m", m.config, MonitorConfig(window=10), meta, arrays).digest() == then


def test_a_state_of_another_kind_is_refused() -> None:
    meta, arrays = model(params={"C": 1.0}).state()

    with pytest.raises(StateError, match="params"):
        Model.restore("m", model(params={"C": 2.0}).config, MonitorConfig(), meta, arrays)


def test_the_digest_knows_more_than_the_weights() -> None:
    base = [row({"x": 1.0}, 1), row({"y": 1.0}, 0)]
    digests = set()
    for extra in ([], [row()], [row({"x": 1.0}, 1, 0.0)] * 2, [row({"x": 3.0}, 1)]):
        m = model()
        m.predict_then_update([*base, *extra])
        digests.add(m.digest())

    assert len(digests) == 4


def test_the_digest_does_not_depend_on_the_order_in_which_features_came() -> None:
    one, other, third = model(), model(), model()
    one.start_from({"a": 1.0, "b": 2.0})
    other.start_from({"b": 2.0, "a": 1.0})
    third.start_from({"a": 2.0, "b": 1.0})

    assert one.digest() == other.digest() != third.digest()


def test_sizes_for_gauges() -> None:
    m = model(algorithm="arow")
    assert (m.weights_norm(), m.weight_abs_max(), m.variance_mean()) == (0.0, 0.0, None)

    m.predict_then_update([row({"x": 3.0, "y": 4.0}, 1)])

    assert m.n_features == 2
    assert m.weights_norm() == pytest.approx(np.hypot(3 / 26, 4 / 26))
    assert m.weight_abs_max() == pytest.approx(4 / 26)
    assert m.variance_mean() == pytest.approx(1 - (9 + 16) / 26 / 2)
    assert model().variance_mean() is None
    assert m.nbytes > 0


def test_weights_to_start_from_are_finite_numbers_by_name() -> None:
    m = model(task="multiclass", bias=True)

    m.start_from({"a": {"x": 1.0, "color=red": 2.0}, "b": {"x": -1.0}})

    assert predicted(m.predict_then_update([row({"x": 1.0}), row({"x": -1.0, "color": "red"})])) == ["a", "a"]
    assert m.weights() == {"a": {"x": 1.0, "color=red": 2.0}, "b": {"x": -1.0, "color=red": 0.0}}
    with pytest.raises(ConfigError, match="'x'"):
        model().start_from({"x": float("nan")})


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_warming_up_changes_nothing(task: str) -> None:
    m = model(task=task, scale="standard")
    before = m.digest()

    m.warm_up()

    assert m.digest() == before
