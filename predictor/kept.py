"""The file in which what was learned of the targets outlives the process: its shape, and how it is read and written."""

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import pydantic

from models.capacity.mix import Mix
from models.capacity.observing import Observer, Votes
from models.capacity.warmup import Start
from predictor.cluster.warmups import Remembered
from predictor.learning import Terms

# Stays what it is where keys of the file, of a target or of its terms become more: an older Floorcast reads the rest.
VERSION = 1
LARGEST = 64_000_000  # bytes: two thousand targets that have had all the starts that are kept of one
ABANDONED = 3600.0  # seconds after which nobody writes a file any more that was begun
SMALLEST_LOAD, LARGEST_LOAD = 1e-6, 1e6  # requests in flight a replica that can be a load

Load = Annotated[float, pydantic.Field(ge=SMALLEST_LOAD, le=LARGEST_LOAD)]
Windows = Annotated[float, pydantic.Field(ge=0, le=1e6)]
Amount = Annotated[float, pydantic.Field(ge=0, le=1e15)]  # of requests, or of their tokens
Instant = float | None
# Created, scheduled, started, ready, left; type of GPU. A row and no mapping: a thousand targets have 250,000 of them.
KeptStart = tuple[float, Instant, Instant, Instant, Instant, str]


class UnusableError(ValueError):
    """The file is damaged, of another version, or too large: a reason to begin without it, never to end."""


class _Shape(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class _Growing(_Shape):
    """Whose keys may become more; within the parts of a target one more may change what those beside it mean."""

    model_config = pydantic.ConfigDict(extra="allow")


class KeptStarts(_Shape):
    """As `predictor.cluster.warmups.Remembered`."""

    at: float
    done: tuple[KeptStart, ...] = ()
    left: tuple[KeptStart, ...] = ()
    warming: dict[str, KeptStart] = {}
    settled: tuple[str, ...] = ()

    def remembered(self) -> Remembered:
        """What is known of the starts."""
        return Remembered(
            at=self.at,
            done=tuple(map(_start, self.done)),
            left=tuple(map(_start, self.left)),
            warming={uid: _start(one) for uid, one in self.warming.items()},
            settled=frozenset(self.settled),
        )


class KeptVotes(_Shape):
    """As `models.capacity.observing.Votes`: (load, windows met, windows missed) each."""

    at: float
    windows: tuple[tuple[Load, Windows, Windows], ...]

    def votes(self) -> Votes:
        """The votes."""
        return Votes(self.at, {load: (met, missed) for load, met, missed in self.windows})


class KeptMix(_Shape):
    """As `models.capacity.mix.Mix`, less what ran."""

    at: float
    prompt: Amount
    output: Amount
    taken: Amount
    served: Amount

    def mix(self) -> Mix:
        """What was seen."""
        return Mix(self.at, None, self.prompt, self.output, self.taken, self.served)


class KeptTerms(_Growing):
    """As `predictor.learning.Terms`."""

    ttft: float | None
    concurrency: float
    throughput: float | None = None
    kv_tokens: float | None = None
    tokens_in: float | None = None
    tokens_out: float | None = None
    by_size: tuple[float, ...] = ()

    def terms(self) -> Terms:
        """The terms."""
        return Terms(**self.model_dump())


class KeptTarget(_Growing):
    """What was learned of one target.

    Attributes:
        at: Unix time at which it was written down, seconds.
        kind: of the workload object.
        engine: entry of the signal catalogue.
        model: served model.
        terms: under which the votes were cast.
        starts: of its pods; None where they were never looked at.
        votes: by kind of replica.
        sizes: of its requests; None where none were looked at.
    """

    at: float
    kind: str
    engine: str
    model: str
    terms: KeptTerms
    starts: KeptStarts | None = None
    votes: dict[str, KeptVotes] = {}
    sizes: KeptMix | None = None


class KeptFile(_Growing):
    """All of it; `writer` is the host it was written on, which is a pod's name."""

    version: Literal[1]
    writer: str
    targets: dict[str, KeptTarget]


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """A file that was read, less its keys of a newer Floorcast, whose names are in `unknown`.

    Votes that were cast under terms of which one is not known are left out as well.
    """

    file: KeptFile
    unknown: tuple[str, ...]


class _Versioned(pydantic.BaseModel):
    """All that is expected of a file of any version."""

    version: object = None


def terms(given: Terms) -> KeptTerms:
    """Those of a target, for the file."""
    return KeptTerms(**dataclasses.asdict(given))


def starts(known: Remembered | None) -> KeptStarts | None:
    """What is known of a target's starts, for the file."""
    if known is None:
        return None
    return KeptStarts(
        at=known.at,
        done=tuple(map(_row, known.done)),
        left=tuple(map(_row, known.left)),
        warming={uid: _row(one) for uid, one in known.warming.items()},
        settled=tuple(sorted(known.settled)),
    )


def votes(observers: Mapping[str, Observer]) -> dict[str, KeptVotes]:
    """What was seen of a target's replicas, for the file."""
    cast = {replica: observer.votes() for replica, observer in observers.items()}
    return {replica: KeptVotes(at=one.at, windows=_windows(one)) for replica, one in cast.items() if one}


def sizes(seen: Mix | None) -> KeptMix | None:
    """How large a target's requests were, for the file; what cannot be is left out."""
    if seen is None:
        return None
    try:
        return KeptMix(at=seen.at, prompt=seen.prompt, output=seen.output, taken=seen.taken, served=seen.served)
    except pydantic.ValidationError:
        return None


def read(path: Path) -> Found | None:
    """The file; None where there is none.

    Raises:
        OSError: it cannot be read.
        UnusableError: what it says cannot be used.
    """
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except FileNotFoundError:
        return None
    if len(data) > LARGEST:
        raise UnusableError(f"is larger than {LARGEST} bytes")
    try:
        version = _Versioned.model_validate_json(data).version
        if version != VERSION:
            raise UnusableError(f"version {version!r}, and this Floorcast knows version {VERSION}")
        return _known(KeptFile.model_validate_json(data))
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        raise UnusableError(": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))) from error


def _known(file: KeptFile) -> Found:
    given = file.targets.items()
    targets = {key: one.model_copy(update={"votes": {}}) if one.terms.model_extra else one for key, one in given}
    shapes = (file, *targets.values(), *(one.terms for one in targets.values()))
    unknown = sorted({name for shape in shapes for name in shape.model_extra or {}})
    for shape in shapes:
        (shape.model_extra or {}).clear()  # or they would be written on beside what has become of the rest
    return Found(file.model_copy(update={"targets": targets}), tuple(unknown))


def write(path: Path, kept: KeptFile) -> None:
    """Puts the file in the place of the one before, whole or not at all.

    Raises:
        OSError: it cannot be written.
        UnusableError: it would be too large to be read again.
    """
    data = kept.model_dump_json(exclude_defaults=True).encode()
    if len(data) > LARGEST:
        raise UnusableError(f"would be larger than {LARGEST} bytes")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{kept.writer}.part")  # of this host: replicas may share the folder
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        _sweep(path, now=part.stat().st_mtime)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _sweep(path: Path, *, now: float) -> None:
    """Removes what hosts that are gone left behind when they were killed while they wrote."""
    for part in path.parent.glob(f"{path.name}.*.part"):
        if now - part.stat().st_mtime > ABANDONED:
            part.unlink(missing_ok=True)


def _row(one: Start) -> KeptStart:
    return one.created, one.scheduled, one.started, one.ready, one.left, one.gpu


def _start(row: KeptStart) -> Start:
    created, scheduled, started, ready, left, gpu = row
    return Start(created, scheduled, started, ready, left, gpu)


def _windows(given: Votes) -> tuple[tuple[float, float, float], ...]:
    return tuple(
        (load, met, missed)
        for load, (met, missed) in sorted(given.windows.items())
        if SMALLEST_LOAD <= load <= LARGEST_LOAD
    )
