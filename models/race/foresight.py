"""Arrival forecasts of whole days at once: they do not depend on what a policy does, so they are made once a trace.

Every forecast uses only what was known at its time, through the service's own `Forecaster`.
"""

import dataclasses
import math
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np

from models.capacity import warmup
from models.forecasting.engine import Forecaster
from models.forecasting.forecast import Forecast, NotEnoughHistory, Outlook, Quality
from models.forecasting.settings import MEMORY, ForecastSettings
from models.series import Floats, Series

# The median and below are for sweeps only: the service forecasts from the median up.
QUANTILES = (0.05, 0.2, 0.5, 0.8, 0.9, 0.95, 0.975, 0.99, 0.995)
SLOW, SIGNAL_AGE = 30.0, 15.0  # seconds; the service's own defaults


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Foresight:
    """The forecasts of one trace at one warm-up.

    Attributes:
        start: time of the first forecast, seconds.
        step: seconds between two.
        horizons: how far ahead they look.
        probabilities: of the columns.
        raising: load to plan for over the raising horizon, shape (n, probabilities); NaN with too little history.
        lowering: over the lowering horizon.
    """

    start: float
    step: float
    horizons: warmup.Horizons
    probabilities: tuple[float, ...]
    raising: Floats
    lowering: Floats

    def index(self, now: float) -> int:
        """Row of the forecast that is the newest at a time; the last one afterwards, -1 before the first."""
        return min(int((now - self.start) // self.step), len(self.raising) - 1)

    def at(self, index: int) -> tuple[Outlook, Outlook]:
        """Outlooks over the raising and the lowering horizon."""
        rows = ((self.raising, self.horizons.raising), (self.lowering, self.horizons.lowering))
        first, second = (self._outlook(rows_of, index, horizon) for rows_of, horizon in rows)
        return first, second

    def _outlook(self, bounds: Floats, index: int, horizon: float) -> Outlook:
        row = bounds[index].tolist() if index >= 0 else [math.nan]
        if any(map(math.isnan, row)):
            return NotEnoughHistory(have=0, need=2)
        values = dict(zip(self.probabilities, row, strict=True))
        at = self.start + index * self.step
        return Forecast(at, horizon, values[self.probabilities[0]], values, Quality.SEASONED)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Past:
    """What is forecast: a whole recording of arrivals a second, and from when on.

    A point of `series` at time t is what arrived in the step before t.
    """

    series: Series
    start: float
    end: float


def foresee(
    pasts: Mapping[str, Past], warm_ups: Sequence[float], *, tell: Callable[[float], None] = lambda _: None
) -> dict[tuple[str, float], Foresight]:
    """Forecasts at every step of each recording, for each warm-up (seconds): (name, warm-up) -> foresight.

    Recordings on one grid are forecast together, as the service does with its targets.
    """
    settings = ForecastSettings(quantiles=QUANTILES)
    ahead = {each: warmup.horizons(each, interval=SLOW, signal_age=SIGNAL_AGE) for each in warm_ups}
    flat = tuple(horizon for one in ahead.values() for horizon in (one.raising, one.lowering))
    ticks = {name: _ticks(past) for name, past in pasts.items()}
    found = {name: np.full((len(ticks[name]), len(flat), len(QUANTILES)), np.nan) for name in pasts}
    forecaster, longest = Forecaster(settings), max(map(len, ticks.values()), default=0)
    for i in range(longest):
        running = [name for name in pasts if i < len(ticks[name])]
        histories: dict[Hashable, Series] = {name: _known(pasts[name].series, ticks[name][i]) for name in running}
        outlooks = forecaster.update(histories, horizons=dict.fromkeys(histories, flat))
        for name in running:
            for k, outlook in enumerate(outlooks[name]):
                if isinstance(outlook, Forecast):
                    found[name][i, k] = [outlook.room(q) for q in QUANTILES]
        tell((i + 1) / longest)
    return {
        (name, each): Foresight(
            float(ticks[name][0]), pasts[name].series.step, ahead[each], QUANTILES,
            found[name][:, 2 * k], found[name][:, 2 * k + 1],
        )
        for name in pasts
        for k, each in enumerate(warm_ups)
    }  # fmt: skip


def _ticks(past: Past) -> Floats:
    step = past.series.step
    first = np.floor(past.start / step) * step
    return np.asarray(np.arange(first, past.end, step), dtype=np.float64)


def _known(series: Series, now: float) -> Series:
    last = min(round((now - series.start) / series.step) + 1, len(series))
    first = max(last - int(MEMORY / series.step), 0)
    return Series(series.start + first * series.step, series.step, series.values[first : max(last, 0)])
