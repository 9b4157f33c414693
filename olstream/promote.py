"""A configuration in which a shadow has become the champion: the same text, but for the names in its routes.

The two names change places as they are written, so that quotes, anchors and references to the environment go along,
and comments and order stay. Where a route is written so that this would change more, or less, it is refused: what
comes out is read again, and must say what it is to say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import yaml

from olstream import configfile
from olstream.config import Config, RouteConfig, parse
from olstream.errors import ConfigError
from olstream.mistakes import nearest

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class Promotion:
    """The new text, and what it changes, a sentence for each route."""

    text: str
    changes: Sequence[str]


def promoted(text: str, name: str, shadow: str, environ: Mapping[str, str]) -> Promotion:
    """`shadow` as champion of every route that has it as a shadow. `name`: of the file, for errors.

    ConfigError where the file is wrong, no route has that shadow, or one cannot be edited by itself.
    """
    before = parse(text, name, environ)
    wanted = {i: _swapped(before, i, shadow) for i in _routes_of(before, shadow)}
    routes = [wanted.get(i, route) for i, route in enumerate(before.routes)]
    after = _edited(text, before, wanted, shadow)
    if after is None or _meaning(after, name, environ) != _all_of(before.model_copy(update={"routes": routes})):
        places = ", ".join(f"routes.{i}" for i in wanted)
        raise ConfigError(
            f"{name}: {places} cannot be edited alone, for what is said there stands elsewhere too (an anchor, or <<): "
            "write `learner` and `shadows` out, then promote again"
        )
    return Promotion(after, [_told(before, i, shadow) for i in wanted])


def _edited(text: str, before: Config, wanted: Mapping[int, RouteConfig], shadow: str) -> str | None:
    file = _Text(text)
    try:
        for i, now in wanted.items():
            route = before.routes[i]
            file.promote(i, route, shadow, now, _champion(before, route))
    except _Shared:
        return None
    return file.edited()


def _routes_of(config: Config, shadow: str) -> list[int]:
    if shadow not in config.learners:
        raise ConfigError(f"there is no learner {shadow!r}{nearest(shadow, config.learners)}")
    if not config.routes:
        raise ConfigError("there are no routes, so no learner is a shadow: `routes.N.shadows` names those of a route")
    found = [
        i for i, route in enumerate(config.routes) if shadow in route.shadows and _champion(config, route) != shadow
    ]
    if not found:
        shadows = list(dict.fromkeys(name for route in config.routes for name in route.shadows))
        there = f"there are {', '.join(shadows)}" if shadows else "there are none"
        raise ConfigError(f"{shadow} is the shadow of no other learner in any route; {there}")
    return found


def _champion(config: Config, route: RouteConfig) -> str:
    """Who predicts there: the route's own learner, else the one that its records name, else the default."""
    return route.learner or next(iter(_asked(route)), next(iter(config.learners)))


def _asked(route: RouteConfig) -> list[str]:
    return [str(name) for name in route.when.get("learner", [])]


def _swapped(config: Config, i: int, shadow: str) -> RouteConfig:
    route, old = config.routes[i], _champion(config, config.routes[i])
    if route.learner is None and len(_asked(route)) > 1:
        raise ConfigError(f"routes.{i} has one champion for each of {', '.join(_asked(route))}: make a route for each")
    if old in route.shadows:
        raise ConfigError(
            f"routes.{i} names no learner, and {old}, which predicts there, is among its shadows: write "
            f"`learner: {old}` there and take it out of `shadows`, then promote again"
        )
    shadows = [old if each == shadow else each for each in route.shadows]
    return RouteConfig(when=route.when, learner=shadow, shadows=shadows)


def _told(config: Config, i: int, shadow: str) -> str:
    route, old = config.routes[i], _champion(config, config.routes[i])
    when = ", ".join(f"{key} {' or '.join(map(str, values))}" for key, values in route.when.items()) or "every record"
    said = f"routes.{i} ({when}): {shadow} predicts now, {old} becomes its shadow"
    return (
        said if route.learner or _asked(route) else f"{said}; a learner that a message names is no longer asked there"
    )


def _meaning(text: str, name: str, environ: Mapping[str, str]) -> dict[str, Any] | None:
    """What the text says; None where it says nothing that can be read."""
    try:
        return _all_of(parse(text, name, environ))
    except ConfigError:
        return None


def _all_of(config: Config) -> dict[str, Any]:
    return config.model_dump(mode="json")


Span: TypeAlias = tuple[int, int]  # of the text, half-open


class _Shared(Exception):
    """What is to change is not written in its own place."""


class _Loader(yaml.SafeLoader):
    """Notes where each value stands: an alias at its own place, not at that of its anchor."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.spans: dict[tuple[int, object], Span] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        node = super().compose_node(parent, index)
        if node is not None:
            written: Any = event if isinstance(event, yaml.AliasEvent) else node
            self.spans[id(parent), index] = written.start_mark.index, written.end_mark.index
        return node


class _Text:
    """The text of the file, and the changes to it that are gathered."""

    def __init__(self, text: str) -> None:
        self.text = text
        loader = _Loader(text)
        self._root = loader.get_single_node()
        self._spans = loader.spans
        self._changes: dict[Span, str] = {}

    def promote(self, i: int, route: RouteConfig, shadow: str, now: RouteConfig, old: str) -> None:
        """Route i of the file says `route`, and is to say `now`: `shadow` in the place of `old`."""
        routes = _own(self._root, "routes")
        if routes is None or not isinstance(routes[1], yaml.SequenceNode):
            raise _Shared
        mapping = routes[1].value[i]
        of_champion, of_shadows = _own(mapping, "learner"), _own(mapping, "shadows")
        is_written = of_champion is not None and route.learner is not None
        from_champion = self._of(mapping, of_champion[0]) if of_champion and is_written else _quoted(old)
        from_shadow = _quoted(shadow)
        lines = []
        if of_shadows is None:
            lines.append(f"shadows: [{', '.join(map(_quoted, now.shadows))}]")
        else:
            shadows, j = of_shadows[1], route.shadows.index(shadow)
            from_shadow = self._of(shadows, j)
            self._replace(shadows, j, _in(from_champion, shadows.flow_style or mapping.flow_style))
        from_shadow = _in(from_shadow, mapping.flow_style)
        if of_champion is None:
            lines.insert(0, f"learner: {from_shadow}")
        else:
            self._replace(mapping, of_champion[0], from_shadow)
        if lines:
            self._insert(mapping, of_shadows, lines)

    def edited(self) -> str:
        text = self.text
        for (start, end), new in sorted(self._changes.items(), reverse=True):
            text = text[:start] + new + text[end:]
        return text

    def _of(self, parent: yaml.Node, index: object) -> str:
        start, end = self._spans[id(parent), index]
        return self.text[start:end]

    def _replace(self, parent: yaml.Node, index: object, new: str) -> None:
        start, end = self._spans[id(parent), index]
        self._change((start, end), new if start < end else f" {new}")  # after the colon stood nothing

    def _insert(self, mapping: Any, before: tuple[Any, Any] | None, lines: list[str]) -> None:
        """New keys, in front of that one or of the first."""
        mark = (before or mapping.value[0])[0].start_mark
        newline = "\r\n" if "\r\n" in self.text else "\n"
        apart = ", " if mapping.flow_style else newline + " " * mark.column
        self._change((mark.index, mark.index), "".join(line + apart for line in lines))

    def _change(self, span: Span, new: str) -> None:
        if self._changes.setdefault(span, new) != new:
            raise _Shared


def _own(mapping: Any, key: str) -> tuple[Any, Any] | None:
    """A key of its own and its value, not those that << brings in."""
    pairs = mapping.value if isinstance(mapping, yaml.MappingNode) else ()
    return next(((name, value) for name, value in pairs if name.value == key), None)


def _quoted(name: str) -> str:
    """A learner's name as the file can have it: without quotes where it is text by itself."""
    return name if _PLAIN.fullmatch(name) and configfile.scalar(name) == name else f'"{name}"'


def _in(text: str, is_flow: bool) -> str:
    """The same where it will stand: inside { } and [ ] a reference needs quotes."""
    return f'"{text}"' if is_flow and text.startswith("${") else text
