"""Rolling origins over a recorded history, with the service's own forecaster fed tick by tick."""

import dataclasses
import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from models.capacity import warmup
from models.capacity.warmup import Horizons
from models.forecasting import scoring
from models.forecasting.engine import Forecaster
from models.forecasting.forecast import Forecast
from models.forecasting.settings import DAY, MEMORY, ForecastSettings
from models.series import Floats, Series
from models.signals import Signal
from predictor.outlooks import FORECAST_SIGNALS
from predictor.replay.recorded import Key

EARLY = 1e-6  # seconds: what a sum of steps may be off
Indices = npt.NDArray[np.intp]


@dataclasses.dataclass(frozen=True, slots=True)
class Questions:
    """What is asked of a history.

    Attributes:
        warm_ups: of a new replica, seconds; for each target, since they may differ.
        every: seconds between two origins.
        interval: seconds between two forecasts of the service; part of the horizon, as there.
        signal_age: seconds by which its signals are old; likewise.
        forecast: the forecaster's numbers.
        learning: seconds that are replayed before scores count; at most a quarter of the history.
        since: Unix time of the first origin; the forecaster learns from all that lies before.
    """

    warm_ups: Mapping[str, tuple[float, ...]]
    every: float = 120.0
    interval: float = 30.0
    signal_age: float = 15.0
    forecast: ForecastSettings = dataclasses.field(default_factory=ForecastSettings)
    learning: float = DAY
    since: float = -math.inf

    def horizons(self, target: str) -> tuple[Horizons, ...]:
        """The horizons of each warm-up, as in the service."""
        return tuple(
            warmup.horizons(seconds, interval=self.interval, signal_age=self.signal_age)
            for seconds in self.warm_ups[target]
        )


@dataclasses.dataclass(frozen=True)
class Replayed:
    """One signal of one target at one warm-up; n origins, q quantiles.

    Attributes:
        key: target and signal.
        series: what was replayed.
        warm_up: seconds.
        horizons: seconds ahead, raising and lowering.
        probabilities: of the quantiles, shape (q,).
        origins: index into the series of the newest point known at each, shape (n,).
        bounds: quantiles of the largest value over the raising horizon, shape (n, q); NaN without a forecast.
        room: what is planned for over the raising horizon, likewise; the bounds, or what to keep room for all the time.
        longer: the same over the lowering horizon.
        level: present level, shape (n,).
        quality: of each forecast, "none" without one, shape (n,).
        came: largest value over the raising horizon, shape (n,); NaN where it has not passed or is half unknown.
        scored_from: first origin that counts in scores.
    """

    key: Key
    series: Series
    warm_up: float
    horizons: Horizons
    probabilities: tuple[float, ...]
    origins: Indices
    bounds: Floats
    room: Floats
    longer: Floats
    level: Floats
    quality: npt.NDArray[np.str_]
    came: Floats
    scored_from: int

    @property
    def times(self) -> Floats:
        """Unix time of each origin, shape (n,)."""
        return np.asarray(self.series.start + self.origins * self.series.step, dtype=np.float64)

    @property
    def steps(self) -> int:
        """Grid steps of the raising horizon."""
        return max(round(self.horizons.raising / self.series.step), 1)

    @property
    def every(self) -> int:
        """Grid steps between two origins."""
        return int(self.origins[1] - self.origins[0]) if len(self.origins) > 1 else 1

    @property
    def kept(self) -> Floats:
        """The room, shape (n, q), where it is planned for instead of the bounds; NaN where the bounds are."""
        return np.where(np.isclose(self.room, self.bounds, rtol=1e-9, atol=0.0), np.nan, self.room)

    @property
    def scored(self) -> Floats:
        """What came, where it counts; NaN elsewhere."""
        return np.where(np.arange(len(self.came)) >= self.scored_from, self.came, np.nan)


def run(
    recorded: Mapping[Key, Series], questions: Questions, *, tell: Callable[[float], None] = lambda _: None
) -> list[Replayed]:
    """Replays all series that the service would forecast.

    At each origin the forecaster is given the points up to then and nothing else, as the service would have had them.

    Args:
        recorded: values by target and signal.
        questions: what is asked.
        tell: called after each origin with the share of the work done, 0..1.
    """
    sheets = {key: _Sheet.of(series, questions, key) for key, series in recorded.items() if key[1] in FORECAST_SIGNALS}
    grids: dict[float, list[Key]] = defaultdict(list)
    for key in sheets:
        grids[recorded[key].step].append(key)
    whole = sum(len(sheet.origins) for sheet in sheets.values())
    done = 0
    for keys in grids.values():
        forecaster = Forecaster(questions.forecast)
        for present in _ticks({key: sheets[key] for key in keys}):
            _tick(forecaster, sheets, present)
            done += len(present)
            tell(done / max(whole, 1))
    return [one for key, sheet in sheets.items() for one in sheet.replayed(key, questions)]


def _tick(forecaster: Forecaster, sheets: Mapping[Key, "_Sheet"], present: Mapping[Key, int]) -> None:
    """Forecasts all series that have an origin now."""
    histories: dict[Hashable, Series] = {key: sheets[key].until(row) for key, row in present.items()}
    horizons: dict[Hashable, tuple[float, ...]] = {key: sheets[key].ahead for key in present}
    outlooks = forecaster.update(histories, horizons=horizons)
    for key, row in present.items():
        for place, outlook in enumerate(outlooks[key]):
            if isinstance(outlook, Forecast):
                sheets[key].bounds[place, row] = list(outlook.quantiles.values())
                sheets[key].room[place, row] = [outlook.room(q) for q in outlook.quantiles]
                sheets[key].level[row] = outlook.level
                sheets[key].quality[row] = outlook.quality


def _ticks(sheets: Mapping[Key, "_Sheet"]) -> Iterator[dict[Key, int]]:
    """For each moment with an origin: series -> number of its origin."""
    moments: dict[int, dict[Key, int]] = defaultdict(dict)
    for key, sheet in sheets.items():
        first = round(sheet.series.start / sheet.series.step)
        for row, origin in enumerate(sheet.origins.tolist()):
            moments[first + origin][key] = row
    for moment in sorted(moments):
        yield moments[moment]


@dataclasses.dataclass(frozen=True)
class _Sheet:
    """What is filled in for a series; `ahead` are its horizons.

    `bounds`, and `room` to plan for, have shape (horizons, origins, quantiles).
    """

    series: Series
    origins: Indices
    ahead: tuple[float, ...]
    bounds: Floats
    room: Floats
    level: Floats
    quality: npt.NDArray[np.str_]

    @classmethod
    def of(cls, series: Series, questions: Questions, key: Key) -> "_Sheet":
        every = max(round(questions.every / series.step), 1)
        first = round(series.start / series.step)
        origins = np.arange(-first % every, len(series), every)  # whole multiples of `every`, as the clock has them
        origins = origins[series.start + origins * series.step >= questions.since - EARLY]
        ahead = tuple(seconds for one in questions.horizons(key[0]) for seconds in (one.raising, one.lowering))
        shape = (len(ahead), len(origins), len(questions.forecast.quantiles))
        nothing = np.full(len(origins), "none", dtype="U8")
        bounds, room, level = np.full(shape, np.nan), np.full(shape, np.nan), np.full(len(origins), np.nan)
        return cls(series, origins, ahead, bounds, room, level, nothing)

    def until(self, row: int) -> Series:
        """What was known at an origin."""
        end, step = int(self.origins[row]) + 1, self.series.step
        begin = max(end - int(MEMORY / step) - 1, 0)
        return Series(self.series.start + begin * step, step, self.series.values[begin:end])

    def replayed(self, key: Key, questions: Questions) -> Iterator[Replayed]:
        for i, (warm_up, ahead) in enumerate(zip(questions.warm_ups[key[0]], questions.horizons(key[0]), strict=True)):
            yield Replayed(
                key=key,
                series=self.series,
                warm_up=warm_up,
                horizons=ahead,
                probabilities=questions.forecast.quantiles,
                origins=self.origins,
                bounds=self.bounds[2 * i],
                room=self.room[2 * i],
                longer=self.room[2 * i + 1],
                level=self.level,
                quality=self.quality,
                came=came(self.series, self.origins.tolist(), ahead.raising),
                scored_from=self._scored_from(questions.learning),
            )

    def _scored_from(self, learning: float) -> int:
        points = min(learning / self.series.step, len(self.series) / 4)
        return int(np.searchsorted(self.origins, points))


def came(series: Series, origins: Sequence[int], horizon: float) -> Floats:
    """Largest value over the horizon of each origin, by the rule of the service's own scoring."""
    out = np.full(len(origins), np.nan)
    for row, origin in enumerate(origins):
        at = series.start + origin * series.step
        if at + max(horizon, series.step) <= series.end + 1e-6:
            largest = scoring.largest_within(series, after=at, horizon=horizon)
            out[row] = np.nan if largest is None else largest
    return out


def signals_of(found: Sequence[Replayed], target: str, warm_up: float) -> dict[Signal, Replayed]:
    """What was replayed of a target at a warm-up."""
    return {one.key[1]: one for one in found if one.key[0] == target and one.warm_up == warm_up}
