"""From runs to what the tables say."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.scoreboard import contenders
from benchmarks.scoreboard.contenders import ORACLE, OURS
from models.race import frontier
from models.race.frontier import Found, How, Point

ATTAINMENTS = (0.99, 0.999)
SHORTEST = 12 * 3600.0  # seconds of recording below which a trace is listed, not averaged (docs/decisions/0002)


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """What is said of a trace.

    Attributes:
        name: of its file.
        held_out: whether no choice was made on it.
        lasts: seconds of recording.
        start: of what is run, seconds.
        end: likewise.
        requests: run.
        profile: of the replica.
        tokens: factor on each request's tokens.
        rate: requests a second that a replica sustains.
        objective: seconds to the first token.
        peak: replicas the busiest five minutes need.
    """

    name: str
    held_out: bool
    lasts: float
    start: float
    end: float
    requests: int
    profile: str
    tokens: float
    rate: float
    objective: float
    peak: int

    @property
    def averaged(self) -> bool:
        """Whether it counts in averages."""
        return self.lasts >= SHORTEST


@dataclasses.dataclass(frozen=True, slots=True)
class Race:
    """All runs on one trace at one warm-up (seconds): points by policy."""

    trace: Facts
    warm_up: float
    points: Mapping[str, tuple[Point, ...]]

    def found(self, policy: str, attainment: float) -> Found:
        """What an attainment costs a policy."""
        return frontier.at_attainment(self.points.get(policy, ()), attainment)

    def over_oracle(self, policy: str, attainment: float) -> float | None:
        """Replica-hours over the oracle's at the same attainment; None where either never gets there."""
        mine, best = self.found(policy, attainment), self.found(ORACLE, attainment)
        return mine.hours / best.hours if mine.hours and best.hours else None

    def over_ours(self, policy: str, attainment: float) -> float | None:
        """Replica-hours over Floorcast's at the same attainment; None where either never gets there."""
        theirs, mine = self.found(policy, attainment), self.found(OURS, attainment)
        return theirs.hours / mine.hours if theirs.hours and mine.hours else None

    def misses(self, policy: str, *, where: str) -> float | None:
        """Times Floorcast's misses at the replica-hours that `where`, a policy, needs for the first attainment.

        None where that never gets there, or all runs of one of the two cost more.
        """
        found = self.found(where, ATTAINMENTS[0])
        if found.hours is None:
            return None
        theirs, mine = (frontier.misses_at(self.points.get(name, ()), found.hours) for name in (policy, OURS))
        if theirs is None or mine is None:
            return None
        return max(theirs, frontier.FEWEST) / max(mine, frontier.FEWEST)


@dataclasses.dataclass(frozen=True, slots=True)
class Effort:
    """What it took.

    Attributes:
        seconds: from start to end, by the clock.
        cores: of the machine.
        processes: that worked side by side.
        runs: of a policy on a trace at a warm-up and a value of its knob.
        kept: how many of those had been made before, with the same code, and were taken from there.
        busy: seconds that the others took, one process each.
    """

    seconds: float
    cores: int
    processes: int
    runs: int
    kept: int
    busy: float


@dataclasses.dataclass(frozen=True, slots=True)
class Board:
    """All there is to be told: races of which every policy was run, all traces, races not run in the time, effort."""

    races: Sequence[Race]
    traces: Sequence[Facts]
    missing: Sequence[str]
    effort: Effort


@dataclasses.dataclass(frozen=True, slots=True)
class Summary:
    """A policy over several traces at one warm-up.

    Attributes:
        policy: its name.
        races: traces on which the oracle gets there.
        reached: attainment -> on how many of them the policy does.
        ratios: attainment -> geometric mean of replica-hours over the oracle's, over those it reaches.
        over_ours: geometric mean of replica-hours over Floorcast's at the first attainment, where both get there.
        misses: geometric mean of misses over Floorcast's at the replica-hours Floorcast needs for the first attainment,
            over `compared` traces.
        compared: on how many it has runs as cheap.
        theirs: the same at the replica-hours the policy needs for it, over `there` traces.
        there: on how many it gets there, and Floorcast has runs as cheap.
        starts: mean of starts at the first attainment.
    """

    policy: str
    races: int
    reached: Mapping[float, int]
    ratios: Mapping[float, float | None]
    over_ours: float | None
    misses: float | None
    compared: int
    theirs: float | None
    there: int
    starts: float | None


def races(facts: Mapping[str, Facts], swept: Iterable[tuple[str, float, str, Sequence[dict[str, Any]]]]) -> list[Race]:
    """Runs (trace, warm-up, policy, points) put together by trace and warm-up; the oracle's aims are one policy."""
    found: dict[tuple[str, float], dict[str, list[Point]]] = {}
    for name, warm_up, policy, points in swept:
        mine = found.setdefault((name, warm_up), {}).setdefault(contenders.family(policy), [])
        mine += [_point(one) for one in points]
    return [
        Race(facts[name], warm_up, {policy: tuple(points) for policy, points in each.items() if points})
        for (name, warm_up), each in found.items()
    ]


def _point(run: dict[str, Any]) -> Point:
    missed = run["missed"] / run["requests"] if run["requests"] else 0.0
    return Point(f"{run['knob']:g}", run["replica_hours"], missed, run["starts"])


def summary(policy: str, among: Sequence[Race]) -> Summary:
    """One policy over some races at one warm-up."""
    ratios = {a: [r for race in among if (r := race.over_oracle(policy, a)) is not None] for a in ATTAINMENTS}
    misses, theirs = (
        [ratio for race in among if (ratio := race.misses(policy, where=where)) is not None] for where in (OURS, policy)
    )
    starts = [found.starts for race in among if (found := race.found(policy, ATTAINMENTS[0])).starts is not None]
    return Summary(
        policy,
        sum(race.found(ORACLE, ATTAINMENTS[0]).how is not How.NEVER for race in among),
        {a: len(values) for a, values in ratios.items()},
        {a: frontier.geometric(values) for a, values in ratios.items()},
        frontier.geometric([r for race in among if (r := race.over_ours(policy, ATTAINMENTS[0])) is not None]),
        frontier.geometric(misses),
        len(misses),
        frontier.geometric(theirs),
        len(theirs),
        sum(starts) / len(starts) if starts else None,
    )


def in_hindsight(among: Sequence[Race], attainment: float) -> list[float]:
    """Replica-hours over the oracle's of the best policy of each race, where Floorcast gets there.

    What a policy would need that always chose the best of them all, knowing the day: the virtual best solver of
    algorithm selection (Xu et al., SAT 2012). The clairvoyant is none of them.
    """
    reached = [race for race in among if race.over_oracle(OURS, attainment) is not None]
    return [
        min(
            ratio
            for name in race.points
            if name != ORACLE and (ratio := race.over_oracle(name, attainment)) is not None
        )
        for race in reached
    ]


@dataclasses.dataclass(frozen=True, slots=True)
class Beside:
    """A policy of a single run a trace beside another one.

    Attributes:
        missed: share of requests, mean over traces.
        hours: replica-hours over the other's, geometric mean.
        starts: replicas started, mean.
    """

    missed: float
    hours: float
    starts: float


def beside(among: Sequence[Race], policy: str, other: str) -> Beside:
    """One policy beside another, over races on which each was run once."""
    mine, theirs = ([race.points[name][0] for race in among] for name in (policy, other))
    ratios = [one.hours / another.hours for one, another in zip(mine, theirs, strict=True)]
    return Beside(
        sum(point.missed for point in mine) / len(mine),
        frontier.geometric(ratios) or 0.0,
        sum(point.starts for point in mine) / len(mine),
    )


def policies(among: Sequence[Race]) -> list[str]:
    """All policies, by what they cost at the first attainment; those that seldom get there last."""
    names = sorted({policy for race in among for policy in race.points})

    def rank(name: str) -> tuple[int, float]:
        found = summary(name, among)
        return -found.reached[ATTAINMENTS[0]], found.ratios[ATTAINMENTS[0]] or float("inf")

    return sorted(names, key=rank)


def halves(among: Sequence[Race]) -> dict[str, list[Race]]:
    """Averaged races: all, development and held out."""
    long = [race for race in among if race.trace.averaged]
    return {
        "development": [race for race in long if not race.trace.held_out],
        "held out": [race for race in long if race.trace.held_out],
        "all": long,
    }
