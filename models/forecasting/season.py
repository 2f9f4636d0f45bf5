"""The usual jump at this time: mean score at the same phase of earlier seasons."""

import dataclasses
import datetime as dt
import math

import numpy as np
import numpy.typing as npt

from models.forecasting.settings import DAY
from models.series import Floats

LEAST_SEASONS = 2  # one earlier season is a coincidence


@dataclasses.dataclass(frozen=True, slots=True)
class Phase:
    """Where to look for the same phase.

    Attributes:
        period: seconds after which load repeats.
        spread: origins on either side that are averaged in.
        previous: how many earlier seasons are looked at.
    """

    period: float
    spread: int
    previous: int

    @property
    def least(self) -> int:
        """Earlier seasons that must be known."""
        return min(LEAST_SEASONS, self.previous)


def offsets(times: Floats, zone: dt.tzinfo) -> Floats:
    """Seconds by which local time is ahead of UTC, shape of `times`. Looked up once an hour."""
    hours, where = np.unique(np.floor(times / 3600.0), return_inverse=True)
    stamps = [dt.datetime.fromtimestamp(hour * 3600.0, zone).utcoffset() for hour in hours]
    return np.array([stamp.total_seconds() if stamp else 0.0 for stamp in stamps])[where]


def earlier(times: Floats, period: float, count: int, zone: dt.tzinfo) -> Floats:
    """Times `count` seasons before `times`; for whole days at the same local time, across changes of the clock."""
    back = times - count * period
    if period % DAY:
        return back
    return back + offsets(times, zone) - offsets(back, zone)


@dataclasses.dataclass(frozen=True, slots=True)
class Origins:
    """Evenly spaced times at which past forecasts are scored.

    Attributes:
        start: Unix time of the first, seconds.
        spacing: seconds from one to the next.
        ahead: horizon, seconds: a score is known that long after its origin.
        zone: where days begin.
    """

    start: float
    spacing: float
    ahead: float
    zone: dt.tzinfo


def centres(scores: Floats, origins: Origins, phase: Phase, *, at: Floats) -> Floats:
    """Mean score at the same phase of earlier seasons, for each time in `at`.

    Only scores whose horizon had passed at that time count.

    Args:
        scores: shape (rows, n), NaN where unknown, one column an origin.
        origins: when the columns are.
        phase: season, spread and number of earlier seasons.
        at: Unix times, shape (m,).

    Returns:
        shape (rows, m); NaN where fewer than `phase.least` earlier seasons are known.
    """
    sums, counts = _around(scores, phase.spread)
    first = max(math.ceil((origins.ahead + phase.spread * origins.spacing) / phase.period), 1)
    total = np.zeros((len(scores), len(at)))
    seasons = np.zeros((len(scores), len(at)))
    for count in range(first, first + phase.previous):
        back = earlier(at, phase.period, count, origins.zone)
        columns = np.floor((back - origins.start) / origins.spacing + 0.5).astype(np.intp)
        known = _pick(counts, columns)
        total += _pick(sums, columns) / np.maximum(known, 1.0)
        seasons += known > 0
    return np.where(seasons >= phase.least, total / np.maximum(seasons, 1.0), np.nan)


def _around(scores: Floats, spread: int) -> tuple[Floats, Floats]:
    """Sum and count of known scores within `spread` origins, both shape (rows, n)."""
    known = ~np.isnan(scores)
    sums, counts = np.where(known, scores, 0.0), known.astype(np.float64)
    return _box(sums, spread), _box(counts, spread)


def _box(values: Floats, spread: int) -> Floats:
    """Sum over 2 spread + 1 neighbours."""
    sums = np.cumsum(np.pad(values, ((0, 0), (spread + 1, spread))), axis=1)
    width = 2 * spread + 1
    return np.asarray(sums[:, width:] - sums[:, :-width])


def _pick(values: Floats, at: npt.NDArray[np.intp]) -> Floats:
    """Columns `at` of `values`; 0 where they lie before the first or after the last."""
    inside = (at >= 0) & (at < values.shape[1])
    return np.where(inside, values[:, np.where(inside, at, 0)], 0.0)
