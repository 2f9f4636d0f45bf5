"""Durations as people write them: "30s", "5m", "1h30m", "14d", or a number of seconds."""

import math
import re
from typing import Annotated

import pydantic
from pydantic_core import PydanticCustomError

SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
PATTERN = r"^(\d+(\.\d+)?(ms|s|m|h|d|w))+$"
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_WRITTEN = tuple(sorted(((seconds, unit) for unit, seconds in SECONDS.items() if unit != "ms"), reverse=True))


def parse(value: object) -> float:
    """Seconds; a pydantic error for anything that is no duration."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    text = value.strip() if isinstance(value, str) else ""
    if re.fullmatch(PATTERN, text):
        return sum(float(number) * SECONDS[unit] for number, unit in _PART.findall(text))
    if re.fullmatch(r"-?\d+(\.\d+)?", text):  # as an environment variable writes a number of seconds
        return float(text)
    raise PydanticCustomError("duration", "is no duration; write 30s, 5m, 1h30m, 14d or a number of seconds")


def written(seconds: float) -> str:
    """The shortest text that `parse` reads as the same number of seconds, in one unit: 691200 -> "8d"."""
    for size, unit in _WRITTEN:
        if seconds and seconds % size == 0:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:g}s"


class Marker:
    """Says of a key that its numbers are seconds."""


Duration = Annotated[
    float,
    pydantic.BeforeValidator(parse),
    Marker(),
    pydantic.WithJsonSchema({"anyOf": [{"type": "string", "pattern": PATTERN}, {"type": "number", "minimum": 0}]}),
]
"""Seconds, read from any of the forms above."""
