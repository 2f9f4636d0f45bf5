"""values.schema.json: every value of the chart, closed, with the configuration's own schema inside."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from predictor.chart.values import Value

CONFIG = "config"  # `@schema {$ref: config}`: the value is the configuration
TYPES: Mapping[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
# What a chart above this one may set besides: values for all charts, and the condition under which it is used at all.
FROM_ABOVE = {"global": {"type": "object"}, "enabled": {"type": "boolean"}}


def text(values: Iterable[Value], config: Mapping[str, Any]) -> str:
    """The file.

    Args:
        values: what values.yaml says.
        config: JSON schema of the configuration; its references point into `$defs` at the top, where they stay.
    """
    inner = {name: part for name, part in config.items() if name != "$defs"}
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **_closed(values, inner),
        "$defs": config["$defs"],
    }
    schema["properties"] |= FROM_ABOVE
    return json.dumps(_without_defaults(schema), indent=2) + "\n"


def _closed(values: Iterable[Value], config: Mapping[str, Any]) -> dict[str, Any]:
    properties = {value.path[-1]: _one(value, config) for value in values}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _one(value: Value, config: Mapping[str, Any]) -> dict[str, Any]:
    if value.schema.get("$ref") == CONFIG:
        return {**config, "description": value.text}
    words = {"description": value.text} if value.text else {}
    if value.inner is not None:
        return {**_closed(value.inner, config), **words}
    return {"type": TYPES.get(type(value.default), "null"), **value.schema, **words}


def _without_defaults(schema: Any) -> Any:  # noqa: ANN401  (JSON)
    """The same without the defaults, which only the configuration's part has and which nothing reads here."""
    if isinstance(schema, dict):
        named = schema.get("properties") if isinstance(schema.get("properties"), dict) else {}
        kept = {name: part for name, part in schema.items() if name != "default"}
        kept = {name: _without_defaults(part) for name, part in kept.items() if name != "properties"}
        if named:
            kept["properties"] = {name: _without_defaults(part) for name, part in named.items()}
        return kept
    return [_without_defaults(one) for one in schema] if isinstance(schema, list) else schema
