"""How long a new replica takes, phase by phase, and how far ahead that makes one look.

Pods that are still on their way count: each says that a start takes longer than it has waited (a censored time). The
quantiles are those of the Kaplan-Meier estimator, Journal of the American Statistical Association 53 (1958) 457-481.
"""

import collections
import dataclasses
import enum
from collections.abc import Iterable, Iterator, Sequence

FEWEST = 3  # measured warm-ups of which a p90 says more than what was configured
COVERED = 0.9  # share of the starts that are over within the warm-up that is planned with
FAR_TOO_LONG = 3.0  # times the usual warm-up: by then a pod has not merely been slow, something is wrong with it
LEAST_PATIENCE = 30.0  # seconds: the cluster alone takes some, and times have whole ones
RECENT = 50  # starts in which a GPU type must occur to be reckoned with: one that is no longer bought goes out of mind


class Phase(enum.StrEnum):
    """A part of a start. The value is also the metric label."""

    SCHEDULE = "schedule"  # asked for, until it has a node
    START = "start"  # until its last container runs: the image, volumes
    READY = "ready"  # until its first Ready: the weights, compiling
    WHOLE = "whole"  # from asked for to its first Ready


@dataclasses.dataclass(frozen=True, slots=True)
class Start:
    """One pod's way to its first Ready; Unix times, None where it has not come to that or nobody told.

    Attributes:
        created: a replica was asked for.
        scheduled: it was given a node.
        started: its last container ran.
        ready: it was Ready for the first time.
        left: it went away, or failed, before it was Ready.
        gpu: type of its GPU; empty where not known.
    """

    created: float
    scheduled: float | None = None
    started: float | None = None
    ready: float | None = None
    left: float | None = None
    gpu: str = ""

    @property
    def seconds(self) -> float | None:
        """From asked for to Ready; None while it never was."""
        return None if self.ready is None else max(self.ready - self.created, 0.0)


@dataclasses.dataclass(frozen=True, slots=True)
class Wait:
    """How long something took, or has lasted so far (`over` is False), seconds."""

    seconds: float
    over: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Spread:
    """Quantiles of a phase on one type of GPU.

    Attributes:
        gpu: the type; empty where not known.
        phase: which part of a start.
        over: starts that are past it.
        lasting: starts that are still in it, or left while they were.
        median: seconds.
        p90: seconds.
    """

    gpu: str
    phase: Phase
    over: int
    lasting: int
    median: float
    p90: float


@dataclasses.dataclass(frozen=True, slots=True)
class Usual:
    """What the starts of a target say.

    Attributes:
        seconds: p90 from asked for to the first Ready, of the slowest GPU type in use; None before FEWEST are measured.
        measured: starts that became Ready.
        longest: seconds after which a pod that is not Ready is stuck.
        waits: of the starts, from asked for to Ready; the assumed one among them until there are enough.
        spreads: quantiles by GPU type and phase.
    """

    seconds: float | None
    measured: int
    longest: float
    waits: tuple[Wait, ...] = ()
    spreads: tuple[Spread, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Horizons:
    """How far ahead to look, seconds: before raising, and before lowering."""

    raising: float
    lowering: float


def quantile(waits: Iterable[Wait], probability: float) -> float | None:
    """Seconds within which a share of the starts is over, by Kaplan-Meier; None of nothing.

    One that still lasts never lowers it. Where so many still last that the share is not reached, the longest time seen
    is a lower bound of it, and is returned.
    """
    longest = None
    for wait, surviving in _survival(waits):
        longest = wait.seconds
        if wait.over and surviving <= 1 - probability + 1e-9:
            return wait.seconds
    return longest


def remaining(waits: Sequence[Wait], age: float, *, longest: float) -> float:
    """Seconds until a start that has lasted `age` is Ready: the median of those that lasted as long.

    Where none did and ended, nothing says that it will be soon: the time until it would be called stuck, at `longest`.
    """
    reached = 1.0
    for wait, surviving in _survival(waits):
        if wait.seconds <= age:
            reached = surviving
        elif wait.over and surviving <= reached / 2 + 1e-9:
            return wait.seconds - age
    return max(longest - age, 0.0)


def usual(starts: Sequence[Start], *, now: float, default: float) -> Usual:
    """What the starts of a target say at a moment (Unix seconds); `default` seconds until enough are measured.

    A pod that got stuck does not count as longer than the limit at which that is said: it waits for a GPU that is not
    there, and must not make everybody look hours ahead.
    """
    over = [one.seconds for one in starts if one.seconds is not None]
    seconds = quantile(map(Wait, over), COVERED) if len(over) >= FEWEST else None
    longest = _patience(seconds, default=default)
    kinds: dict[str, list[Start]] = {one.gpu: [] for one in starts[-RECENT:]}
    for one in starts:
        if one.gpu in kinds:
            kinds[one.gpu].append(one)
    known = [_p90(group, now=now, longest=longest) for group in kinds.values()]
    slowest = max((p90 for p90 in known if p90 is not None), default=None)
    if slowest is None and seconds is not None:  # enough of them, not of any one type
        slowest = quantile(_waits(starts, Phase.WHOLE, now=now, longest=longest), COVERED)
    assumed = (Wait(default),) if slowest is None else ()
    return Usual(
        seconds=slowest,
        measured=len(over),
        longest=_patience(slowest, default=default),
        waits=(*assumed, *_waits(starts, Phase.WHOLE, now=now, longest=longest)),
        spreads=tuple(_spreads(kinds, now=now, longest=longest)),
    )


def warm_up(found: Usual | None, *, default: float) -> float:
    """The warm-up to plan with, seconds: the measured p90, or `default` while too few are measured."""
    return default if found is None or found.seconds is None else found.seconds


def of_seconds(*measured: float) -> Usual:
    """What starts say of which only these times from asked for to Ready are known, newest last."""
    return usual([Start(0.0, ready=seconds) for seconds in measured], now=0.0, default=max(measured, default=0.0))


def horizons(warm_up: float, *, interval: float, signal_age: float) -> Horizons:
    """Horizons from the warm-up, the loop interval and the age of the signals, all in seconds.

    What is decided now is ready after the warm-up, was seen `signal_age` ago, and can be decided again only after
    `interval`. Keeping an idle replica for as long as its warm-up costs as much as warming it again, so lowering looks
    one more warm-up ahead.
    """
    raising = warm_up + interval + signal_age
    return Horizons(raising, raising + warm_up)


def _survival(waits: Iterable[Wait]) -> Iterator[tuple[Wait, float]]:
    """Each wait, shortest first, with the share that lasts longer; of equal ones those that ended come first."""
    ordered = sorted(waits, key=lambda wait: (wait.seconds, not wait.over))
    surviving = 1.0
    for done, wait in enumerate(ordered):
        if wait.over:
            surviving *= 1 - 1 / (len(ordered) - done)
        yield wait, surviving


def _patience(seconds: float | None, *, default: float) -> float:
    return max(FAR_TOO_LONG * (default if seconds is None else seconds), LEAST_PATIENCE)


def _p90(starts: Sequence[Start], *, now: float, longest: float) -> float | None:
    if sum(one.ready is not None for one in starts) < FEWEST:
        return None
    return quantile(_waits(starts, Phase.WHOLE, now=now, longest=longest), COVERED)


def _waits(starts: Iterable[Start], phase: Phase, *, now: float, longest: float) -> Iterator[Wait]:
    for one in starts:
        wait = _wait(one, phase, now=now)
        if wait is not None:
            yield wait if wait.over else Wait(min(wait.seconds, longest), over=False)


def _wait(start: Start, phase: Phase, *, now: float) -> Wait | None:
    """How long a start took for a phase; None where it has not come to it, or nobody told."""
    points = (start.created, start.scheduled, start.started, start.ready)
    first, last = _PLACES[phase]
    begin, end = points[first], points[last]
    if begin is None:
        return None
    if end is not None:
        return Wait(max(end - begin, 0.0))
    if any(point is not None for point in points[last:]):
        return None  # it is past it without anybody having told
    until = now if start.left is None else start.left
    return Wait(max(until - begin, 0.0), over=False)


_PLACES = {
    Phase.SCHEDULE: (0, 1),
    Phase.START: (1, 2),
    Phase.READY: (2, 3),
    Phase.WHOLE: (0, 3),
}


def _spreads(kinds: dict[str, list[Start]], *, now: float, longest: float) -> Iterator[Spread]:
    for gpu, starts in sorted(kinds.items()):
        for phase in Phase:
            waits = list(_waits(starts, phase, now=now, longest=longest))
            median, p90 = quantile(waits, 0.5), quantile(waits, COVERED)
            if median is not None and p90 is not None:
                counts = collections.Counter(wait.over for wait in waits)
                yield Spread(gpu, phase, counts[True], counts[False], median, p90)
