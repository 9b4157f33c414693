"""Which learners take part, by the options of the command line."""

from __future__ import annotations

from typing import Any

import pytest

from olstream.comparison.lineup import learners
from olstream.errors import ConfigError
from olstream.learners import base


@pytest.mark.parametrize("task", base.TASKS)
def test_all_algorithms_of_the_task_take_part(task: Any) -> None:
    chosen = learners(task, [], [], {"scale": "standard"})

    assert list(chosen) == [name for name, algorithm in base.algorithms().items() if algorithm.takes(task)]
    assert all(config.task == task and config.scale == "standard" for config in chosen.values())


def test_those_that_are_named_take_part_once_and_in_that_order() -> None:
    assert list(learners("binary", ["pa2", "arow", "pa2"], [], {})) == ["pa2", "arow"]


def test_one_value_of_a_parameter_is_that_of_the_learner() -> None:
    chosen = learners("binary", ["arow", "pa1"], ["arow.r=0.1"], {})

    assert {name: config.params for name, config in chosen.items()} == {"arow": {"r": 0.1}, "pa1": {}}


def test_several_values_are_tried_side_by_side() -> None:
    given = ["pa1.C=1e-2", "pa1.C = 5", "pa1.C=5", "pa1.eps=0.5"]

    chosen = learners("regression", ["pa1", "pa2"], given, {})

    assert {name: config.params for name, config in chosen.items()} == {
        "pa1[C=0.01]": {"C": 0.01, "eps": 0.5},
        "pa1[C=5]": {"C": 5, "eps": 0.5},
        "pa2": {},
    }


def test_a_value_that_is_given_twice_is_one() -> None:
    assert list(learners("binary", ["arow"], ["arow.r=1", "arow.r=1"], {})) == ["arow"]


def test_every_combination_is_tried() -> None:
    given = [f"pa1.C={value}" for value in (1, 2)] + [f"pa1.eps={value}" for value in (0.1, 0.2)]

    chosen = learners("regression", ["pa1"], given, {})

    assert list(chosen) == ["pa1[C=1,eps=0.1]", "pa1[C=1,eps=0.2]", "pa1[C=2,eps=0.1]", "pa1[C=2,eps=0.2]"]


@pytest.mark.parametrize(
    ("algorithms", "params", "told"),
    [
        (["arrow"], [], r"algorithm 'arrow' is not known \(nearest: arow\)"),
        (["pa1"], ["arow.r=1"], "--param arow: arow is not compared here"),
        (["pa1"], ["pa2.C=1"], "--param pa2: pa2 is not compared here; did you mean 'pa1'?"),
        ([], ["arow"], "--param arow: write ALGORITHM.PARAMETER=VALUE, such as arow.r=0.1"),
        ([], ["arow.r="], "write ALGORITHM.PARAMETER=VALUE"),
        ([], ["r=1"], "write ALGORITHM.PARAMETER=VALUE"),
        ([], ["arow.r=-1"], "arow: params.r must be a finite number > 0, not -1"),
        ([], ["arow.r=many"], "arow: params.r must be a number"),
        ([], ["arow.R=1"], r"arow: params.R: arow \(binary\) has no such parameter"),
    ],
)
def test_mistakes_are_told_in_a_sentence(algorithms: list[str], params: list[str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        learners("binary", algorithms, params, {})


def test_a_learner_without_the_task_says_which_it_has() -> None:
    name, task = next(
        (name, task) for name, one in base.algorithms().items() for task in base.TASKS if not one.takes(task)
    )

    with pytest.raises(ConfigError, match=f"algorithm {name} has no task {task}"):
        learners(task, [name], [], {})
