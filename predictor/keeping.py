"""What was learned of the targets, kept over restarts in a file beside the journal.

Written every few minutes and at the end, by whoever leads: its followers learn the same from the same pods. A follower
writes only a file that nobody else writes: where each pod has a folder of its own, its file is what it finds again when
its container is started anew; in a folder that is shared, the leader's stays the newest.
"""

import contextlib
import dataclasses
import socket
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import structlog

from models.capacity import mix, observing
from models.capacity.observing import Observer
from predictor import kept, learning
from predictor.board import Board, Entry
from predictor.cluster.warmups import Remembered
from predictor.kept import KeptFile, KeptTarget
from predictor.ports import Clock

NAME = "learned.json"
# At a restart without such a file; sizes where no Prometheus has them.
LOST = "capacity observed while serving, sizes of requests, warm-ups of pods that are gone"
EVERY = 300.0  # seconds between two writes: the most that a crash loses
FORGOTTEN = 10 * observing.HALF_LIFE  # seconds after which a vote counts a thousandth: what is older is not taken over

_log = structlog.stdlib.get_logger("floorcast")


class Starts(Protocol):
    """Where it is known how the pods of a target started."""

    def remembered(self, key: str) -> Remembered | None:
        """All that is known of a target; None where it was never looked at."""
        ...

    def recall(self, key: str, known: Remembered) -> None:
        """Goes on from what another process knew, before the first look."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """Where what is learned lives while the service runs.

    Attributes:
        board: the rows of all targets, while no loop changes them.
        starts: how their pods started.
        leads: whether this process is the one that writes.
        clock: the time of day.
    """

    board: Callable[[], contextlib.AbstractContextManager[Board]]
    starts: Starts
    leads: Callable[[], bool]
    clock: Clock


class Keeping:
    """Reads the file once, gives each target its part when it comes, and writes the file from a thread of its own."""

    def __init__(self, folder: Path, place: Place, *, writer: str = "") -> None:
        """Reads what is there; a file that cannot be used is told of, and put aside at the first write.

        Args:
            folder: where the file is; made if need be.
            place: where what is learned lives.
            writer: name of this host; its own where none is given.
        """
        self.problem = ""  # what is wrong with the disk now
        self._path = folder / NAME
        self._place = place
        self._writer = writer or socket.gethostname()
        self._mine: tuple[int, ...] | None = None  # which file this host wrote last
        self._unusable = False
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._last = False  # whether to write once more when told to stop
        self._thread = threading.Thread(target=self._work, name="keeping", daemon=True)
        self._waiting = self._read()

    def give(self, board: Board) -> None:
        """Gives the rows of a board what was learned of them before; to be called before the loops look at them."""
        now = self._place.clock.now()
        with self._lock:
            found = {key: self._waiting.pop(key) for key in board.entries if key in self._waiting}
        for key, one in found.items():
            self._give(board.entries[key], one, now=now)

    def start(self) -> None:
        """Begins to write."""
        self._thread.start()

    def stop(self) -> None:
        """Has the file written a last time, in the background; to be called while what leads does so still."""
        self._last = self._may_write()
        self._stop.set()

    def join(self, *, within: float) -> None:
        """Waits so many seconds for that."""
        self._thread.join(within)

    def save(self) -> None:
        """Writes what is known now, if that is this process's to do; a disk that fails is told of once."""
        if self._may_write():
            self._write()

    def _work(self) -> None:
        while not self._stop.wait(EVERY):
            self.save()
        if self._last:
            self._write()

    def _may_write(self) -> bool:
        return self._place.leads() or _which(self._path) in (None, self._mine)

    def _write(self) -> None:
        try:
            if self._unusable:
                with contextlib.suppress(FileNotFoundError):
                    self._path.replace(self._path.with_suffix(".unusable"))
                self._unusable = False
            kept.write(self._path, KeptFile(version=1, writer=self._writer, targets=self._now()))
            self._mine = _which(self._path)
        except (OSError, ValueError) as error:  # also a value that no file of this shape can hold
            self._trouble(f"{getattr(error, 'strerror', None) or error}: {self._path}")
        else:
            self._trouble("")

    def _trouble(self, problem: str) -> None:
        if problem and problem != self.problem:
            _log.warning("what is learned cannot be kept over a restart, going on without", problem=problem)
        elif self.problem and not problem:
            _log.info("what is learned can be kept again", file=str(self._path))
        self.problem = problem

    def _now(self) -> dict[str, KeptTarget]:
        """What is known of the targets there are, and what waits for those that have not come yet."""
        now = self._place.clock.now()
        with self._lock:  # first: what is given meanwhile is in the one or the other
            waiting = _of_late(self._waiting, now=now)
        with self._place.board() as board:
            rows = [
                (entry.target, kept.votes(entry.observers), kept.sizes(entry.mix)) for entry in board.entries.values()
            ]
        known = {
            target.key: KeptTarget(
                at=now,
                kind=target.kind,
                engine=target.engine,
                model=target.model,
                terms=kept.terms(learning.terms(target)),
                starts=kept.starts(self._place.starts.remembered(target.key)),
                votes=votes,
                sizes=sizes,
            )
            for target, votes, sizes in rows
        }
        return {**waiting, **known}

    def _read(self) -> dict[str, KeptTarget]:
        try:
            found = kept.read(self._path)
        except (OSError, kept.UnusableError) as error:
            self._unusable = True
            problem = getattr(error, "strerror", None) or str(error)
            _log.warning(
                "what was learned before cannot be used, starting without", file=str(self._path), problem=problem
            )
            return {}
        return self._taken(found) if found else {}

    def _taken(self, found: kept.Found) -> dict[str, KeptTarget]:
        file = found.file
        if file.writer == self._writer:
            self._mine = _which(self._path)
        if found.unknown:
            told = "what was learned before has keys that this Floorcast does not know, going on without these"
            _log.warning(told, file=str(self._path), keys=found.unknown)
        targets = _of_late(file.targets, now=self._place.clock.now())
        _log.info("what was learned before is known", targets=len(targets), too_old=len(file.targets) - len(targets))
        return targets

    def _give(self, entry: Entry, one: KeptTarget, *, now: float) -> None:
        target = entry.target
        if (one.kind, one.engine, one.model) != (target.kind, target.engine, target.model):
            _log.info("serves something else than before, learned anew", target=target.key)
            return
        if one.starts is not None:
            self._place.starts.recall(target.key, one.starts.remembered())
        if target.objectives.profile.by_size is not None and one.sizes is not None:
            entry.mix = mix.recalled(one.sizes.mix(), now=now)
        if one.terms.terms() != learning.terms(target):
            _log.info("other figures of its replicas than before, capacity learned anew", target=target.key)
        elif target.learning.ttft is not None:
            entry.observers = {
                replica: Observer(objective=target.learning.ttft, votes=observing.faded(votes.votes(), now=now))
                for replica, votes in one.votes.items()
            }


def _of_late(targets: Mapping[str, KeptTarget], *, now: float) -> dict[str, KeptTarget]:
    return {key: one for key, one in targets.items() if now - one.at <= FORGOTTEN}


def _which(path: Path) -> tuple[int, ...] | None:
    """What tells a file from the one before it; None where there is none to be seen."""
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_ino, state.st_mtime_ns, state.st_size
