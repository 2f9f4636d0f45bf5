"""What Floorcast leaves on an object whose minimum it moves, and what follows from it.

The first three annotations travel in the patch that moves the minimum, so they are never out of step with it, and a
Floorcast that starts after a crash reads from them what it did before. The other two say that it stands back.

KServe copies the annotations (and labels) of an InferenceService into the template of its pods, where a new value makes
the Deployment replace every pod: a model would be loaded anew for each change of the floor. There the marks are the
name of the field manager under which the minimum is written: the API server keeps it with the field, nothing copies it.
"""

import dataclasses
import datetime as dt

from predictor.cluster import client, fields
from predictor.cluster.fields import Json

ORIGINAL = "floorcast.dev/original-min-replicas"
LAST_WRITTEN = "floorcast.dev/last-written"
STATUS = "floorcast.dev/status"  # how the target fares, see conditions.py
RELEASED = "floorcast.dev/released"  # since when, and until when: `floorcast release` gave the number back
SHADOWED = "floorcast.dev/shadowed"  # until when, and for whom: somebody else keeps changing the number

LEFT_OUT = "unset"  # the original of a field that was not there
MANAGER = f"{client.FIELD_MANAGER}-original-"  # and the minimum that the user had: the marks where none may be left
RELEASER = f"{client.FIELD_MANAGER}-released-until-"  # and a Unix time: RELEASED where no note may be left
MOST_DIGITS = 10  # of a replica count, which has 32 bits: what is longer was not written by us


@dataclasses.dataclass(frozen=True, slots=True)
class Marks:
    """The minimum that the user had (None: the field was left out), and the one that was written last."""

    original: int | None
    last_written: int


@dataclasses.dataclass(frozen=True, slots=True)
class Pause:
    """A note that the object is to be left alone; `until` is a Unix time, None without an end."""

    until: float | None
    text: str

    def lasts(self, *, now: float) -> bool:
        """Whether it still counts."""
        return self.until is None or now < self.until


def read(thing: Json) -> Marks | None:
    """The marks; None where there are none, or none that can be read."""
    found = fields.mapping(thing, "metadata", "annotations")
    left_out = fields.text(found, ORIGINAL) == LEFT_OUT
    original, last_written = (_number(found, key) for key in (ORIGINAL, LAST_WRITTEN))
    if last_written is None or (original is None and not left_out):
        return None
    return Marks(original, last_written)


def manager(original: int | None) -> str:
    """The field manager that says which minimum the user had."""
    return f"{MANAGER}{LEFT_OUT if original is None else original}"


def releaser(note: str) -> str:
    """The field manager that gives a minimum back where no note may be left: it says until when to leave it alone.

    That of anybody where the note has no end: it could not be taken away again without changing the number.
    """
    until = _end(note)
    return client.FIELD_MANAGER if until is None else f"{RELEASER}{until:.0f}"


def released(thing: Json, *path: str) -> Pause | None:
    """The note of a release as told by the field manager of the minimum at `path`."""
    for name in fields.managers_of(thing, *path):
        until = name.removeprefix(RELEASER)
        if until != name and _is_number(until):
            return Pause(float(until), f"released, until={stamp(float(until))}")
    return None


def is_ours(name: str) -> bool:
    """Whether a field manager is a Floorcast."""
    return name == client.FIELD_MANAGER or name.startswith((MANAGER, RELEASER))


def read_manager(thing: Json, *path: str) -> Marks | None:
    """The marks as told by the field manager of the minimum at `path`: ours for as long as nobody changes it."""
    live = fields.integer(thing, *path)
    for name in fields.managers_of(thing, *path):
        original = name.removeprefix(MANAGER)
        if live is not None and original != name and (original == LEFT_OUT or _is_number(original)):
            return Marks(None if original == LEFT_OUT else int(original), live)
    return None


def present(thing: Json) -> bool:
    """Whether there is any mark of a number that was moved, readable or not."""
    found = fields.mapping(thing, "metadata", "annotations")
    return ORIGINAL in found or LAST_WRITTEN in found


def annotations(marks: Marks | None, *, status: str = "") -> dict[str, str | None]:
    """The marks as a merge patch; None takes them away. Whoever writes does no longer stand back."""
    if marks is None:
        return {ORIGINAL: None, LAST_WRITTEN: None, STATUS: None, SHADOWED: None}
    original = LEFT_OUT if marks.original is None else str(marks.original)
    return {ORIGINAL: original, LAST_WRITTEN: str(marks.last_written), STATUS: status or None, SHADOWED: None}


def ours(live: int, marks: Marks | None) -> bool:
    """Whether the live minimum is the one Floorcast wrote."""
    return marks is not None and marks.last_written == live


def original(live: int | None, marks: Marks | None, *, default: int) -> int | None:
    """The user's own minimum: what stood before ours, or what stands if somebody has changed it since.

    None is a field that is left out, which means `default`.
    """
    standing = default if live is None else live
    return marks.original if marks is not None and marks.last_written == standing else live


def pause(thing: Json, key: str) -> Pause | None:
    """The note under `key` (RELEASED or SHADOWED); one that cannot be read has no end."""
    found = fields.mapping(thing, "metadata", "annotations")
    if key not in found:
        return None
    written = fields.text(found, key)
    return Pause(_end(written), written)


def paused(text: str, *, until: float | None) -> str:
    """A note as it is written: words for people, and the end for the next reader."""
    if until is None:
        return text
    return f"{text} until={stamp(until)}"


def stamp(at: float) -> str:
    """A Unix time as the API server writes it."""
    return dt.datetime.fromtimestamp(at, tz=dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _end(note: str) -> float | None:
    end = next((word for word in note.split() if word.startswith("until=")), "")
    return fields.instant({"at": end.removeprefix("until=")}, "at")


def _number(annotated: Json, key: str) -> int | None:
    written = fields.text(annotated, key)
    return int(written) if _is_number(written) else None


def _is_number(written: str) -> bool:
    return written.isdecimal() and len(written) <= MOST_DIGITS
