"""Looking through the objects that the chart rendered."""

from typing import Any

Json = dict[str, Any]


def of(objects: list[Json], kind: str) -> list[Json]:
    """Those of one kind."""
    return [one for one in objects if one["kind"] == kind]
