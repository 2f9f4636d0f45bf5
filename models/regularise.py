"""Samples as they come (irregular, late, twice, with gaps, resets and spikes) made into a `Series` on a grid."""

import dataclasses

import numpy as np

from models.series import CLOSE, Floats, Series

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
            are a hiccup, five minutes are not. Zero carries nothing: for counts that are exact, where nothing was
            missed and a row that lacks is not known.
        spike: how many times its neighbours' largest a lone sample may be before it is cut down to that; None, for
            counts that are exact, never cuts. 20 leaves real surges alone, which last longer than one sample.
    """

    counter: bool = False
    short_gap: float = 90.0
    spike: float | None = 20.0

    def __post_init__(self) -> None:
        if not self.short_gap >= 0:
            raise ValueError(f"short_gap is {self.short_gap!r} s: must not be negative")
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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Repairs:
    """What had to be done, in samples unless said otherwise.

    Attributes:
        samples: given.
        unknown: left out, not finite.
        late: older than the one before.
        duplicate: replaced by a later one of the same time.
        resets: at which a total fell.
        negative: clipped to zero.
        spikes: cut down.
        averaged: that share a point of the grid with another.
        carried: points that hold a value from before them.
    """

    samples: int
    unknown: int
    late: int
    duplicate: int
    resets: int
    negative: int
    spikes: int
    averaged: int
    carried: int


def regular(samples: Samples, grid: Grid, rules: Rules) -> tuple[Series, Repairs]:
    """Samples on a grid by all rules, in the order in which they may be applied, and what each of them changed."""
    known = finite(samples)
    single = merged(ordered(known))
    raw = growth(single) if rules.counter else single
    positive = clipped(raw)
    usual = positive if rules.spike is None else winsorised(positive, rules.spike)
    means, averaged = averages(usual, grid)
    values = carried(means, usual, grid, rules.short_gap)
    repairs = Repairs(
        samples=len(samples.times),
        unknown=len(samples.times) - len(known.times),
        late=int(np.count_nonzero(np.diff(known.times) < 0)),
        duplicate=len(known.times) - len(single.times),
        resets=int(np.count_nonzero(np.diff(single.values) < 0)) if rules.counter else 0,
        negative=int(np.count_nonzero(raw.values < 0)),
        spikes=int(np.count_nonzero(usual.values < positive.values)),
        averaged=averaged,
        carried=int(np.count_nonzero(np.isnan(means) & ~np.isnan(values))),
    )
    return Series(grid.start, grid.step, values), repairs


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
    around = np.pad(samples.values, SPIKE_NEIGHBOURS, constant_values=-np.inf)
    largest = np.lib.stride_tricks.sliding_window_view(around, SPIKE_NEIGHBOURS).max(axis=1)
    usual = np.maximum(largest[: len(samples.values)], largest[SPIKE_NEIGHBOURS + 1 :])
    usual[:1] = usual[-1:] = np.inf
    return Samples(samples.times, np.where(usual > 0, np.minimum(samples.values, spike * usual), samples.values))


def averages(samples: Samples, grid: Grid) -> tuple[Floats, int]:
    """Mean of the samples in [t, t + step) for each point t, NaN without any; and how many share one with another.

    The grid of the service's own history means the same.
    """
    cells = np.floor((samples.times - grid.start) / grid.step + CLOSE).astype(np.intp)
    inside = (cells >= 0) & (cells < grid.points)
    rows = np.bincount(cells[inside], minlength=grid.points)
    sums = np.bincount(cells[inside], weights=samples.values[inside], minlength=grid.points)
    return np.where(rows > 0, sums / np.maximum(rows, 1), np.nan), int(np.maximum(rows - 1, 0).sum())


def carried(values: Floats, samples: Samples, grid: Grid, short_gap: float) -> Floats:
    """Points of the grid, NaN where there is no value and the last sample before is older than `short_gap` seconds.

    By age, not by length of the gap: what a point holds must not depend on what comes after it. Expects ordered
    samples.
    """
    times = grid.times
    place = np.searchsorted(samples.times, times, side="right") - 1
    empty = np.flatnonzero(np.isnan(values) & (place >= 0))
    fresh = empty[times[empty] - samples.times[place[empty]] <= short_gap]
    filled = values.copy()
    filled[fresh] = samples.values[place[fresh]]
    return filled
