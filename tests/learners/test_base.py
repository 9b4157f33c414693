"""How learners are found, described, and compiled."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from olstream import Learner
from olstream.errors import ConfigError
from olstream.learners import base
from olstream.learners.base import Choice, Flag, Number, algorithm, algorithms
from tests.learners.kinds import EVERY

ROOT = Path(__file__).resolve().parents[2]
DIGESTS = """
import numpy as np
from tests.learners.kinds import EVERY

rng = np.random.default_rng(11)
X, labels, values = rng.normal(size=(60, 7)), rng.integers(0, 2, 60), rng.normal(size=60)
X[rng.random(X.shape) < 0.3] = 0.0
for kind in EVERY:
    y = {"binary": labels, "multiclass": labels + (values > 1.0), "regression": values}[kind.task]
    m = kind.learner(scale="standard")
    m.learn_many([dict(zip("abcdefg", row)) for row in X.tolist()], y)
    print(kind, m.digest())
"""


def test_compiled_and_plain_kernels_give_the_same_bits() -> None:
    def digests(disabled: str) -> list[str]:
        environ = os.environ | {"NUMBA_DISABLE_JIT": disabled, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", DIGESTS]
        done = subprocess.run(command, env=environ, cwd=ROOT, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    compiled = digests("0")

    assert [line.rpartition(" ")[0] for line in compiled] == [str(kind) for kind in EVERY]
    assert digests("1") == compiled


@pytest.mark.parametrize("found", algorithms().values(), ids=algorithms().keys())
def test_every_algorithm_explains_itself(found: base.Algorithm) -> None:
    assert found.paper.split(". ")[1].split(";")[0] in " ".join(found.formulas.split())
    assert found.tasks
    for task in found.tasks:
        defaults = found.check(task, {})
        assert defaults == {param.name: param.default for param in found.params_of(task)}
        assert all(param.meaning and param.range for param in found.params_of(task))


@pytest.mark.parametrize("found", algorithms().values(), ids=algorithms().keys())
def test_every_number_has_a_range_and_is_refused_by_name_outside_it(found: base.Algorithm) -> None:
    for task in found.tasks:
        for param in found.params_of(task):
            if isinstance(param, Number):
                for value in (float("nan"), float("inf"), -1e-300, 10**400, "1", True, [1.0]):
                    with pytest.raises(ConfigError, match=rf"params\.{param.name} must be"):
                        found.check(task, {param.name: value})
                inside = {"eta": 0.75, "tol": 0.01}.get(param.name, 2.0)
                assert found.check(task, {param.name: np.float64(inside)})[param.name] == inside


@pytest.mark.parametrize("found", algorithms().values(), ids=algorithms().keys())
def test_every_word_and_flag_is_one_of_its_own_or_refused_by_name(found: base.Algorithm) -> None:
    for task in found.tasks:
        for param in found.params_of(task):
            if isinstance(param, Choice):
                assert all(found.check(task, {param.name: option})[param.name] == option for option in param.options)
                for value in ("", "Full", 1, True, ["full"]):
                    with pytest.raises(ConfigError, match=rf"params\.{param.name} takes {re.escape(param.range)}"):
                        found.check(task, {param.name: value})
            if isinstance(param, Flag):
                for wrong in ("true", 1, 0, None, 1.0):
                    with pytest.raises(ConfigError, match=rf"params\.{param.name} must be true or false"):
                        found.check(task, {param.name: wrong})


DEFAULTS: dict[str, dict[str, object]] = {
    "perceptron": {"averaged": False},
    "pa": {},
    "pa1": {"C": 1.0},
    "pa2": {"C": 1.0},
    "cw": {"eta": 0.9, "a": 1.0, "form": "stdev", "covariance": "diagonal"},
    "scw1": {"C": 1.0, "eta": 0.75, "a": 1.0, "covariance": "diagonal", "diagonal": "drop"},
    "scw2": {"C": 1.0, "eta": 0.9, "a": 1.0, "covariance": "diagonal", "diagonal": "drop"},
    "arow": {"r": 1.0, "a": 1.0, "covariance": "diagonal", "diagonal": "drop", "covariance_max": 2000},
    "nherd": {"C": 1.0, "a": 1.0, "covariance": "diagonal", "diagonal": "project"},
    "ogd": {"loss": None, "eta": 1.0, "schedule": "sqrt", "l2": 0.0},
    "pegasos": {"lambda": 1e-4, "project": False},
    "logistic": {"eta": 0.1, "l2": 0.0},
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults_are_those_that_are_documented(name: str) -> None:
    found = algorithm(name).check("binary", {})

    assert {key: found.get(key) for key in DEFAULTS[name]} == DEFAULTS[name]
    regression = algorithm(name).check("regression", {}) if "regression" in algorithm(name).tasks else {}
    assert regression.get("eps") == {"arow": 0.0, "ogd": 0.1, **dict.fromkeys(("pa", "pa1", "pa2"), 0.1)}.get(name)


def test_bounds_are_outside_or_inside_as_the_range_says() -> None:
    for name, param, inside, outside in (
        ("cw", "eta", (0.5000001, 0.9999999), (0.5, 1.0, 0.0)),
        ("cw", "phi", (1e-9, 1e6), (0.0, 1e7)),
        ("arow", "covariance_max", (1, 2000), (0, 2.5)),
        ("pa1", "C", (1e-300, 1e300), (0.0, -1.0)),
        ("ogd", "l2", (0.0, 1.0), (-1e-9,)),
        ("pegasos", "lambda", (1e-300, 1.0), (0.0,)),
    ):
        for value in inside:
            assert algorithm(name).check("binary", {param: value})[param] == value
        for value in outside:
            with pytest.raises(ConfigError, match=rf"params\.{param} must be"):
                algorithm(name).check("binary", {param: value})


def test_a_parameter_of_another_task_is_not_known() -> None:
    with pytest.raises(ConfigError, match=r"params\.eps: pa1 \(binary\) has no such parameter; its parameters: C"):
        algorithm("pa1").check("binary", {"eps": 0.1})
    with pytest.raises(ConfigError, match=r"params\.epsilon.*nearest: eps"):
        algorithm("pa1").check("regression", {"epsilon": 0.1})


def test_another_package_adds_a_learner_by_an_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(
        "from dataclasses import replace\n"
        "from olstream.learners.base import algorithm\n"
        "mine = replace(algorithm('pa1'), name='mine', title='Mine')\n"
        "fake = replace(algorithm('pa1'), name='arow', title='Fake')\n"
    )
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[olstream.learners]\nmine = mine:mine\narow = mine:fake\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    m = Learner("mine", bias=False)
    m.learn({"x": 1.0}, 1)

    assert m.weights() == {"x": 1.0}
    assert algorithms()["mine"].title == "Mine"
    assert algorithms()["arow"].title != "Fake"


START = "from olstream import Learner; m = Learner('pa1'); m.learn({'x': 1.0}, 1); print(m.weights())"


def _start(cache: Path | str) -> tuple[str, list[Path]]:
    environ = os.environ | {"XDG_CACHE_HOME": str(cache), "NUMBA_DISABLE_JIT": "0"}
    done = subprocess.run([sys.executable, "-c", START], env=environ, capture_output=True, text=True, check=True)
    return done.stdout, sorted(Path(cache).rglob("*.nbc"))


def test_a_second_start_finds_its_kernels_and_a_damaged_one_is_compiled_again(tmp_path: Path) -> None:
    first, kept = _start(tmp_path)
    second, still = _start(tmp_path)
    for path in kept:
        path.write_bytes(path.read_bytes()[:100])

    third, _ = _start(tmp_path)

    assert first == second == third
    assert kept and kept == still
    assert kept[0].parent.stat().st_mode & 0o077 == 0


def test_no_cache_directory_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    found, kept = _start(tmp_path / "file")

    assert "x" in found
    assert kept == []
