"""Elements as text. What is not markup already is escaped, so no name can become an element."""

from __future__ import annotations

import html
import re
from typing import Final, TypeAlias

_VOID: Final = {"meta", "link", "br"}
# What HTML has no place for, half characters of JSON among them.
_NO_CHARACTER: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff￾￿]")
_LONGEST: Final = 120  # characters of one name


class Html(str):
    """Text that is markup already."""


Child: TypeAlias = str | None
Attribute: TypeAlias = str | float | bool | None


def element(tag: str, *children: Child, **attributes: Attribute) -> Html:
    """One element with what is in it. `class_`, `aria_label` are written `class`, `aria-label`; None is left out."""
    told = "".join(_attribute(name, value) for name, value in attributes.items())
    if tag in _VOID:
        return Html(f"<{tag}{told}>")
    return Html(f"<{tag}{told}>{joined(*children)}</{tag}>")


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escaped(str(value))}"'


def joined(*children: Child) -> Html:
    return Html("".join(child if isinstance(child, Html) else escaped(child) for child in children if child))


def escaped(text: str) -> Html:
    return Html(html.escape(_NO_CHARACTER.sub("�", text)))


def name(text: str) -> Html:
    """A name that others chose: cut where it is very long, and its direction of writing is its own."""
    return element("bdi", text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")
