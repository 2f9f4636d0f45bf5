"""What a policy costs at a share of requests in time: the frontier of its points, read off, never extrapolated."""

import dataclasses
import enum
import math
from collections.abc import Iterable, Sequence

FEWEST = 1e-6  # a share of misses below this counts as this: logarithms
ALIKE = 1e-8  # relative: hours that differ by less are the same, as no line between them can be told from rounding


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    """One run of a policy at one aggressiveness.

    Attributes:
        knob: the aggressiveness, for people.
        hours: replica-hours.
        missed: share of the requests that missed the objective, 0..1.
        starts: replicas started.
    """

    knob: str
    hours: float
    missed: float
    starts: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.hours) and self.hours >= 0 and 0 <= self.missed <= 1):
            raise ValueError(f"hours {self.hours!r} and missed {self.missed!r}: must be >= 0, and lie in 0..1")


class How(enum.StrEnum):
    """How a figure was come by."""

    BETWEEN = "between"  # interpolated between two runs
    CHEAPEST = "cheapest"  # the policy's cheapest run is that good already: it may cost less at another setting
    NEVER = "never"  # no run is that good


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """Replica-hours and starts at an attainment; None where it is never reached."""

    how: How
    hours: float | None = None
    starts: float | None = None


def frontier(points: Iterable[Point]) -> list[Point]:
    """The points of which none is both cheaper and better, by rising hours and falling misses."""
    best: list[Point] = []
    for point in sorted(points, key=lambda point: (point.hours, point.missed)):
        if not best or point.missed < best[-1].missed:
            best.append(point)
    return best


def at_attainment(points: Iterable[Point], attainment: float) -> Found:
    """What an attainment (0..1) costs, on the line between two neighbours over the logarithm of misses."""
    allowed, edge = max(1 - attainment, FEWEST), frontier(points)
    good = next((i for i, point in enumerate(edge) if point.missed <= allowed + 1e-12), None)
    if good is None:
        return Found(How.NEVER)
    if good == 0:
        return Found(How.CHEAPEST, edge[0].hours, edge[0].starts)
    below, above = edge[good - 1], edge[good]
    share = _share(_log(below.missed), _log(above.missed), _log(allowed))
    return Found(
        How.BETWEEN,
        below.hours + share * (above.hours - below.hours),
        below.starts + share * (above.starts - below.starts),
    )


def misses_at(points: Iterable[Point], hours: float) -> float | None:
    """Share of misses at so many replica-hours; None where every run costs more.

    More hours than those of the dearest run are spent for nothing: the share stays that of the best run.
    """
    edge = frontier(points)
    if not edge or hours < edge[0].hours - 1e-9:
        return None
    after = next((i for i, point in enumerate(edge) if point.hours > hours * (1 + ALIKE)), None)
    if after is None or after == 0:
        return edge[-1 if after is None else 0].missed
    below, above = edge[after - 1], edge[after]
    share = _share(below.hours, above.hours, hours)
    return math.exp(_log(below.missed) + share * (_log(above.missed) - _log(below.missed)))


def geometric(values: Sequence[float]) -> float | None:
    """Geometric mean; None of nothing. Raises ValueError when a value is not positive."""
    if any(not value > 0 for value in values):
        raise ValueError(f"values are {list(values)!r}: all must be positive")
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def _log(missed: float) -> float:
    return math.log(max(missed, FEWEST))


def _share(start: float, end: float, at: float) -> float:
    return min(max((at - start) / (end - start), 0.0), 1.0) if end != start else 1.0
