"""Against River's figures: the same where the formulas are the same, and where not, which part makes the difference."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import stdev
from typing import Any

import numpy as np
import pytest
from scipy.stats import ks_2samp

from olstream.drift import Detector
from olstream.drift.kswin import p_value
from tests.drift import references
from tests.drift.river_figures import digest, stream_of, told
from tests.drift.streams import EVERY, F64

RIVER = json.loads(Path(__file__).with_name("river.json").read_text())
OURS: dict[str, dict[str, Any]] = {
    "hddm_a two_sided": {"two_sided": True},
    "page_hinkley": {"lambda": 8.0, "mode": "both"},
    "page_hinkley up": {"lambda": 8.0},
}


def figures(*names: str) -> list[Any]:
    return [
        pytest.param(figure, id=f"{figure['detector']}-{figure['stream']}-{figure['seed']}")
        for figure in RIVER["figures"]
        if figure["detector"] in names
    ]


def stream(figure: dict[str, Any]) -> F64:
    values = stream_of(figure["stream"], figure["seed"])
    assert digest(values) == figure["digest"]
    return values


def ours(figure: dict[str, Any]) -> dict[str, list[int]]:
    name = figure["detector"]
    return told(Detector(name.split()[0], **OURS.get(name, {})).update_many(stream(figure)).tolist())


def of(reference: references.Reference, figure: dict[str, Any]) -> dict[str, list[int]]:
    return told([reference.update(x) for x in stream(figure).tolist()])


def river(figure: dict[str, Any]) -> dict[str, list[int]]:
    return {key: figure[key] for key in ("drift", "warning")}


@pytest.mark.parametrize("figure", figures("ddm", "hddm_a", "page_hinkley", "page_hinkley up"))
def test_every_drift_and_warning_is_where_river_has_it(figure: dict[str, Any]) -> None:
    assert ours(figure) == river(figure)


@pytest.mark.parametrize("figure", figures("hddm_a two_sided"))
def test_every_drift_of_either_side_is_where_river_has_it(figure: dict[str, Any]) -> None:
    assert ours(figure)["drift"] == figure["drift"]


@pytest.mark.parametrize("figure", figures("adwin", "kswin"))
def test_the_first_drift_is_where_river_has_it(figure: dict[str, Any]) -> None:
    assert ours(figure)["drift"][:1] == figure["drift"][:1]


# Where River does otherwise


class RiverAdwin(references.Adwin):
    """Throws the whole window away after a drift, also its newest side."""

    def begin(self) -> None:
        self.ticks, self.buckets, self.seen = 0, [], None


class RiverEddm(references.Eddm):
    """The deviation of a sample, n - 1; and a warning that stays up while the distances grow to a new maximum."""

    def deviation(self, distances: list[int]) -> float:
        return stdev(distances) if len(distances) > 1 else 0.0

    def at_a_new_largest(self) -> int:
        return self.level


class RiverSample(references.Sample):
    """Takes its first value for one that follows another: b = 0.905 where lambda = 0.05."""

    def first_b(self) -> float:
        return self.lam**2 + (1 - self.lam) ** 2


class RiverHddmW(references.HddmW):
    sample = RiverSample


OTHERWISE = {"adwin": RiverAdwin, "eddm": RiverEddm, "hddm_w": RiverHddmW}


@pytest.mark.parametrize("figure", figures(*OTHERWISE))
def test_the_named_differences_are_all_that_river_does_otherwise(figure: dict[str, Any]) -> None:
    assert of(OTHERWISE[figure["detector"]](), figure) == river(figure)


@pytest.mark.parametrize("name", OTHERWISE)
def test_the_differences_show(name: str) -> None:
    differing = [figure for figure in RIVER["figures"] if figure["detector"] == name and ours(figure) != river(figure)]

    assert differing
    for figure in differing:
        assert ours(figure) == of(references.REFERENCES[name](), figure)


@pytest.mark.parametrize("r", [3, 10, 30])
def test_the_chance_of_a_distance_is_that_of_scipy(r: int) -> None:
    for h in range(2, r + 1):  # of 1 it is 1
        apart = ks_2samp(np.arange(r), np.arange(r) + h - 0.5, method="exact")

        assert apart.statistic == pytest.approx(h / r)
        assert float(p_value(h, r)) == pytest.approx(apart.pvalue, rel=1e-9)
        assert float(p_value(h, r)) == pytest.approx(references.chance(h, r), rel=1e-9, abs=1e-12)


class Drawing(references.Kswin):
    """Remembers what it drew last."""

    def draw(self, values: list[float]) -> list[float]:
        self.drawn = super().draw(values)
        return self.drawn


@pytest.mark.parametrize("stream", ["real_valued", "abrupt"])
def test_the_distance_of_kswin_is_that_of_scipy(stream: str) -> None:
    values, params = EVERY[stream](3)[:150], dict[str, Any](window=60, stat=20, alpha=1e-9)
    detector, reference = Detector("kswin", **params), Drawing(**params)

    for i, x in enumerate(values.tolist()):
        detector.update(x)
        reference.update(x)

        if i < 59:
            assert detector.statistic is None
        else:
            apart = ks_2samp(reference.drawn, values[i - 19 : i + 1], method="exact")
            assert detector.statistic == pytest.approx(apart.statistic)
