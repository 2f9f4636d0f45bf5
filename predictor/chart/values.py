"""Reading values.yaml with its comments: `# -- ` begins what a value is for, `# @schema {...}` bounds it.

The comments are those of helm-docs, so that other tools read the file too.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

START = "-- "
SCHEMA = "@schema "


class ValuesError(Exception):
    """A value that does not say what it is."""


@dataclasses.dataclass(frozen=True, slots=True)
class Value:
    """One value a user can set, or a section of values.

    Attributes:
        path: its names from the top.
        default: what stands in the file.
        text: what it is for; empty for a section that needs no words.
        schema: bounds, in JSON schema's words.
        inner: the values of a section; None for a value that is set as a whole.
    """

    path: tuple[str, ...]
    default: Any
    text: str
    schema: Mapping[str, Any]
    inner: "tuple[Value, ...] | None" = None

    @property
    def name(self) -> str:
        """With dots, as `helm --set` takes it."""
        return ".".join(self.path)

    def leaves(self) -> "Iterator[Value]":
        """This value, or those inside it."""
        if self.inner is None:
            yield self
        else:
            for one in self.inner:
                yield from one.leaves()


def read(text: str) -> tuple[Value, ...]:
    """The values of a file, in its order.

    Raises:
        ValuesError: a value without a comment, or a default that does not say its type.
    """
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    return _section(root, text.splitlines(), ())


def _section(node: yaml.Node | None, lines: Sequence[str], path: tuple[str, ...]) -> tuple[Value, ...]:
    if not isinstance(node, yaml.MappingNode):
        raise ValuesError(f"{'.'.join(path) or 'the file'} is no mapping")
    return tuple(_value(key, inner, lines, (*path, key.value)) for key, inner in node.value)


def _value(key: yaml.Node, node: yaml.Node, lines: Sequence[str], path: tuple[str, ...]) -> Value:
    documented, text, schema = _comment(lines, key.start_mark.line)
    default = yaml.safe_load(yaml.serialize(node))
    if isinstance(node, yaml.MappingNode) and node.value and not documented:
        return Value(path, default, text, schema, inner=_section(node, lines, path))
    if not documented:
        raise ValuesError(f"{'.'.join(path)}: no comment that begins with `# {START}`")
    if isinstance(default, list) and "items" not in schema:
        raise ValuesError(f"{'.'.join(path)}: what is in the list? say `# {SCHEMA}{{items: ...}}`")
    if default is None and "type" not in schema:
        raise ValuesError(f"{'.'.join(path)}: null says no type; say `# {SCHEMA}{{type: ...}}`")
    return Value(path, default, text, schema)


def _comment(lines: Sequence[str], number: int) -> tuple[bool, str, Mapping[str, Any]]:
    """Whether the lines right above a key document it; their words and their schema."""
    first = number
    while first > 0 and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    words: list[str] = []
    schema: dict[str, Any] = {}
    documented = False
    for line in (line.strip().removeprefix("#").strip() for line in lines[first:number]):
        if line.startswith(SCHEMA):
            schema |= yaml.safe_load(line.removeprefix(SCHEMA))
        else:
            documented = documented or line.startswith(START)
            words.append(line.removeprefix(START))
    return documented, " ".join(words), schema
