"""Reads the configuration's text into plain mappings, lists and scalars, with line numbers for errors.

YAML as people expect it (the 1.2 core rules): `1e-3` is a number, `on` is text, only true and false are
booleans, a key stands once, `<<` brings in another mapping. Then `${NAME}` and `${NAME:default}` are replaced
from the environment in every value, and `${file:/path}` by what stands in that file, as text, less one newline at
its end; `$${` stands for a plain `${`. Keys are always text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import yaml

from olstream import hidden, properties
from olstream.errors import ConfigError

Scalar: TypeAlias = str | int | float | bool | None
Tree: TypeAlias = "dict[str, Tree] | list[Tree] | Scalar"
Path: TypeAlias = tuple[str | int, ...]

_TAG = "tag:yaml.org,2002:"
_PLAIN = _TAG + "plain"
_NULL = {"", "~", "null", "Null", "NULL"}
_TRUE = {"true", "True", "TRUE"}
_FALSE = {"false", "False", "FALSE"}
_INT = re.compile(r"[-+]?[0-9][0-9_]*|0x[0-9a-fA-F_]+|0o[0-7_]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_VARIABLE = re.compile(r"\$\$\{|\$\{(?:file:([^}]+)\}|([A-Za-z_][A-Za-z0-9_]*)(?::([^}]*))?\})?")
_OF_A_FILE = "${file:"
FILE_BYTES_MAX = 1024 * 1024  # of a file that a value is taken from: keys and certificates are far smaller
VALUES_MAX = 100_000  # an alias is the same value again, and of aliases of aliases there is no end


class _Loader(yaml.SafeLoader):
    """SafeLoader that leaves every plain scalar to `scalar` below: PyYAML's own rules are those of YAML 1.1."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode:
            return _PLAIN if implicit[0] else _TAG + "str"
        return str(super().resolve(kind, value, implicit))  # type: ignore[no-untyped-call]


@dataclass(slots=True)
class File:
    """What the file says, and on which line each key stands."""

    name: str
    tree: Tree = None
    lines: dict[Path, int] = field(default_factory=dict)

    def where(self, path: Path) -> str:
        """`config.yaml, line 7`, or the nearest line above that is known."""
        while path and path not in self.lines:
            path = path[:-1]
        line = self.lines.get(path)
        return f"{self.name}, line {line}" if line and path else self.name


def read(text: str, name: str, environ: Mapping[str, str]) -> File:
    """Parse the text of the file called `name`."""
    try:
        root = yaml.compose(text, Loader=_Loader)
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"{name}, {_sentence(error, text)}") from None
    file = File(name)
    if root is not None:
        file.tree = _Reader(file, environ).value(root, (), set())
        properties.remember_secrets(file.tree)  # before anything is said of them: a complaint may quote
    return file


def _sentence(error: Exception, text: str) -> str:
    """PyYAML's complaint on one line."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return f"is no YAML: {' '.join(str(error).split())}"
    line = error.problem_mark.line
    written = text.splitlines()[line] if line < len(text.splitlines()) else ""
    hint = "; inside { } and [ ] a ${NAME} needs quotes around it" if "${" in written else ""
    return f"line {line + 1}: {error.problem}{hint}"


def _is_merge(key: yaml.Node) -> bool:
    return isinstance(key, yaml.ScalarNode) and key.tag == _PLAIN and key.value == "<<"


def dotted(path: Path) -> str:
    return ".".join(str(part) for part in path)


def scalar(text: str) -> Scalar:
    """What a scalar without quotes means."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INT.fullmatch(text):
        return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _SPECIAL.fullmatch(text):
        return float(text.lower().replace(".", ""))
    return text


@dataclass(slots=True)
class _Reader:
    file: File
    environ: Mapping[str, str]
    values: int = 0

    def value(self, node: yaml.Node, path: Path, above: set[int]) -> Tree:
        self.values += 1
        if self.values > VALUES_MAX:
            raise self._error(node, (), f"there are more than {VALUES_MAX} values, those of aliases counted each time")
        if id(node) in above:
            raise self._error(node, path, "an alias must not contain itself")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, above | {id(node)})
        if isinstance(node, yaml.SequenceNode):
            self._tag(node, path, "seq")
            return [self._item(child, (*path, i), above | {id(node)}) for i, child in enumerate(node.value)]
        text = self._substitute(node.value, node, path)
        if node.tag == _PLAIN:  # of a file: a password may look like a number
            return text if _OF_A_FILE in node.value.replace("$${", "") else scalar(text)
        self._tag(node, path, "str")
        return text

    def _item(self, node: yaml.Node, path: Path, above: set[int]) -> Tree:
        self.file.lines[path] = node.start_mark.line + 1
        return self.value(node, path, above)

    def _mapping(self, node: yaml.MappingNode, path: Path, above: set[int]) -> Tree:
        self._tag(node, path, "map")
        tree = self._merged(node, path, above)
        said: set[str] = set()
        for key_node, child in node.value:
            if _is_merge(key_node):
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._error(
                    key_node, path, "a key must be a plain word; text with ${...} inside { } needs quotes"
                )
            inner = (*path, key_node.value)
            if key_node.value in said:
                first = self.file.lines[inner]
                raise self._error(key_node, inner, f"this key stands on line {first} already; keep one of them")
            said.add(key_node.value)
            self.file.lines[inner] = key_node.start_mark.line + 1
            tree[key_node.value] = self.value(child, inner, above)
        return tree

    def _merged(self, node: yaml.MappingNode, path: Path, above: set[int]) -> dict[str, Tree]:
        """What `<<: *defaults` brings in; of several mappings the first that has a key."""
        merges = [(key, child) for key, child in node.value if _is_merge(key)]
        if len(merges) > 1:
            raise self._error(merges[1][0], path, "<< stands here twice; give it a list, such as [*these, *those]")
        tree: dict[str, Tree] = {}
        for key, child in merges:
            for part in reversed(child.value) if isinstance(child, yaml.SequenceNode) else [child]:
                if not isinstance(part, yaml.MappingNode):
                    raise self._error(key, path, "<< takes a mapping, or a list of them, such as *defaults")
                merged = self.value(part, path, above)
                assert isinstance(merged, dict)
                tree |= merged
        return tree

    def _substitute(self, text: str, node: yaml.Node, path: Path) -> str:
        def replacement(match: re.Match[str]) -> str:
            if match[0] == "$${":
                return "${"
            named, name, default = match.groups()
            if named is not None:
                return self._from_file(named, node, path)
            if name is None:
                raise self._error(node, path, "write ${NAME}, ${NAME:default} or ${file:/path}, and $${ for a plain ${")
            value = self.environ.get(name, default)
            if hidden.NAMES.search(name):
                hidden.remember(value)
            if value is None:
                raise self._error(node, path, f"the environment variable {name} is not set and has no default here")
            return value

        return _VARIABLE.sub(replacement, text) if "${" in text else text

    def _from_file(self, named: str, node: yaml.Node, path: Path) -> str:
        """A secret as orchestrators mount it. Relative paths as those of `checkpoint.path`."""
        try:
            with open(named, "rb") as file:
                data = file.read(FILE_BYTES_MAX + 1)
            text = data.decode()
        except (OSError, ValueError) as error:
            why = "is no UTF-8 text" if isinstance(error, UnicodeDecodeError) else getattr(error, "strerror", None)
            raise self._error(node, path, f"the file {named} cannot be read: {why or error}") from None
        if len(data) > FILE_BYTES_MAX:
            raise self._error(node, path, f"the file {named} has more than {FILE_BYTES_MAX} bytes")
        text = text.removesuffix("\n").removesuffix("\r")
        hidden.remember(text)
        return text

    def _tag(self, node: yaml.Node, path: Path, kind: str) -> None:
        if node.tag != _TAG + kind:
            raise self._error(node, path, f"the tag {node.tag.replace(_TAG, '!!')} is not supported; leave it out")

    def _error(self, node: yaml.Node, path: Path, what: str) -> ConfigError:
        where = f"{self.file.name}, line {node.start_mark.line + 1}"
        return ConfigError(f"{where}: {dotted(path)}: {what}" if path else f"{where}: {what}")
