"""The confidence-weighted family: weights with a Gaussian belief N(w, S), S = a I at the start.

    m = y w·x                       margin              v = x·S x      its variance
    w ← w + α y S x                                     S ← S - β (S x)(S x)^T

A learner of it says when a row is learnt and what α and β are; all else is here: the parameters they share, the
kinds of S, the forms for several classes (one S for each: the sum of both variances is the margin's).
Source of the last: Crammer, Dredze, Kulesza. Multi-class Confidence Weighted Algorithms. EMNLP 2009.

Two departures, both options for streams that drift, off by default: no variance falls below `variance_floor`; a
variance that an update touches grows by the factor `forget`, at most to a.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np

from olstream.errors import ConfigError
from olstream.learners._covariance import DIAGONAL, DIAGONALS, FULL, Covariance
from olstream.learners._jit import F64
from olstream.learners._linear import Rule, pair, rest, shared, single
from olstream.learners._rows import many, one
from olstream.learners._state import Anatomy
from olstream.learners.base import Build, Choice, Learning, Number, Param, Task

Own: TypeAlias = Callable[[Mapping[str, Any]], tuple[Rule, list[float]]]

A: Final = Number("a", 1.0, "variance of every weight at the start", above=0.0)
FLOOR: Final = Number("variance_floor", 0.0, "no variance falls below it (diagonal)", at_least=0.0)
FORGET: Final = Number("forget", 1.0, "factor on each variance that an update touches (diagonal)", at_least=1.0)
COVARIANCE_MAX: Final = Number(
    "covariance_max", 2000.0, "features that a full covariance keeps; later ones share buckets", at_least=1, whole=True
)


def params(*own: Param, has_shared: bool = True, diagonals: tuple[str, ...] = DIAGONALS[:2],
           diagonal: str | None = "drop") -> tuple[Param, ...]:  # fmt: skip
    """A learner's own parameters, then those of the family."""
    kinds = ("diagonal", "full", "shared") if has_shared else ("diagonal", "full")
    told = "diagonal: one variance for each weight; full: all covariances"
    stays = "how it stays diagonal: by the full result (drop) or the full precision (project)"
    return (
        *own,
        A,
        Choice("covariance", "diagonal", told + ("; shared: one for all classes" if has_shared else ""), kinds),
        Choice("diagonal", diagonal, stays if diagonal else f"{stays}; as its form was published", diagonals),
        FLOOR,
        FORGET,
        COVARIANCE_MAX,
    )


def build(own: Own, shared_own: Own | None = None, regression_own: Own | None = None) -> Build:
    """`own` gives rule and numbers of the step; `shared_own` those for one S of all classes."""

    def built(task: Task, given: Mapping[str, Any]) -> Learning:
        covariance = _covariance(given)
        if given["covariance"] == "shared":
            if task != "multiclass" or shared_own is None:
                raise ConfigError(f"params.covariance: shared is for several classes learnt direct, not for {task}")
            rule, numbers = shared_own(given)
            p = _vector(numbers, given)
            return _learning(many(shared(rule, covariance), p, covariance.reach), given, is_shared=True)
        rule, numbers = (regression_own or own)(given) if task == "regression" else own(given)
        p = _vector(numbers, given)
        if task == "multiclass":
            return _learning(many(pair(rule, covariance), p, covariance.reach), given)
        return _learning(one(single(rule, covariance, task == "regression"), p), given)

    return built


def build_rest(own: Own) -> Callable[[Mapping[str, Any]], Learning]:
    """Several classes, each a learner of its own against the rest."""

    def built(given: Mapping[str, Any]) -> Learning:
        if given["covariance"] == "shared":
            raise ConfigError("params.covariance: shared is for several classes learnt direct, not one_vs_rest")
        covariance = _covariance(given)
        rule, numbers = own(given)
        lesson = rest(single(rule, covariance), rule.loss, covariance)
        return _learning(many(lesson, _vector(numbers, given), covariance.reach), given)

    return built


def _covariance(given: Mapping[str, Any]) -> Covariance:
    if given["covariance"] == "diagonal":
        if given["variance_floor"] > given["a"]:
            raise ConfigError(f"params.variance_floor must not be above a, the variance at the start ({given['a']:g})")
        return DIAGONAL
    for name, default in (("variance_floor", 0.0), ("forget", 1.0)):
        if given[name] != default:
            raise ConfigError(f"params.{name} is for covariance: diagonal")
    return FULL


def _vector(own: list[float], given: Mapping[str, Any]) -> F64:
    """What kernels read: the learner's own numbers first, those of `_covariance` last."""
    form = DIAGONALS.index(given["diagonal"])
    return np.array([*own, given["a"], given["variance_floor"], given["forget"], form], np.float64)


def _learning(run: Any, given: Mapping[str, Any], is_shared: bool = False) -> Learning:
    is_full = given["covariance"] != "diagonal"
    anatomy = Anatomy(prior=given["a"], is_full=is_full, is_shared=is_shared)
    return Learning(run, anatomy, features_max=int(given["covariance_max"]) if is_full else None)
