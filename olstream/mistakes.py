"""Turns what pydantic found wrong into sentences: the key, what is wrong with it, the nearest known key."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from olstream.configfile import File, Path, dotted
from olstream.errors import ConfigError

# In place of a path: the sentence itself begins with the key, under the section it was raised in.
JOINED: Final = "."
_SHOWN_MAX: Final = 5


def wrong(what: str, *path: str | int) -> PydanticCustomError:
    """What a validator raises: the sentence, and the path to the key below the section that it checks."""
    return PydanticCustomError("wrong", "{what}", {"what": what, "path": path})


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean NAME?`, or nothing where no known name is near."""
    close = difflib.get_close_matches(name, list(known), 1, 0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def config_error(error: ValidationError, root: type[BaseModel], file: File) -> ConfigError:
    """One sentence for one mistake, and a short list for several."""
    found = [_explained(details, root) for details in error.errors()]
    if len(found) == 1:
        path, sentence = found[0]
        return ConfigError(f"{file.where(path)}: {sentence}")
    lines = [f"{file.where(path)}: {sentence}" for path, sentence in found[:_SHOWN_MAX]]
    more = [f"and {len(found) - _SHOWN_MAX} more"] if len(found) > _SHOWN_MAX else []
    return ConfigError("\n  ".join([f"{file.name} has {len(found)} mistakes:", *lines, *more]))


def _explained(details: ErrorDetails, root: type[BaseModel]) -> tuple[Path, str]:
    path = tuple(part for part in details["loc"] if part != "[key]")
    context: dict[str, Any] = details.get("ctx", {})
    if details["type"] == "wrong":
        if context["path"] == (JOINED,):
            return path, f"{dotted(path)}.{context['what']}" if path else str(context["what"])
        path = (*path, *context["path"])
        return path, f"{dotted(path)}: {context['what']}" if path else str(context["what"])
    if details["type"] in ("extra_forbidden", "invalid_key"):
        return path, f"{dotted(path)}: {_unknown(path, root)}"
    return path, f"{dotted(path)}: {_refused(details, context)}"


def _unknown(path: Path, root: type[BaseModel]) -> str:
    """The key is not known: the nearest of its section, else its twin in another section."""
    name = str(path[-1])
    siblings = [key for key, _ in _keys(_section(path[:-1], root))]
    if close := nearest(name, siblings):
        return f"unknown key{close}"
    for key in _all_keys(root, ()):
        if key[-1] == name:
            return f"unknown key here; did you mean {dotted(key)!r}?"
    return f"unknown key; the keys here are {', '.join(siblings)}"


def _keys(section: type[BaseModel]) -> Iterator[tuple[str, Any]]:
    """The keys of a section as the file writes them, each with its type."""
    for name, info in section.model_fields.items():
        yield str(info.validation_alias or name), info.annotation


def _all_keys(section: type[BaseModel], above: Path) -> Iterator[Path]:
    for key, kind in _keys(section):
        yield (*above, key)
        inner = _model_in(kind)
        if inner is not None:
            yield from _all_keys(inner, (*above, key, "*") if inner is not kind else (*above, key))


def _section(path: Path, root: type[BaseModel]) -> type[BaseModel]:
    """The section that a path leads to; names of learners and numbers in lists are passed over."""
    section = root
    for part in path:
        for key, kind in _keys(section):
            if key == part and (inner := _model_in(kind)) is not None:
                section = inner
                break
    return section


def _model_in(kind: Any) -> type[BaseModel] | None:
    """The section that a type holds: itself, or the last one inside Optional, list or dict."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind
    for inner in get_args(kind):
        if (model := _model_in(inner)) is not None:
            return model
    return None


_KINDS: Final[dict[str, str]] = {
    "string_type": "must be text; put it in quotes",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "list_type": "must be a list, such as [a, b]",
    "dict_type": "must be a mapping of keys to values",
    "model_type": "must be a mapping of keys to values",
    "path_type": "must be the name of a directory",
    "missing": "is missing, and it has no default",
    "too_short": "must not be empty",
}
_BOUNDS: Final[dict[str, tuple[str, str]]] = {
    "greater_than": ("above", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("below", "lt"),
    "less_than_equal": ("at most", "le"),
}


def _refused(details: ErrorDetails, context: dict[str, Any]) -> str:
    kind, value = details["type"], details["input"]
    if kind == "literal_error":
        options = [option.strip("'") for option in str(context["expected"]).replace(" or ", ", ").split(", ")]
        return f"must be one of {', '.join(options)}, not {value!r}{_near_option(value, options)}"
    if kind in _BOUNDS:
        word, bound = _BOUNDS[kind]
        return f"must be {word} {context[bound]:g}, not {value!r}"
    if kind in _KINDS:
        shown = f", not {value!r}" if isinstance(value, str | int | float) and kind != "string_type" else ""
        return _KINDS[kind] + shown
    message = details["msg"]
    return f"{message[:1].lower()}{message[1:]}"


def _near_option(value: object, options: Sequence[str]) -> str:
    return nearest(value, options) if isinstance(value, str) else ""
