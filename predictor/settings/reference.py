"""The files generated from the keys: config/floorcast.yaml, config/schema.json, docs/configuration.md."""

import json
import textwrap
from collections.abc import Iterator
from typing import Any

import pydantic
from pydantic.fields import FieldInfo

from predictor.settings import fields
from predictor.settings.root import PREFIX, Settings
from predictor.settings.section import REMEDY
from predictor.settings.workloads import Defaults, TargetSettings

WIDTH = 118
HEADER = """\
# Every key of Floorcast with its default. Loading this file unchanged is the same as loading an empty one.
# Durations are written like 30s, 5m, 1h30m, 14d or as a number of seconds. An unknown key is an error.
# Environment variables outweigh this file (FLOORCAST__LOOPS__FAST=5s sets loops.fast), flags outweigh both.
# Made by `floorcast config reference`; do not edit the one in the repository.
"""


def yaml_file() -> str:
    """The commented reference of every key with its default."""
    return f"{HEADER}\n{chr(10).join(_section(Settings, indent=0)).rstrip()}\n"


def json_schema() -> str:
    """The JSON schema of the file, for editors."""
    return json.dumps(_plain(Settings.model_json_schema()), indent=2) + "\n"


def document() -> str:
    """docs/configuration.md."""
    rows = "\n".join(_rows(Settings, prefix=""))
    return f"""# Configuration

Made from `predictor/settings/` by `python -m predictor.generate`; do not edit.

One YAML file, named by `--config`, else by `$FLOORCAST_CONFIG`, else `config/floorcast.yaml`, else
`/etc/floorcast/floorcast.yaml`. Environment variables outweigh it: `{PREFIX}` and the key in capitals with two
underscores for each dot, as `{PREFIX}LOOPS__FAST=5s` for `loops.fast`; lists are JSON. Flags outweigh both.

Anything unknown or out of bounds is refused with exit code 2 and one line for each problem: the key, the value, the
bound and the remedy. `floorcast config validate` does only that; `floorcast config reference` prints the commented
file to start from (it is `config/floorcast.yaml`), and `floorcast config schema` the JSON schema for editors.

Durations are written `30s`, `5m`, `1h30m`, `14d`, or as a number of seconds.

| key | default | bounds | meaning |
|---|---|---|---|
{rows}
"""


def _section(model: type[pydantic.BaseModel], *, indent: int) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield from _comment(_explained(field), indent=indent)
        inner = fields.section_of(field)
        shown = f"{' ' * indent}{field.alias or name}:"
        if inner is TargetSettings:
            yield f"{shown} []"
            yield from _example(indent=indent)
        elif inner is not None and field.default == ():
            yield f"{shown} []"
        elif inner is not None:
            yield shown
            yield from _section(inner, indent=indent + 2)
        else:
            yield f"{shown} {fields.written(field.default, field)}"
        if indent == 0:
            yield ""


def _explained(field: FieldInfo) -> str:
    bounds = _bounds(field)
    return f"{field.description}{f' Bounds: {bounds}.' if bounds else ''}"


def _example(*, indent: int) -> Iterator[str]:
    """A target as an example, commented out; its own keys with what they mean."""
    yield from _comment("For example, in place of the []:", indent=indent)
    values = {"namespace": "llm", "name": "chat", "model": "meta-llama/Llama-3.1-8B-Instruct"}
    pad = " " * indent
    for number, (name, field) in enumerate(_own(TargetSettings)):
        yield from _comment(_explained(field), indent=indent, deeper=0 if number == 0 else 2, example=True)
        default = "" if field.is_required() else fields.written(field.default, field)
        yield f"{pad}# {'- ' if number == 0 else '  '}{name}: {values.get(name, default)}"
    yield f"{pad}#   capacity:"
    yield f"{pad}#     concurrency: 32"


def _own(model: type[Defaults]) -> Iterator[tuple[str, FieldInfo]]:
    return ((name, field) for name, field in model.model_fields.items() if name not in Defaults.model_fields)


def _comment(text: str, *, indent: int, deeper: int = 0, example: bool = False) -> Iterator[str]:
    start = f"{' ' * indent}# {' ' * deeper}{'# ' if example else ''}"
    yield from textwrap.wrap(text, WIDTH, initial_indent=start, subsequent_indent=start, break_on_hyphens=False)


def _rows(model: type[pydantic.BaseModel], *, prefix: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        place = f"{prefix}{field.alias or name}"
        inner = fields.section_of(field)
        if inner is TargetSettings:
            yield f"| `{place}` | `[]` | - | {field.description} |"
            for own, one in _own(TargetSettings):
                yield _row(f"{place}[].{own}", one)
                listed = fields.section_of(one)
                yield from _rows(listed, prefix=f"{place}[].{own}[].") if listed else ()
        elif inner is not None and field.default == ():
            yield f"| `{place}` | `[]` | - | {field.description} |"
            yield from _rows(inner, prefix=f"{place}[].")
        elif inner is not None:
            yield f"| **`{place}`** | | | {field.description} |"
            yield from _rows(inner, prefix=f"{place}.")
        else:
            yield _row(place, field)


def _row(place: str, field: FieldInfo) -> str:
    default = "required" if field.is_required() else f"`{fields.written(field.default, field)}`"
    return f"| `{place}` | {default} | {_bounds(field) or '-'} | {field.description} |"


def _bounds(field: FieldInfo) -> str:
    """The bounds in words: "above 0s, at most 1h", "1 to 65535"."""
    limits = {name: fields.written(value, field) for name, value in fields.limits(field).items()}
    if "ge" in limits and "le" in limits:
        return f"{limits['ge']} to {limits['le']}"
    words = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
    return ", ".join(f"{word} {limits[name]}" for name, word in words.items() if name in limits)


def _plain(schema: Any) -> Any:  # noqa: ANN401  (JSON)
    """The schema without our own notes."""
    if isinstance(schema, dict):
        return {name: _plain(value) for name, value in schema.items() if name != REMEDY}
    return [_plain(one) for one in schema] if isinstance(schema, list) else schema
