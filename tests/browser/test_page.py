"""The status page in a real browser: it draws, it complains of nothing, it renews itself, and it needs no script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from olstream.page import service, shell
from olstream.page.html import element
from tests.browser.chromium import DARK, Chromium, background
from tests.browser.conftest import Serve
from tests.page import documents
from tests.page.markup import Element, read
from tests.page.test_service import HOSTILE

LIGHT_PAGE, DARK_PAGE = (0xF6, 0xF6, 0xF4), (0x12, 0x14, 0x17)
TWICE_S = 2.5 * shell.REFRESH_S  # in which it has renewed itself twice

WIDTHS = (320, 390, 768)  # pixels: two phones, and one lying
# Measures the page in frames as wide as these, and tells in its title how much wider it would have to be.
MEASURED = """<!doctype html><title>-</title>{frames}<script>
const frames = [...document.querySelectorAll("iframe")], widths = [];
frames.forEach((frame) => {{ frame.onload = () => {{
  const root = frame.contentDocument.documentElement;
  widths.push(root.scrollWidth - root.clientWidth + " in " + frame.width);
  if (widths.length === frames.length) document.title = widths.join(", ");
}}; }});
</script>"""


POINTED = """<script>
const chart = document.querySelector(".chart"), area = chart.getBoundingClientRect();
const there = { bubbles: true, clientX: area.left + 0.75 * area.width, clientY: area.top + 50 };
chart.dispatchEvent(new PointerEvent("pointermove", there));
</script>"""


def hostile() -> dict[str, Any]:
    """A learner for each hostile text, which is also its classes' and its topic's name."""
    named = {text.replace("\ud800", ""): documents.learner(confusion=None) for text in HOSTILE}
    topics = {text.replace("\ud800", ""): documents.topic(2) for text in HOSTILE}
    return documents.document(named, topics=topics, group=HOSTILE[0], config={"routes": HOSTILE[:5]})


DOCUMENTS = {
    "shadows": documents.shadowed,
    "empty": documents.empty,
    "many": documents.crowd,
    "hostile": hostile,
}


def rows_seen(root: Element) -> str:
    return root.all("table")[0].cells()[1][1]


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize(("scheme", "flags", "ground"), [("light", (), LIGHT_PAGE), ("dark", (DARK,), DARK_PAGE)])
def test_it_is_light_or_dark_as_the_reader_prefers(
    name: str,
    scheme: str,
    flags: tuple[str, ...],
    ground: tuple[int, ...],
    chromium: Chromium,
    serve_documents: Serve,
    pictures: Path,
) -> None:
    url = serve_documents(DOCUMENTS[name])

    png = chromium.screenshot(url, pictures / f"{name}-{scheme}.png", 1280, 2400, *flags)

    assert background(png) == ground


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_browser_has_nothing_to_complain_of(name: str, chromium: Chromium, serve_documents: Serve) -> None:
    seen = chromium.look(serve_documents(DOCUMENTS[name]), TWICE_S)

    assert seen.complaints == []
    assert seen.title.endswith("olstream")
    assert not read(seen.dom).all("img")


def test_a_script_that_is_not_ours_does_not_run(
    chromium: Chromium, serve_documents: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    def smuggled(document: dict[str, Any]) -> shell.Page:
        made = shell.live("as it was", service.main(document, element("p")))
        script = "<script>document.title = 'taken over'</script><p style='color: red' onclick='x()'>"
        return shell.Page(made.html.replace("</body>", f"{script}</body>"), made.policy)

    monkeypatch.setattr(service, "page", smuggled)

    seen = chromium.look(serve_documents(documents.document))

    assert seen.title == "as it was"
    assert len([told for told in seen.complaints if "Content Security Policy" in told]) >= 2


def test_it_renews_itself(chromium: Chromium, serve_documents: Serve) -> None:
    asked: list[int] = []

    def growing() -> dict[str, Any]:
        asked.append(1)
        return documents.document({"fraud": documents.learner(seen=1000 * len(asked))})

    seen = chromium.look(serve_documents(growing), TWICE_S)

    assert len(asked) >= 3
    assert int(rows_seen(read(seen.dom)).replace(",", "")) >= 3000


def test_the_pointer_reads_the_curves(
    chromium: Chromium, serve_documents: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = {"every": 100, "labelled": [0, 100, 200], "error": [0.5, 0.125], "majority": [0.5, 0.25]}
    learner = documents.learner(history={"recent": half, "life": {}}, marks=[])
    html = service.page(documents.document({"<b>": learner})).html.replace("</body>", f"{POINTED}</body>")
    monkeypatch.setattr(service, "page", lambda _document: shell.Page(html, ""))

    seen = chromium.look(serve_documents(documents.empty))

    (box,) = (each for each in read(seen.dom).all("div") if each.attributes.get("id") == "reading")
    assert [line.text for line in box.children] == ["row 150", "<b> 12.5%", "majority 25.0%"]
    assert "hidden" not in box.attributes


def test_what_was_unfolded_stays_so_when_it_renews_itself(chromium: Chromium, serve_documents: Serve) -> None:
    many = {f"l{i}": documents.learner(i) for i in range(9)}

    seen = chromium.look(f"{serve_documents(lambda: documents.document(many))}/#learner-4", TWICE_S)

    folds = {
        each.attributes["id"]: "open" in each.attributes
        for each in read(seen.dom).all("details")
        if "id" in each.attributes
    }
    assert folds["card-4"] and not folds["card-3"] and not folds["config"]


def test_it_says_when_the_service_no_longer_answers(chromium: Chromium, serve_documents: Serve) -> None:
    asked: list[int] = []

    def failing() -> dict[str, Any]:
        asked.append(1)
        assert len(asked) == 1, "the service is gone"
        return documents.document()

    seen = chromium.look(serve_documents(failing), TWICE_S)

    root = read(seen.dom)
    lost = next(each for each in root.all("p") if each.attributes.get("id") == "lost")
    assert "No answer from the service since" in lost.text and "hidden" not in lost.attributes
    assert root.all("main")[0].attributes["class"] == "stale" and rows_seen(root) == "121,904"


def test_without_scripts_the_first_look_is_the_same(
    chromium: Chromium, serve_documents: Serve, pictures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the pixel. A browser that has little time may draw an edge otherwise, so each has a few looks."""
    made = service.page(documents.shadowed())
    url = serve_documents(documents.shadowed)
    looks: dict[str, set[bytes]] = {"with-script": set(), "without-script": set()}

    for _ in range(4):
        for name, policy in (("with-script", made.policy), ("without-script", f"{made.policy}; sandbox")):
            monkeypatch.setattr(service, "page", lambda _document, policy=policy: shell.Page(made.html, policy))
            looks[name].add(chromium.screenshot(url, pictures / f"{name}.png", 1280, 900))
        if looks["with-script"] & looks["without-script"]:
            return

    pytest.fail("the page looks otherwise without scripts")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_on_a_phone_nothing_is_wider_than_the_screen(
    name: str, chromium: Chromium, serve_documents: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = "".join(f'<iframe width="{width}" height="900" src="?inside"></iframe>' for width in WIDTHS)
    made = service.page(DOCUMENTS[name]())
    pages = [shell.Page(MEASURED.format(frames=frames), ""), *[shell.Page(made.html, "")] * len(WIDTHS)]
    monkeypatch.setattr(service, "page", lambda _document: pages.pop(0))

    seen = chromium.look(serve_documents(documents.empty))

    assert sorted(seen.title.split(", ")) == sorted(f"0 in {width}" for width in WIDTHS)
