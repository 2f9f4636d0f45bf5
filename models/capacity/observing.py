"""What a replica is seen to sustain while it serves: the highest load that met the objective, the lowest that did not.

Each steady stretch of `WINDOW` seconds votes at its load: it met the objective, or it did not. The capacity is the step
from met to missed that contradicts the fewest votes, so that one bad minute at low load (a slow node, a long prompt)
says as little as one lucky minute at high load.
"""

import collections
import dataclasses
import math
from collections.abc import Iterable, Mapping

WINDOW = 300.0  # seconds a TTFT quantile looks back: the load must have been the same for as long
STEADY = 1.25  # largest over smallest load in a window that counts as the same load
RATIO = 1.1  # between two neighbouring levels of load
HALF_LIFE = 3 * 86400.0  # seconds after which a vote counts half: prompts and models change
ENOUGH = 3.0  # windows at a level, or beyond, before it is believed: a quarter of an hour
SURE = 0.8  # share of the votes that must agree with the step
LEAST = 1e-3  # windows at a level below which its votes are forgotten: a third of a second


@dataclasses.dataclass(frozen=True, slots=True)
class Sight:
    """One look at the fleet of a target.

    Attributes:
        at: Unix time, seconds.
        load: requests in flight, waiting ones included, per ready replica.
        ready: replicas that served.
        ttft: p95 of the time to the first token, seconds.
    """

    at: float
    load: float
    ready: int
    ttft: float


@dataclasses.dataclass(frozen=True, slots=True)
class Observed:
    """What the votes say; loads are requests in flight per replica.

    Attributes:
        met: highest load at which the objective was met; None while too little was seen.
        missed: lowest load at which it was not; None while that was not seen.
        confidence: share of the votes that agree, 0..1.
        windows: votes, in windows of `WINDOW` seconds, older ones counting less.
    """

    met: float | None = None
    missed: float | None = None
    confidence: float = 0.0
    windows: float = 0.0

    @property
    def sure(self) -> bool:
        """Whether the votes agree well enough to act on them."""
        return self.confidence >= SURE


@dataclasses.dataclass(frozen=True, slots=True)
class Votes:
    """All that an observer has counted, for another one to go on from.

    Attributes:
        at: Unix time in seconds up to which they have faded.
        windows: load -> (windows met, windows missed).
    """

    at: float
    windows: Mapping[float, tuple[float, float]]


@dataclasses.dataclass(slots=True)
class _Level:
    met: float = 0.0
    missed: float = 0.0


class Observer:
    """Collects the votes of one target on one type of GPU. Holds no clock; not for several threads at once."""

    def __init__(self, *, objective: float, votes: Votes | None = None) -> None:
        """Readies it.

        Args:
            objective: p95 of the time to the first token to keep to, seconds.
            votes: those of the observer before it, cast for the same objective.
        """
        self._objective = objective
        self._recent: collections.deque[Sight] = collections.deque()
        self._levels: dict[int, _Level] = {}
        self._faded_at: float | None = votes.at if votes else None
        for load, (met, missed) in votes.windows.items() if votes else ():
            level = self._levels.setdefault(_level(load), _Level())
            level.met += met
            level.missed += missed

    def see(self, sight: Sight) -> None:
        """Takes a look in. A change of replicas, or a gap, begins a new stretch."""
        if self._recent and not self._goes_on(self._recent[-1], sight):
            self._recent.clear()
        before = self._recent[-1].at if self._recent else sight.at
        self._recent.append(sight)
        while len(self._recent) > 1 and self._recent[1].at <= sight.at - WINDOW:
            self._recent.popleft()
        loads = [one.load for one in self._recent]
        whole = sight.at - self._recent[0].at >= WINDOW
        if whole and min(loads) > 0 and max(loads) <= STEADY * min(loads):
            # Windows overlap: a look adds what is new in its own.
            self._vote(sum(loads) / len(loads), sight, weight=(sight.at - before) / WINDOW)

    def observed(self) -> Observed:
        """What the votes say so far."""
        return judge(self._windows())

    def votes(self) -> Votes | None:
        """What was counted so far; None before the first vote."""
        return None if self._faded_at is None else Votes(self._faded_at, self._windows())

    def _windows(self) -> dict[float, tuple[float, float]]:
        return {RATIO**number: (level.met, level.missed) for number, level in self._levels.items()}

    def _goes_on(self, before: Sight, sight: Sight) -> bool:
        return before.ready == sight.ready and 0 < sight.at - before.at <= WINDOW / 2

    def _vote(self, load: float, sight: Sight, *, weight: float) -> None:
        self._fade(sight.at)
        level = self._levels.setdefault(_level(load), _Level())
        if sight.ttft <= self._objective:
            level.met += weight
        else:
            level.missed += weight

    def _fade(self, now: float) -> None:
        share = _left(now if self._faded_at is None else self._faded_at, now=now)
        self._faded_at = now
        for number, level in list(self._levels.items()):
            level.met *= share
            level.missed *= share
            if level.met + level.missed < LEAST:
                del self._levels[number]


def faded(votes: Votes, *, now: float) -> Votes:
    """What is left of votes at a later time (Unix seconds); all of them where the clock was set back since."""
    share = _left(votes.at, now=now)
    windows = {load: (met * share, missed * share) for load, (met, missed) in votes.windows.items()}
    return Votes(now, {load: pair for load, pair in windows.items() if sum(pair) >= LEAST})


def _left(at: float, *, now: float) -> float:
    return float(0.5 ** (max(now - at, 0.0) / HALF_LIFE))


def _level(load: float) -> int:
    return round(math.log(load, RATIO))


def judge(votes: Mapping[float, tuple[float, float]]) -> Observed:
    """The step that contradicts the fewest votes; `votes` are load -> (windows met, windows missed).

    Of equal steps the lowest is taken: capacity is not to be overstated.
    """
    if not votes:
        return Observed()
    loads = sorted(votes)
    total = sum(met + missed for met, missed in votes.values())
    against = [_against(votes, loads, cut) for cut in range(len(loads) + 1)]
    cut = against.index(min(against))
    return Observed(
        met=_reached(votes, reversed(loads[:cut]), which=0),
        missed=_reached(votes, loads[cut:], which=1),
        confidence=1 - against[cut] / total,
        windows=total,
    )


def _against(votes: Mapping[float, tuple[float, float]], loads: list[float], cut: int) -> float:
    """Votes against a step before the load number `cut`: missed below it, met above."""
    return sum(votes[load][1] for load in loads[:cut]) + sum(votes[load][0] for load in loads[cut:])


def _reached(votes: Mapping[float, tuple[float, float]], loads: Iterable[float], *, which: int) -> float | None:
    """The first load at which, with those before it, enough votes say so."""
    seen = 0.0
    for load in loads:
        seen += votes[load][which]
        if seen >= ENOUGH - 1e-9:
            return load
    return None
