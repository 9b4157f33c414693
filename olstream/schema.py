"""The configuration as JSON Schema: what a file may say, which also is `${NAME}` in place of any value."""

from __future__ import annotations

from typing import Any, Final

from olstream.config import Config
from olstream.values import seconds_text

_FROM_ENVIRONMENT: Final = {"$ref": "#/$defs/FromEnvironment"}
# pydantic leaves the bounds of values that it converts first under its own names.
_BOUNDS: Final = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
_DURATION: Final = {"type": "string", "pattern": r"^(\s*[0-9]+(\.[0-9]+)?\s*(ms|s|m|h|d))+\s*$|\$\{"}


def json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of the configuration file."""
    schema = Config.model_json_schema(by_alias=True, mode="validation")
    sections = schema["$defs"]
    sections["OnDriftConfig"] = {
        "anyOf": [
            {"enum": ["none", "widen", "reset"]},
            {
                "type": "object",
                "properties": {"widen": sections["OnDriftConfig"]["properties"]["widen"]},
                "required": ["widen"],
                "additionalProperties": False,
            },
        ]
    }
    sections["TextConfig"] = {"anyOf": [sections["TextConfig"]["properties"]["tokens"], sections["TextConfig"]]}
    written: dict[str, Any] = _as_written(schema)
    written["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    written["$defs"]["FromEnvironment"] = {
        "type": "string",
        "pattern": r"\$\{(?!file:)[A-Za-z_][A-Za-z0-9_]*(:[^}]*)?\}",
        "description": "Taken from the environment. Texts may also come from a file: ${file:/path}.",
    }
    return written


def _as_written(node: Any) -> Any:
    """The schema of a value in the file: durations with their unit, `${NAME}`, a section with nothing under it."""
    if isinstance(node, list):
        return [_as_written(part) for part in node]
    if not isinstance(node, dict):
        return node
    if {"type": "string"} in node.get("anyOf", ()):
        return _without_title(node)
    inner = {_BOUNDS.get(key, key): _inside(key, value) for key, value in _without_title(node).items()}
    if node.get("type") == "string" and isinstance(node.get("default"), float):
        about = {key: inner[key] for key in ("description",) if key in inner}
        return {**_DURATION, "default": seconds_text(node["default"]), **about}
    if node.get("type") == "object" and node.get("additionalProperties") is False:
        return {**inner, "type": ["object", "null"]}
    if "enum" in node or node.get("type") in ("integer", "number", "boolean"):
        about = {key: inner.pop(key) for key in ("default", "description") if key in inner}
        return {"anyOf": [inner, _FROM_ENVIRONMENT], **about}
    return inner


def _inside(key: str, value: Any) -> Any:
    if key in ("properties", "$defs"):
        return {name: _as_written(part) for name, part in value.items()}
    return value if key in ("default", "enum", "required") else _as_written(value)


def _without_title(node: dict[str, Any]) -> dict[str, Any]:
    """pydantic's titles are the keys once more."""
    return {key: value for key, value in node.items() if key != "title"}
