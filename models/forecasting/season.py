"""The usual jump at this time: mean score at the same phase of earlier seasons."""

import dataclasses
import datetime as dt

import numpy as np
import numpy.typing as npt

from models.forecasting.settings import DAY, MEMORY, ForecastSettings
from models.series import Floats

Ints = npt.NDArray[np.intp]


@dataclasses.dataclass(frozen=True, slots=True)
class Phase:
    """Where to look for the same phase.

    Attributes:
        period: seconds after which load repeats.
        spreads: how many origins on either side are averaged in, one usual jump for each.
        previous: how many earlier seasons are looked at.
    """

    period: float
    spreads: tuple[int, ...]
    previous: int


def phases(settings: ForecastSettings, spacing: float) -> tuple[Phase, ...]:
    """Phases to look at when origins lie `spacing` seconds apart.

    Jobs start on the minute, people within a quarter of an hour: seasons of days and more are averaged over several
    widths. A width of more than a quarter of the season would follow nothing.
    """
    found = []
    for period in settings.seasons:
        wanted = (1,) if period < DAY else (0, 1, 5) if period < 2 * DAY else (5,)
        spreads = tuple(spread for spread in wanted if 4 * max(spread, 1) * spacing <= period)
        previous = min(settings.previous, int(MEMORY // period))
        if spreads and previous:
            found.append(Phase(period, spreads, previous))
    return tuple(found)


def reach(found: tuple[Phase, ...], spacing: float) -> int:
    """How many origins back the earliest score lies that any phase looks at."""
    return max((round((p.previous * p.period + 3600.0) / spacing) + max(p.spreads) for p in found), default=0) + 1


def offsets(times: Floats, zone: dt.tzinfo) -> Floats:
    """Seconds by which local time is ahead of UTC, shape of `times`. Looked up once an hour."""
    hours, where = np.unique(np.floor(times / 3600.0), return_inverse=True)
    stamps = [dt.datetime.fromtimestamp(hour * 3600.0, zone).utcoffset() for hour in hours]
    return np.array([stamp.total_seconds() if stamp else 0.0 for stamp in stamps])[where]


def earlier(times: Floats, period: float, count: int, zone: dt.tzinfo) -> Floats:
    """Times `count` seasons before `times`; for whole days at the same local time, across changes of the clock."""
    back = times - count * period
    if period % DAY or zone is dt.UTC:
        return back
    return back + offsets(times, zone) - offsets(back, zone)


@dataclasses.dataclass(frozen=True, slots=True)
class Ring:
    """Scores of the last origins, one row a series.

    Attributes:
        scores: shape (rows, size), NaN where unknown; origin number o lies in column o modulo size.
        spacing: seconds from one origin to the next: origin o is at Unix time o times spacing.
        lag: origins after which a score of each row is known, shape (rows,).
        zone: where days begin.
    """

    scores: npt.NDArray[np.floating]
    spacing: float
    lag: Ints
    zone: dt.tzinfo

    def usual(self, times: Floats, found: tuple[Phase, ...]) -> Floats:
        """Mean score and mean absolute score at the same phases of earlier seasons.

        Only scores whose horizon had passed at that time count.

        Args:
            times: Unix times, shape (n,).
            found: phases to look at.

        Returns:
            shape (rows, n, 2 * widths): first all means, then all absolute means; 0 where none is known.
        """
        means = [self._phase(times, phase) for phase in found]
        if not means:
            return np.zeros((len(self.scores), len(times), 0))
        both = np.concatenate(means, axis=2)
        return np.concatenate([both[..., 0::2], both[..., 1::2]], axis=2)

    def _phase(self, times: Floats, phase: Phase) -> Floats:
        total = np.zeros((len(self.scores), len(times), 2 * len(phase.spreads)))
        seasons = np.zeros((len(self.scores), len(times), len(phase.spreads)))
        widest = max(phase.spreads)
        for count in range(1, phase.previous + 1):
            back = earlier(times, phase.period, count, self.zone)
            origin = np.floor(back / self.spacing + 0.5).astype(np.intp)
            columns = (origin[:, None] + np.arange(-widest, widest + 1)) % self.scores.shape[1]
            block = self.scores.take(columns.ravel(), axis=1).reshape(len(self.scores), len(times), 2 * widest + 1)
            block = block.astype(np.float32)
            for i, spread in enumerate(phase.spreads):
                known = origin + spread + self.lag[:, None] <= np.floor(times / self.spacing + 1e-6)
                mean, size, any_known = _means(block[..., widest - spread : widest + spread + 1])
                any_known = any_known & known
                total[..., 2 * i] += np.where(any_known, mean, 0.0)
                total[..., 2 * i + 1] += np.where(any_known, size, 0.0)
                seasons[..., i] += any_known
        return total / np.maximum(np.repeat(seasons, 2, axis=2), 1.0)


def _means(block: npt.NDArray[np.floating]) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
    """Mean, mean absolute value and whether any is known, over the last axis."""
    known = ~np.isnan(block)
    count = known.sum(axis=-1)
    clean = np.where(known, block, 0.0)
    each = np.maximum(count, 1)
    return clean.sum(axis=-1) / each, np.abs(clean).sum(axis=-1) / each, count > 0
