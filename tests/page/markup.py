"""A page read as a browser reads it: which elements there are, what they say, and whether they are closed in order."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "br"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str | None]
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def all(self, tag: str) -> list[Element]:
        own = [self] if self.tag == tag else []
        return own + [found for child in self.children for found in child.all(tag)]

    def of(self, class_: str) -> list[Element]:
        own = [self] if class_ in (self.attributes.get("class") or "").split() else []
        return own + [found for child in self.children for found in child.of(class_)]

    def cells(self) -> list[list[str]]:
        """Of a table: the texts of each row."""
        return [[cell.text for cell in row.children] for row in self.all("tr")]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"<{tag}> has an attribute twice"
        element = Element(tag, dict(attrs))
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> ends <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data


def read(html: str) -> Element:
    """The tree; AssertionError where an element is not closed, or another is closed for it."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == [reader.root], f"<{reader.open[-1].tag}> is not closed"
    return reader.root


def elements(root: Element) -> list[Element]:
    return [root, *(found for child in root.children for found in elements(child))]


def check(html: str) -> Element:
    """What holds for every page of ours."""
    root = read(html)
    everything = elements(root)
    ids = Counter(each.attributes["id"] for each in everything if "id" in each.attributes)
    assert [id_ for id_, n in ids.items() if n > 1] == []
    assert all("id" in fold.attributes for fold in root.all("details")), "it would not stay unfolded"
    for each in everything:
        assert not [name for name in each.attributes if name.startswith("on") or name in ("style", "src", "srcset")], (
            each
        )
        for name in ("href", "xlink:href", "action"):
            target = each.attributes.get(name)
            assert target is None or re.fullmatch(r"#[\w-]+|data:,|metrics|status\.json|live|ready", target), target
            assert target is None or target[0] != "#" or target[1:] in ids, f"{target} leads nowhere"
    drawn = " ".join(value or "" for each in everything for value in each.attributes.values())
    assert not re.search(r"\b(nan|inf|None)\b", f"{drawn} {root.all('main')[0].text}")
    assert "url(" not in html and "@import" not in html
    for table in root.all("table"):
        assert len({len(row) for row in table.cells()}) == 1
        assert all(head.attributes.get("scope") in ("col", "row") for head in table.all("th"))
    assert all(
        picture.attributes.get("aria-label") for picture in everything if picture.attributes.get("role") == "img"
    )
    return root
