"""Curves as a picture: an SVG that any viewer reads, a PNG where matplotlib is there."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest

from olstream.comparison import chart
from olstream.comparison.chart import Chart, Line
from olstream.errors import ConfigError

SVG = "{http://www.w3.org/2000/svg}"


def drawn(lines: list[Line], is_ratio: bool = True, title: str = "file.csv") -> tuple[ElementTree.Element, list[str]]:
    """The picture, and all that is written in it."""
    picture = ElementTree.fromstring(chart.svg(Chart(title, "error", is_ratio, lines)))
    return picture, [str(text.text) for text in picture.iter(f"{SVG}text")]


def points(line: ElementTree.Element) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in line.attrib["points"].split())]


LINES = [
    Line("arow", [(10, 0.4), (500, 0.2), (1000, 0.1)], False),
    Line("majority", [(10, 0.5), (500, 0.5), (1000, 0.5)], True),
]


def test_each_line_is_a_curve_with_its_name_and_where_it_ends() -> None:
    picture, texts = drawn(LINES)

    curves = list(picture.iter(f"{SVG}polyline"))
    assert {"file.csv", "error", "labelled rows", "arow  10%", "majority  50%", "0%", "1,000"} <= set(texts)
    assert [len(points(curve)) for curve in curves] == [3, 3]
    assert len({curve.attrib["stroke"] for curve in curves}) == 2
    assert "stroke-dasharray" in curves[1].attrib


def test_more_rows_stand_to_the_right_and_more_error_above() -> None:
    picture, _ = drawn(LINES)

    falling, level = (points(curve) for curve in picture.iter(f"{SVG}polyline"))
    assert [x for x, _ in falling] == sorted(x for x, _ in falling)
    assert [y for _, y in falling] == sorted(y for _, y in falling)  # which counts downwards
    assert len({y for _, y in level}) == 1
    assert falling[0][1] > level[0][1]
    _, _, width, height = map(float, picture.attrib["viewBox"].split())
    assert all(0 < x < width and 0 < y < height for x, y in (*falling, *level))


@pytest.mark.parametrize("names", [1, 8, 60])
def test_every_name_is_inside_the_picture_and_every_curve_looks_different(names: int) -> None:
    lines = [Line(f"learner[r={i}]", [(5, i / 100)], False) for i in range(names)]

    picture, texts = drawn(lines)

    _, _, _, height = map(float, picture.attrib["viewBox"].split())
    assert all(float(text.attrib["y"]) < height for text in picture.iter(f"{SVG}text"))
    assert sum(text.startswith("learner[r=") for text in texts) == names
    styles = {(c.attrib["stroke"], c.attrib.get("stroke-dasharray")) for c in picture.iter(f"{SVG}polyline")}
    assert len(styles) == min(names, 21)


def test_names_are_written_as_they_are() -> None:
    _, texts = drawn([Line("a<b>&'c'", [(1, 0.5)], False)], title='<script>"&')

    assert "a<b>&'c'  50%" in texts and '<script>"&' in texts


def test_who_is_far_off_does_not_press_the_others_flat() -> None:
    lines = [Line("wild", [(1, 9e9), (100, 3e9)], False), Line("mean so far", [(1, 2.0), (100, 4.0)], True)]

    picture, _ = drawn(lines, is_ratio=False)
    inside = {shape.attrib["id"] for shape in picture.iter(f"{SVG}clipPath")}
    assert {curve.attrib["clip-path"] for curve in picture.iter(f"{SVG}polyline")} == {
        f"url(#{name})" for name in inside
    }
    assert Chart("t", "m", False, lines).top == 8.0
    assert Chart("t", "m", False, lines[:1]).top == pytest.approx(3.15e9)


@pytest.mark.parametrize(
    "lines", [[], [Line("a", [], False)], [Line("a", [(1, 0.0)], True)], [Line("a", [(3, 1.7e308)], False)]]
)
def test_there_is_a_picture_of_anything(lines: list[Line]) -> None:
    picture, texts = drawn(lines, is_ratio=all(error <= 1.0 for line in lines for _, error in line.points))

    assert picture.tag == f"{SVG}svg"
    assert not any(word in " ".join(texts) for word in ("nan", "inf"))


class Recorded:
    """Takes every call of matplotlib's figure and axes."""

    def __init__(self, calls: list[tuple[str, Any, Any]]) -> None:
        self.calls = calls

    def __getattr__(self, name: str) -> Any:
        if name in ("yaxis",):
            return self

        def called(*args: Any, **kwargs: Any) -> Any:
            self.calls.append((name, args, kwargs))
            if name == "savefig":
                args[0].write(b"\x89PNG")
            return self

        return called


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any, Any]]:
    """What is asked of a matplotlib that stands in for the real one."""
    calls: list[tuple[str, Any, Any]] = []
    package, figure = ModuleType("matplotlib"), ModuleType("matplotlib.figure")
    figure.Figure = lambda **_: Recorded(calls)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "matplotlib", package)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", figure)
    return calls


def test_a_png_has_the_same_curves(calls: list[tuple[str, Any, Any]]) -> None:
    data = chart.png(Chart("file.csv", "error", True, [*LINES, Line("none", [], False)]))

    assert data == b"\x89PNG"
    plotted = [(args, kwargs["label"]) for name, args, kwargs in calls if name == "plot"]
    assert plotted == [
        (((10, 500, 1000), (0.4, 0.2, 0.1)), "arow  10%"),
        (((10, 500, 1000), (0.5, 0.5, 0.5)), "majority  50%"),
        (((), ()), "none"),
    ]
    shown = next(args[0] for name, args, _ in calls if name == "set_major_formatter")
    assert shown(0.25, 0) == "25%"


def test_without_matplotlib_a_png_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)

    with pytest.raises(ConfigError, match=r'pip install "olstream\[plot\]"'):
        chart.check_png()
