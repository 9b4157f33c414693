"""Classes: compared by text, published as first seen, two places in a binary task."""

from __future__ import annotations

from typing import Any

import pytest

from olstream.classes import Classes
from olstream.errors import ConfigError
from olstream.messages import Label, Reason, Reject


def reason(found: int | Reject) -> Reason | None:
    return found.reason if isinstance(found, Reject) else None


def learnt(task: str, *labels: Label, declared: list[Label] | None = None) -> Classes:
    classes = Classes(task, declared)
    for label in labels:
        classes.learn(label)
    return classes


@pytest.mark.parametrize(("first", "same"), [(1, [1.0, "1"]), ("1", [1, 1.0]), (True, ["true"]), ("false", [False]),
                                             (0, [-0.0, "0"]), (2**60, [str(2**60), float(2**60)])])  # fmt: skip
def test_classes_are_compared_by_their_text(first: Label, same: list[Label]) -> None:
    classes = learnt("multiclass", first)

    assert all(classes.find(label) == 0 for label in same)
    assert classes.forms == [first]
    assert type(classes.forms[0]) is type(first)


def test_true_is_not_one() -> None:
    classes = learnt("multiclass", 1, True, "x")

    assert classes.forms == [1, True, "x"]
    assert classes.find_many([True, 1, "x", None, 1.0]) == [1, 0, 2, -1, 0]
    assert classes.find_many([1, "x"]) == [0, 2]


def test_find_many_leaves_what_is_new_in_any_way_to_find() -> None:
    classes = learnt("multiclass", 1)

    assert classes.find_many([1, "1"]) is None
    assert classes.find_many([1, 2]) is None
    assert classes.find_many([True]) is None
    assert classes.learn("1") == 0
    assert classes.find_many([1, "1"]) == [0, 0]
    assert classes.known == 1


@pytest.mark.parametrize("label", ["", "x" * 257, 1.5, 10**300, [], {}, None])
def test_what_cannot_be_a_class_is_a_bad_label(label: Any) -> None:
    assert reason(Classes("multiclass", None).find(label)) is Reason.BAD_LABEL
    assert reason(Classes("binary", ["a", "b"]).find(label)) is Reason.BAD_LABEL


@pytest.mark.parametrize(("labels", "forms"), [
    ((1, 0), [0, 1]),
    ((0, 1), [0, 1]),
    ((-1, 1), [-1, 1]),
    ((True, False), [False, True]),
    (("spam", "ham"), ["ham", "spam"]),
    (("no", 1), None),
    ((0, "yes"), [0, "yes"]),
    ((1, "other"), ["other", 1]),
])  # fmt: skip
def test_a_binary_label_takes_its_place(labels: tuple[Label, ...], forms: list[Label] | None) -> None:
    classes = learnt("binary", labels[0])

    if forms is None:  # the positive place, where 1 belongs, is taken by another text
        assert reason(classes.find(labels[1])) is Reason.UNKNOWN_LABEL
    else:
        classes.learn(labels[1])
        assert classes.forms == forms


@pytest.mark.parametrize("third", ["c", 1, 0, True])
def test_a_third_text_is_unknown_to_two_classes(third: Label) -> None:
    classes = learnt("binary", "a", "b")

    assert reason(classes.find(third)) is Reason.UNKNOWN_LABEL
    assert classes.forms == ["b", "a"]


def test_zero_and_minus_one_are_two_texts_for_one_place() -> None:
    assert reason(learnt("binary", 0).find(-1)) is Reason.UNKNOWN_LABEL


def detail(found: int | Reject) -> str:
    assert isinstance(found, Reject)
    return found.detail


def test_a_label_whose_place_is_taken_is_told_by_whom() -> None:
    assert detail(learnt("binary", "no").find(1)) == (
        "label '1' stands for the positive class, which is 'no' here: declare both under `classes`"
    )
    assert detail(learnt("binary", "no", "yes").find(False)) == (
        "label 'false' stands for the negative class, which is 'yes' here: declare both under `classes`"
    )
    assert detail(learnt("binary", "a", "b").find("c")) == "label 'c' is none of the 2 classes: b, a"
    assert detail(Classes("binary", ["a", "b"]).find(1)) == "label '1' is none of the 2 classes: a, b"


def test_a_label_that_is_one_too_many_is_told_so() -> None:
    full = Classes("multiclass", None, classes_max=2)
    full.learn("a")
    full.learn("b")

    assert detail(full.find("c")) == "label 'c' is new, and there are 2 classes already, which is classes_max"
    many = Classes("multiclass", [f"class {i}" for i in range(20)])
    assert detail(many.find("c")).endswith("class 6, class 7 and 12 more")


def test_declared_classes_are_closed_and_in_the_declared_form() -> None:
    classes = Classes("binary", ["no", 1])

    assert (classes.find("no"), classes.find("1")) == (0, 1)
    assert reason(classes.find("maybe")) is Reason.UNKNOWN_LABEL
    classes.learn(1.0)
    assert classes.forms == ["no", 1]
    assert classes.known_code == 3


def test_classes_max_closes_an_open_set() -> None:
    classes = Classes("multiclass", None, classes_max=2)
    classes.learn("a")
    classes.learn("b")

    assert reason(classes.find("c")) is Reason.UNKNOWN_LABEL
    assert classes.find("a") == 0


def test_finding_changes_nothing() -> None:
    classes = learnt("binary", "a")

    assert classes.find("b") == 0
    assert classes.find("c") == 0
    assert (classes.known, classes.known_code, classes.forms) == (1, 2, [None, "a"])


def test_a_saved_set_of_classes_comes_back_in_form() -> None:
    huge = 10**30
    classes = learnt("multiclass", "a", 1, True, 2.0, huge)

    again = Classes("multiclass", None)
    again.restore(classes.state())

    assert [(type(form), form) for form in again.forms] == [(type(form), form) for form in classes.forms]
    assert again.find(huge) == 4
    half = Classes("binary", None)
    half.restore(learnt("binary", "a").state())
    assert half.forms == [None, "a"]


@pytest.mark.parametrize(("task", "declared"), [("binary", ["a"]), ("binary", [1, "1"]), ("multiclass", ["a", "a"])])
def test_a_declaration_must_make_sense(task: str, declared: list[Label]) -> None:
    with pytest.raises(ConfigError, match="class"):
        Classes(task, declared)
