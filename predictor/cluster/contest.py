"""Who undoes what Floorcast writes, and when it stands back for it.

One change by somebody else is a person's right: it becomes the new base. A second one within `WINDOW` is a controller
or a GitOps tool that will go on for ever, and two writers that take turns are worse than either: the target is only
advised on for `STAND_BACK` seconds, then tried again. At most two writes of the number and one note go into a contest.
"""

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Collection, Iterator

from predictor.cluster import marks
from predictor.cluster.errors import ContestedError

REVERTS = 2  # changes by somebody else that make a contest
WINDOW = 1800.0  # seconds between them at most: Flux looks every ten minutes, a person does not change twice in 30
STAND_BACK = 3600.0  # seconds until it is tried again: somebody may have made the ignore rule meanwhile
CHANGED_BY = "changed back by "
NOBODY = "somebody whom the API server does not name"


@dataclasses.dataclass(slots=True)
class _Story:
    """What happened to our writes to one object.

    `turns` counts the writes that were begun and those that ended, `told` says that the note needs no other try, and
    `noted` that it is on the object.
    """

    uid: str
    written: int | None = None
    turns: int = 0
    reverts: list[float] = dataclasses.field(default_factory=list)
    rival: str = ""
    until: float = float("-inf")
    told: bool = False
    noted: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Look:
    """The number of a target as it was read.

    Attributes:
        uid: of the object that carries it.
        standing: the number.
        noted: whether our note about the contest is on the object.
        manager: the field manager who set the number; empty where that is not known.
    """

    uid: str
    standing: int
    noted: bool = False
    manager: str = ""


class Contests:
    """The stories of all targets. What is read may be older than our write, so a change is confirmed before it counts.

    Two loops look, and one of them may write meanwhile: what was read across a write tells nothing, and a change that
    both see is one. Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._stories: dict[str, _Story] = {}
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def writing(self, key: str, uid: str) -> Iterator[None]:
        """While the object that carries the number of target `key` is written; `wrote` belongs inside."""
        with self._lock:
            story = self._of(key, uid)
            story.turns += 1
        try:
            yield
        finally:
            with self._lock:
                story.turns += 1

    def wrote(self, key: str, uid: str, number: int) -> None:
        """We wrote `number` to the object that carries the number of target `key`."""
        with self._lock:
            story = self._of(key, uid)
            story.written, story.told, story.noted, story.until = number, False, False, float("-inf")

    def look(self, key: str, look: Look, *, now: float, confirm: Callable[[], Look]) -> ContestedError | None:
        """Takes in what was read; the contest, while there is one.

        Args:
            key: target.
            look: what was read.
            now: Unix time, seconds.
            confirm: looks once more, at the API server itself.
        """
        with self._lock:
            story = self._stories.get(key)
            if story is None or story.uid != look.uid:
                self._stories.pop(key, None)
                return None
            turns = story.turns
            doubted = turns % 2 == 0 and _differs(story, look)
        if doubted:
            sure = confirm()
            with self._lock:
                if story.turns == turns:
                    _take_in(story, sure, now=now)
        return _contest(story) if now < story.until else None

    def rival(self, key: str) -> str:
        """The field manager who changed the target's number last; empty where nobody did."""
        story = self._stories.get(key)
        return story.rival if story is not None else ""

    def to_note(self, key: str, *, now: float) -> str:
        """The note for the object of a contest that none was left for yet; empty where none is due."""
        story = self._stories.get(key)
        if story is None or story.told or now >= story.until:
            return ""
        return marks.paused(f"{CHANGED_BY}{story.rival}", until=story.until)

    def told(self, key: str, *, noted: bool) -> None:
        """The note of target `key` was left on the object, or need not be tried again."""
        if (story := self._stories.get(key)) is not None:
            story.told, story.noted = True, noted

    def forget(self, key: str) -> None:
        """Forgets what was written for a target: its number changed hands for another reason."""
        self._stories.pop(key, None)

    def keep_only(self, keys: Collection[str]) -> None:
        """Forgets all other targets."""
        self._stories = {key: story for key, story in self._stories.items() if key in keys}

    def _of(self, key: str, uid: str) -> _Story:
        story = self._stories.get(key)
        if story is None or story.uid != uid:
            story = self._stories[key] = _Story(uid)
        return story


def _differs(story: _Story, look: Look) -> bool:
    changed = story.written is not None and look.standing != story.written
    return changed or (story.noted and not look.noted)


def _take_in(story: _Story, sure: Look, *, now: float) -> None:
    """What the API server itself says."""
    if not _differs(story, sure):
        return
    if story.noted and not sure.noted:  # somebody took the note away: try again
        story.told, story.noted, story.until = False, False, float("-inf")
    elif marks.is_ours(sure.manager):  # another Floorcast led meanwhile
        story.written = sure.standing
    else:
        story.written, story.rival = None, sure.manager or NOBODY
        story.reverts = [at for at in story.reverts if 0 <= now - at <= WINDOW] + [now]
        if len(story.reverts) >= REVERTS:
            story.until, story.reverts = now + STAND_BACK, []


def named(note: marks.Pause | None) -> str:
    """The field manager whom a note on the object names; empty where it names none."""
    if note is None or not note.text.startswith(CHANGED_BY):
        return ""
    return note.text.removeprefix(CHANGED_BY).partition(" until=")[0]


def _contest(story: _Story) -> ContestedError:
    return ContestedError(
        f"{story.rival} changed the number back {REVERTS} times after Floorcast had set it; only advice is given until"
        f" {marks.stamp(story.until)}: let it ignore the field (docs/ownership.md), then run `floorcast resume`"
    )
