"""The journal: what was seen and decided, kept on disk over restarts, bounded in size and age.

Lines of JSON in segments that are named by the time of their first record. Each record goes to the operating system
when it is written: a crash of the process loses none. It is forced to the disk (fsync) when a segment is full and at
the end, so that a crash of the machine loses what the system had not yet written by itself, usually half a minute.
A line that was torn is passed over when read; a new process begins a new segment and never adds to a torn one.
"""

import dataclasses
import json
import os
import queue
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TypeAlias

import structlog

Record: TypeAlias = Mapping[str, Any]

SEGMENTS = 16  # in which the whole is kept: what is dropped at once is a sixteenth of it
PREFIX, SUFFIX = "journal-", ".jsonl"
WAITING = 10_000  # records for which the disk may fall behind before they are lost
DAY = 86400.0

_log = structlog.stdlib.get_logger("floorcast.journal")


@dataclasses.dataclass(frozen=True, slots=True)
class Bounds:
    """How much is kept.

    Attributes:
        seconds: a record older than this goes, with its segment.
        size: bytes of all segments together.
    """

    seconds: float
    size: int


@dataclasses.dataclass(slots=True)
class Health:
    """What became of the records, for metrics.

    Attributes:
        lost: records that could not be written.
        problem: what is wrong with the disk now; empty when nothing.
    """

    lost: int = 0
    problem: str = ""


class Journal:
    """Writes records from a thread of its own: a disk that is slow, full or gone never keeps a loop waiting."""

    def __init__(self, folder: Path, bounds: Bounds) -> None:
        self.health = Health()
        self._folder = folder
        self._bounds = bounds
        self._queue: queue.Queue[Record | None] = queue.Queue(WAITING)
        self._file: IO[bytes] | None = None
        self._written = 0
        self._begun = 0.0
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
        self._thread.start()

    def append(self, record: Record) -> None:
        """Takes a record; it has `at`, its Unix time in seconds, and the others behind it have a later one."""
        try:
            self._queue.put_nowait(record)
        except queue.Full:
            self._lose("the disk does not keep up")

    def close(self, *, within: float = 2.0) -> None:
        """Writes what is left and forces it to the disk, if that takes no longer than `within` seconds."""
        try:
            self._queue.put(None, timeout=within)
        except queue.Full:
            return
        self._thread.join(within)

    def _work(self) -> None:
        while (record := self._queue.get()) is not None:
            try:
                self._write(record)
            except OSError as error:
                self._lose(f"{error.strerror or error}: {self._folder}")
                self._drop_file()
            else:
                if self.health.problem:
                    _log.info("the journal can be written again", lost=self.health.lost)
                self.health.problem = ""
        self._end_segment()

    def _lose(self, problem: str) -> None:
        """Counts it, and tells when the problem is another than before: no decision waits for a disk."""
        self.health.lost += 1
        if problem != self.health.problem:
            _log.warning("the journal cannot be written, going on without", problem=problem)
        self.health.problem = problem

    def _write(self, record: Record) -> None:
        line = json.dumps(record, separators=(",", ":"), default=str).encode() + b"\n"
        at = float(record["at"])
        full = self._written + len(line) > self._bounds.size // SEGMENTS
        if self._file is None or full or at - self._begun > self._bounds.seconds / SEGMENTS:
            self._end_segment()
            self._begin_segment(at)
        if self._file is not None:
            self._file.write(line)
            self._written += len(line)

    def _begin_segment(self, at: float) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        prune(self._folder, self._bounds, now=at)
        name = f"{PREFIX}{at * 1000:015.0f}{SUFFIX}"
        # Unbuffered: a record is the system's as soon as it is written. Appending: two of the same millisecond share.
        self._file = (self._folder / name).open("ab", buffering=0)
        self._written = self._file.tell()
        self._begun = at
        if self._written:
            self._file.write(b"\n")  # whoever wrote here before may have been torn off in a line

    def _end_segment(self) -> None:
        if self._file is not None:
            try:
                os.fsync(self._file.fileno())
            except OSError as error:
                _log.warning("the journal could not be forced to the disk", problem=error.strerror)
            self._drop_file()

    def _drop_file(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None


def prune(folder: Path, bounds: Bounds, *, now: float) -> None:
    """Removes the oldest segments until there is room for one more, and those whose records are all too old."""
    kept = _segments(folder)
    sizes = {path: path.stat().st_size for path in kept}
    # A segment's records end where the next one begins.
    while kept and (
        sum(sizes[path] for path in kept) > bounds.size - bounds.size // SEGMENTS
        or (len(kept) > 1 and _begin(kept[1]) < now - bounds.seconds)
    ):
        kept[0].unlink(missing_ok=True)
        kept = kept[1:]


def read(folder: Path, *, since: float = 0.0, until: float = float("inf"), target: str = "") -> Iterator[Record]:
    """Records of a span (Unix seconds, both ends included) in the order they were written, of one target if named.

    Raises:
        OSError: the folder or a segment cannot be read.
    """
    paths = _segments(folder)
    for place, path in enumerate(paths):
        ends = _begin(paths[place + 1]) if place + 1 < len(paths) else float("inf")
        if ends < since or _begin(path) > until:
            continue
        yield from (
            record
            for record in _records(path)
            if since <= record["at"] <= until and (not target or record.get("target") == target)
        )


def _records(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as lines:
        for line in lines:
            try:
                record = json.loads(line)
            except ValueError:
                continue  # torn
            if isinstance(record, dict) and isinstance(record.get("at"), (int, float)):
                yield record


def _segments(folder: Path) -> list[Path]:
    """All segments, oldest first; other files are left alone."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.glob(f"{PREFIX}*{SUFFIX}") if path.stem.removeprefix(PREFIX).isdecimal())


def _begin(path: Path) -> float:
    return int(path.stem.removeprefix(PREFIX)) / 1000
