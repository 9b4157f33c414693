"""The library as a notebook uses it."""

from __future__ import annotations

import copy
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from olstream import ConfigError, Learner, OlstreamError, StateError
from olstream.config import LearnerConfig, MonitorConfig
from olstream.messages import Example
from olstream.model import Model


def test_importing_olstream_costs_neither_kafka_nor_a_compiler() -> None:
    script = (
        "import sys, olstream; from olstream import ConfigError; dir(olstream); assert 'numba' not in sys.modules; "
        "from olstream import Learner; "
        "assert not {'confluent_kafka', 'prometheus_client'} & set(sys.modules)"
    )

    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_package_has_these_names_and_no_others() -> None:
    import olstream

    assert {"Learner", "ConfigError", "StateError", "OlstreamError", "__version__"} <= set(dir(olstream))
    assert all(hasattr(olstream, name) for name in dir(olstream))
    with pytest.raises(AttributeError, match="Nothing"):
        _ = olstream.Nothing


def test_errors_are_caught_by_the_names_that_the_package_gives() -> None:
    assert issubclass(ConfigError, ValueError)
    assert issubclass(ConfigError, OlstreamError) and issubclass(StateError, OlstreamError)
    with pytest.raises(ValueError, match="is not known"):
        Learner("arrow")


def test_learning_from_a_row_says_what_happened() -> None:
    m = Learner("arow", task="binary", params={"r": 1.0}, bias=False)

    report = m.learn({"x": 1.0, "y": -0.5}, 1)

    assert report.score == 0.0
    assert (report.margin, report.loss, report.variance) == (0.0, 1.0, 1.25)
    assert report.step == pytest.approx(1 / 2.25)
    assert (report.updated, report.skip_reason) == (True, None)
    assert report.score_after == report.margin_after == pytest.approx(1.25 / 2.25)
    assert report.loss_after == pytest.approx(1 / 2.25)


def test_what_a_learner_does_not_have_is_none() -> None:
    pa, regression = Learner("pa"), Learner("pa1", task="regression")

    assert pa.learn({"x": 1.0}, 1).variance is None
    assert regression.learn({"x": 1.0}, 1.0).margin is None
    assert pa.variances() is None
    assert pa.bias_variance() is None
    assert Learner("arow", bias=False).bias_variance() is None
    assert Learner("arow").bias_variance() == 1.0
    assert pa.covariance() is None
    unlabelled = pa.learn({"x": 1.0})
    assert (unlabelled.loss, unlabelled.margin, unlabelled.updated) == (None, None, False)


def test_a_prediction_is_the_class_as_it_was_given() -> None:
    m = Learner("pa1", task="multiclass")
    for name, label in (("x", 1), ("z", "other"), ("y", "1"), ("x", 1.0)):
        m.learn({name: 1.0}, label)

    p = m.predict({"x": 1.0})

    assert (p.label, type(p.label)) == (1, int)
    assert m.classes == [1, "other"]
    assert p.scores is not None
    assert p.scores["1"] == p.scores[1] == p.scores[1.0] == p.score
    assert m.weights()[1]["x"] > 0 > m.weights()["other"]["x"]
    assert m.bias().keys() == {"1", "other"}
    with pytest.raises(KeyError):
        m.weights()["third"]


def test_a_regression_predicts_its_score() -> None:
    m = Learner("pa2", task="regression")
    m.learn({"x": 1.0}, 3.0)

    p = m.predict({"x": 1.0})

    assert p.label == p.score > 0
    assert p.scores is None
    assert p.probability is None


def test_binary_scores_are_the_margin_and_its_negative() -> None:
    m = Learner("arow", classes=["no", "yes"])
    m.learn({"x": 1.0}, "yes")

    p = m.predict({"x": 1.0})

    assert p.scores == {"yes": p.score, "no": -p.score}
    assert p.label == "yes"


ROWS = np.array([[1.0, 0.0, -2.0], [0.5, 1.0, 0.0], [0.0, 3.0, 1.0], [1.0, 1.0, 1.0]])
LABELS = [1, 0, 1, 0]


@pytest.mark.parametrize("one_by_one", [
    lambda m: [m.learn(row, label) for row, label in zip(ROWS, LABELS, strict=True)],
    lambda m: [m.learn(tuple(row), np.int64(label)) for row, label in zip(ROWS.tolist(), LABELS, strict=True)],
    lambda m: m.learn_many(ROWS, LABELS),
    lambda m: m.learn_many(ROWS.tolist(), np.array(LABELS)),
    lambda m: m.learn_many(ROWS.astype(np.float32), LABELS),
    lambda m: m.learn_many(np.asfortranarray(ROWS), LABELS, np.ones(4, np.float32)),
])  # fmt: skip
def test_arrays_lists_and_scalars_are_the_same_rows(one_by_one: Any) -> None:
    expected = Learner("arow")
    expected.learn_many(ROWS, LABELS)
    m = Learner("arow")

    one_by_one(m)

    assert m.digest() == expected.digest()
    assert set(m.weights()) == {"0", "1", "2"}


def test_the_library_and_the_service_learn_the_same() -> None:
    rng = np.random.default_rng(5)
    rows = [{"a": float(x), "b": 1.0, "kind": str(rng.choice(["u", "v"]))} for x in rng.normal(size=50)]
    labels = [int(x) for x in rng.integers(0, 2, 50)]
    m = Learner("arow", scale="standard")
    service = Model("any", LearnerConfig(algorithm="arow", scale="standard"), MonitorConfig())

    m.learn_many(rows, labels)
    service.predict_then_update([Example(features=x, label=y) for x, y in zip(rows, labels, strict=True)])

    assert m.digest() == service.digest()
    assert {"a", "b", "kind=u", "kind=v"} == set(m.weights())


@pytest.mark.parametrize(("features", "label", "weight", "reason"), [
    ({"x": 1}, 1.5, 1, "bad_label"),
    ({"x": 1}, "", 1, "bad_label"),
    ({"x": 1}, ["a"], 1, "bad_label"),
    ({"x": 1}, "c", 1, "unknown_label"),
    ({"x": [1]}, "a", 1, "bad_features"),
    ({"": 1}, "a", 1, "bad_features"),
    ({1: 1}, "a", 1, "bad_features"),
    ("x=1", "a", 1, "bad_features"),
    ([], "a", 1, "bad_features"),
    (7, "a", 1, "bad_features"),
    ([[1.0]], "a", 1, "bad_features"),
    ([1.0, None], "a", 1, "bad_features"),
    (np.ones((2, 2)), "a", 1, "bad_features"),
    ({"\ud800": 1}, "a", 1, "bad_encoding"),
    ({"x": "\ud800"}, "a", 1, "bad_encoding"),
    ({"é": 1, "e\u0301": 1}, "a", 1, "duplicate_key"),
    ([1.0], "a", 1, "dimension"),
    ({"x": 1}, "a", -1, "bad_weight"),
    ({"x": 1}, "a", math.nan, "bad_weight"),
    ({"x": 1}, "a", math.inf, "bad_weight"),
    ({"x": 1}, "a", "2", "bad_weight"),
    ({"x": 1}, "a", True, "bad_weight"),
    ({"x": 1}, "a", 10**400, "bad_weight"),
    ({"x": 1}, "a", np.float32("inf"), "bad_weight"),
    ({"x": 1}, "\ud800", 1, "bad_label"),
])  # fmt: skip
def test_what_cannot_be_taken_is_a_value_error_that_names_the_reason(
    features: Any, label: Any, weight: Any, reason: str
) -> None:
    m = Learner("pa1")
    m.learn({"x": 1.0, "y": 1.0}, "a")
    m.learn({"y": 1.0}, "b")
    before = m.digest()

    with pytest.raises(ValueError, match=rf"^{reason}: "):
        m.learn(features, label, weight)
    with pytest.raises(ValueError, match=rf"^{reason}: "):
        m.learn_many([{"z": 1.0}, features], ["a", label], [1.0, weight])

    assert m.digest() == before


def test_one_row_of_many_that_cannot_be_taken_is_named_and_none_is_learnt() -> None:
    m = Learner("pa1")
    rows = [[1.0]] * 1200
    labels = ["a", "b"] * 599 + ["c", "a"]  # a third class, which only the first rows make one too many

    with pytest.raises(ValueError, match=r"^unknown_label: .*\(row 1198\)$"):
        m.learn_many(rows, labels)

    assert m.digest() == Learner("pa1").digest()


def test_predicting_refuses_what_learning_refuses() -> None:
    m = Learner("pa1")
    m.learn([1.0, 2.0], 1)

    with pytest.raises(ValueError, match=r"^dimension: "):
        m.predict([1.0])


def test_rows_labels_and_weights_come_in_equal_numbers() -> None:
    with pytest.raises(ValueError, match=r"^bad_label: there are 2 rows and 1 labels"):
        Learner("pa1").learn_many([{}, {}], [1])
    with pytest.raises(ValueError, match=r"^bad_weight: there are 2 rows and 3 weights"):
        Learner("pa1").learn_many([{}, {}], [1, 0], [1, 1, 1])
    with pytest.raises(ValueError, match="bad_features"):
        Learner("pa1").learn_many(np.ones(3), [1, 1, 1])
    assert Learner("pa1").learn_many([], []) == []


def test_null_is_absent_and_a_boolean_is_a_number() -> None:
    m, expected = Learner("pa1"), Learner("pa1")

    m.learn({"x": None, "y": True, "z": np.bool_(False)}, True)
    expected.learn({"y": 1.0, "z": 0.0}, True)

    assert m.digest() == expected.digest()


@pytest.mark.parametrize("make", [list, np.array, sparse.csr_array])
def test_rows_of_arrays_with_a_number_that_is_not_finite_are_skipped(make: Any) -> None:
    finite, rows = make([[1.0, 2.0]]), make([[1.0, math.nan]])
    m = Learner("arow", bias=False)
    m.learn_many(finite, [1])
    before = m.weights()

    (report,) = m.learn_many(rows, [0])

    assert report.skip_reason == "non_finite"
    assert report.score == before["0"]
    assert m.weights() == before


def test_weights_to_start_from() -> None:
    m = Learner("pa1", weights={"x": 2.0, "kind=b\\=c": -1.0}, bias=False, classes=[0, 1])

    assert m.predict({"x": 1.0}).score == 2.0
    assert m.predict({"kind": "b=c"}).score == -1.0


def test_weights_are_taken_as_another_learner_gives_them() -> None:
    m = Learner("pa1", features={"names_max": 2, "overflow_buckets": 3})
    long = "n" * 300
    for row in ({"é": 1.0, "a=b\\": "c=d\\"}, {long: 1.0}, {"z": "t" * 300}, {"empty": ""}):
        m.learn(row, 1)
        m.learn({**row, "more": 1.0}, 0)

    again = Learner("pa1", weights=m.weights(), features={"names_max": 2, "overflow_buckets": 3})
    composed = Learner("pa1", weights={"e\u0301": np.float32(0.5), "x": np.int64(2)})

    assert again.weights() == m.weights()
    assert composed.predict({"é": 1.0, "x": 1.0}).score == 2.5


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_weights_and_bias_give_the_same_scores_again(task: Any) -> None:
    m = Learner("pa1", task=task)
    for label in (1, 0, 2 if task == "multiclass" else 1):
        m.learn({"x": 1.0 + label, "kind": "a"}, label)

    again = Learner("pa1", task=task, weights={"weights": m.weights(), "bias": m.bias()})

    for row in ({"x": 3.0}, {"kind": "a"}, {}):
        assert again.predict(row).score == m.predict(row).score
    assert again.bias() == m.bias() != (0.0 if task != "multiclass" else {})


@pytest.mark.parametrize("weights", [
    {"": 1.0}, {"x\\y": 1.0}, {"x\\": 1.0}, {"a=b=c": 1.0}, {"=b": 1.0}, {"a=\\b": 1.0}, {1: 2.0}, {"\ud800": 1.0},
    {"\\overflow:-1": 1.0}, {"\\overflow:x": 1.0}, {"\\overflow:65536": 1.0}, {"\\hash:zz": 1.0},
    {"é": 1, "e\u0301": 2},
    {"a": "x"}, {"a": True}, {"a": math.nan}, {"a": -math.inf}, {"a": 10**400}, {"a": None}, [1.0],
])  # fmt: skip
def test_weights_that_cannot_be_taken_are_an_error(weights: Any) -> None:
    with pytest.raises(ConfigError, match="weight"):
        Learner("pa1", weights=weights)
    with pytest.raises(ConfigError, match="weight"):
        Learner("pa1", task="multiclass", weights={"class": weights})


def test_weights_that_are_not_by_class_say_of_which_class_they_would_be() -> None:
    with pytest.raises(ConfigError, match=r"^weights of class 'x' are \{feature: weight\}, not float$"):
        Learner("pa1", "multiclass", weights={"x": 1.0})


def test_weights_of_several_classes_are_by_class() -> None:
    for weights in ({"a": 1.0}, [1.0], {"": {"x": 1.0}}):
        with pytest.raises(ConfigError, match="weights"):
            Learner("pa1", task="multiclass", weights=weights)  # type: ignore[arg-type]


@pytest.mark.parametrize("label", [10**400, -(10**400), math.inf, np.float32("nan"), np.longdouble("inf")])
def test_a_value_that_no_double_holds_is_a_row_that_is_skipped(label: Any) -> None:
    m = Learner("pa1", task="regression")
    m.learn({"x": 1.0}, 2.0)
    before = m.weights()

    report = m.learn({"x": 1.0}, label)
    (other,) = m.learn_many([{"x": 1.0}], [label])

    assert report.skip_reason == other.skip_reason == "non_finite"
    assert m.weights() == before


@pytest.mark.parametrize("classes", [("no", "yes"), np.array(["no", "yes"]), [np.str_("no"), "yes"]])
def test_classes_may_be_any_sequence(classes: Any) -> None:
    assert Learner("pa1", classes=classes).classes == ["no", "yes"]


@pytest.mark.parametrize(("name", "settings", "message"), [
    ("arrow", {}, r"algorithm 'arrow' is not known \(nearest: arow\)"),
    ("sop", {}, "this version has alm_svm, arow, cw"),
    ("pa1", {"task": "ranking"}, "ranking"),
    ("pa1", {"classes": ["a"]}, "classes"),
    ("pa1", {"scale": "maybe"}, "Learner: scale: must be one of none, standard, not 'maybe'"),
    ("pa1", {"bias": "no"}, "Learner: bias: must be true or false, not 'no'"),
    ("pa1", {"classes": "ab"}, r"Learner: classes: must be a list, such as \[a, b\]"),
    ("pa1", {"unheard_of": 1}, "unheard_of"),
    ("pa1", {"params": "C=1"}, "Learner: params: must be a mapping, such as {'C': 1.0}, not 'C=1'"),
    ("pa1", {"params": []}, "Learner: params: must be a mapping"),
    ("pa1", {"start_from": "./state#m"}, "Learner: start_from is for a service: take `weights`"),
    ("pa1", {"task": "multiclass", "multiclass": "one_vs_one"}, "one_vs_one is not in this version"),
])  # fmt: skip
def test_a_wrong_setting_is_named(name: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Learner(name, **settings)


def test_what_is_by_class_is_found_by_any_spelling_of_the_class() -> None:
    m = Learner("pa", "multiclass")
    for label in (1, 2, True):
        m.learn({"x": 1.0}, label)

    weights = m.weights()

    for known in (1, 1.0, "1", np.int64(1)):
        assert known in weights and weights[known] == weights.get(known) == weights["1"]
    assert weights[True] == weights["true"] != weights[1]
    for unknown in (3, "3", None, (1, 2), 1.5):
        assert unknown not in weights and weights.get(unknown) is None
        with pytest.raises(KeyError):
            weights[unknown]


def test_a_deep_copy_goes_its_own_way() -> None:
    m = Learner("arow")
    m.learn({"x": 1.0}, 1)

    other = copy.deepcopy(m)
    other.learn({"x": 1.0}, 0)

    assert other.digest() != m.digest()
    assert m.weights()["x"] == pytest.approx(1 / 3)


def test_saving_over_a_saved_learner_leaves_the_new_one(tmp_path: Path) -> None:
    m = Learner("arow", class_weights={"1": 2.0}, features={"category": ["code"]})
    m.save(tmp_path / "m")
    m.learn({"x": 1.0, "code": 7}, 1)

    m.save(tmp_path / "m")
    again = Learner.load(tmp_path / "m")

    assert again.digest() == m.digest()
    assert "code=7" in again.weights()
    assert sorted(path.suffix for path in (tmp_path / "m").iterdir()) == [".json", ".safetensors"]


def test_what_was_not_saved_whole_is_not_loaded(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="no learner"):
        Learner.load(tmp_path)
    m = Learner("arow")
    m.learn({"x": 1.0}, 1)
    m.save(tmp_path / "m")
    (arrays,) = (tmp_path / "m").glob("*.safetensors")
    data = bytearray(arrays.read_bytes())
    data[-1] ^= 1
    arrays.write_bytes(data)

    with pytest.raises(StateError, match="no learner"):
        Learner.load(tmp_path / "m")
