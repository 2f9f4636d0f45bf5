"""What Floorcast leaves on an object whose minimum it moves, and what follows from it.

Both annotations travel in the patch that moves the minimum, so they are never out of step with it, and a Floorcast
that starts after a crash reads from them what it did before.
"""

import dataclasses

from predictor.cluster import fields
from predictor.cluster.fields import Json

ORIGINAL = "floorcast.dev/original-min-replicas"
LAST_WRITTEN = "floorcast.dev/last-written"

MOST_DIGITS = 10  # of a replica count, which has 32 bits: what is longer was not written by us


@dataclasses.dataclass(frozen=True, slots=True)
class Marks:
    """The minimum that the user had, and the one that was written last."""

    original: int
    last_written: int


def read(thing: Json) -> Marks | None:
    """The marks; None where there are none, or none that can be read."""
    found = fields.mapping(thing, "metadata", "annotations")
    original, last_written = (_number(found, key) for key in (ORIGINAL, LAST_WRITTEN))
    return None if original is None or last_written is None else Marks(original, last_written)


def present(thing: Json) -> bool:
    """Whether there is any mark, readable or not."""
    found = fields.mapping(thing, "metadata", "annotations")
    return ORIGINAL in found or LAST_WRITTEN in found


def annotations(marks: Marks | None) -> dict[str, str | None]:
    """The marks as a merge patch; None takes them away."""
    if marks is None:
        return {ORIGINAL: None, LAST_WRITTEN: None}
    return {ORIGINAL: str(marks.original), LAST_WRITTEN: str(marks.last_written)}


def ours(live: int, marks: Marks | None) -> bool:
    """Whether the live minimum is the one Floorcast wrote."""
    return marks is not None and marks.last_written == live


def base(live: int, marks: Marks | None) -> int:
    """The user's own minimum: what stood before ours, or what stands if somebody has changed it since."""
    return marks.original if marks is not None and marks.last_written == live else live


def _number(annotated: Json, key: str) -> int | None:
    written = fields.text(annotated, key)
    return int(written) if written.isdecimal() and len(written) <= MOST_DIGITS else None
