"""What is compiled beforehand: every algorithm, for each of its tasks and in each of its forms."""

from __future__ import annotations

import pytest

from olstream import kernels
from olstream.drift import NAMES
from olstream.errors import ConfigError
from olstream.learners import base


def test_every_algorithm_is_there_with_its_defaults_for_each_task() -> None:
    found = {(s["algorithm"], s["task"]) for s in kernels.learners() if not s["params"]}

    assert found == {
        (name, task) for name, algorithm in base.algorithms().items() for task in base.TASKS if algorithm.takes(task)
    }


def test_each_option_is_there_once() -> None:
    params = [
        s["params"] for s in kernels.learners(["arow"]) if s["task"] == "multiclass" and s["multiclass"] == "direct"
    ]

    assert params == [{}, {"covariance": "full"}, {"covariance": "shared"}, {"diagonal": "project"}]


def test_services_have_every_detector_and_leave_out_what_does_not_go_together() -> None:
    services = list(kernels.services(["scw1"]))

    assert 5 < len(services) <= len(list(kernels.learners(["scw1"])))
    assert all(set(service.monitor.drift) == set(NAMES) for service in services)


def test_an_algorithm_that_is_none_is_told() -> None:
    with pytest.raises(ConfigError, match="arrow"):
        list(kernels.learners(["arrow"]))
