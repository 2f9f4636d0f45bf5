"""Samples as they come (irregular, late, twice, with gaps, resets and spikes) made into a `Series` on a grid."""

import dataclasses

import numpy as np

from models.series import Floats, Series

SPIKE_NEIGHBOURS = 5  # samples on either side that say what is usual


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Where the points of the result lie.

    Attributes:
        start: Unix time of the first, seconds.
        step: seconds from one to the next.
        points: how many.
    """

    start: float
    step: float
    points: int

    def __post_init__(self) -> None:
        if self.step <= 0:
            raise ValueError(f"step is {self.step!r} s: must be positive")
        if self.points < 0:
            raise ValueError(f"points are {self.points!r}: must not be negative")

    @property
    def times(self) -> Floats:
        """Unix times of the points, shape (points,)."""
        return self.start + self.step * np.arange(self.points, dtype=np.float64)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How samples are read.

    Attributes:
        counter: whether the samples are totals that only grow; the result is then their growth per second.
        short_gap: seconds for which a value is carried on. Beyond it nothing is known: two missed scrapes at 30 s
            are a hiccup, five minutes are not.
        spike: how many times its neighbours' largest a lone sample may be before it is cut down to that; None never
            cuts. 20 leaves real surges alone, which last longer than one sample.
    """

    counter: bool = False
    short_gap: float = 90.0
    spike: float | None = 20.0

    def __post_init__(self) -> None:
        if self.short_gap <= 0:
            raise ValueError(f"short_gap is {self.short_gap!r} s: must be positive")
        if self.spike is not None and self.spike <= 1:
            raise ValueError(f"spike is {self.spike!r}: must be more than 1, else every value is cut")


@dataclasses.dataclass(frozen=True, slots=True)
class Samples:
    """Times (Unix seconds) and values, both shape (n,)."""

    times: Floats
    values: Floats

    def __post_init__(self) -> None:
        if self.times.shape != self.values.shape or self.times.ndim != 1:
            raise ValueError(f"times {self.times.shape} and values {self.values.shape} must be of one length")


def regular(samples: Samples, grid: Grid, rules: Rules | None = None) -> Series:
    """Samples on a grid by all rules, in the order in which they may be applied."""
    rules = rules or Rules()
    samples = merged(ordered(finite(samples)))
    if rules.counter:
        samples = growth(samples)
    samples = clipped(samples)
    if rules.spike is not None:
        samples = winsorised(samples, rules.spike)
    return carried(samples, grid, rules.short_gap)


def finite(samples: Samples) -> Samples:
    """Without NaN and infinity, which say that something is not known."""
    known = np.isfinite(samples.times) & np.isfinite(samples.values)
    return Samples(samples.times[known], samples.values[known])


def ordered(samples: Samples) -> Samples:
    """In the order of time; samples of one time stay in the order in which they came."""
    order = np.argsort(samples.times, kind="stable")
    return Samples(samples.times[order], samples.values[order])


def merged(samples: Samples) -> Samples:
    """One sample a time, the one that came last: a correction replaces what it corrects. Expects ordered samples."""
    last = np.append(np.diff(samples.times) > 0, [True] * (len(samples.times) > 0))
    return Samples(samples.times[last.astype(np.bool_)], samples.values[last.astype(np.bool_)])


def growth(samples: Samples) -> Samples:
    """Growth per second of a total, known at the later of two samples; one sample fewer than given.

    A total that fell was reset to zero in between: what it shows now is what it has grown by since, at least.
    """
    steps = np.diff(samples.values)
    grown = np.where(steps < 0, samples.values[1:], steps)
    return Samples(samples.times[1:], grown / np.diff(samples.times))


def clipped(samples: Samples) -> Samples:
    """Negative values, which a load cannot have, as zero."""
    return Samples(samples.times, np.maximum(samples.values, 0.0))


def winsorised(samples: Samples, spike: float) -> Samples:
    """Lone samples above `spike` times the largest of their neighbours cut down to that.

    Neighbours lie on both sides: the first and the last sample stay, as a surge begins with one sample too. Where
    the neighbours are all zero nothing is usual, and nothing is cut.
    """
    values = samples.values.copy()
    for i in range(1, len(values) - 1):
        before = samples.values[max(i - SPIKE_NEIGHBOURS, 0) : i]
        after = samples.values[i + 1 : i + 1 + SPIKE_NEIGHBOURS]
        usual = max(float(before.max()), float(after.max()))
        if usual > 0:
            values[i] = min(values[i], spike * usual)
    return Samples(samples.times, values)


def carried(samples: Samples, grid: Grid, short_gap: float) -> Series:
    """Each point of the grid has the last value at or before it, if that is no older than `short_gap` seconds.

    Expects ordered samples.
    """
    times = grid.times
    place = np.searchsorted(samples.times, times + 1e-6, side="right") - 1
    values = np.full(grid.points, np.nan)
    some = place >= 0
    fresh = some.copy()
    fresh[some] = times[some] - samples.times[place[some]] <= short_gap + 1e-6
    values[fresh] = samples.values[place[fresh]]
    return Series(grid.start, grid.step, values)
