"""What the forecast is compared with, at the same origins and from the same points. Each gives (origins, quantiles)."""

import dataclasses
import importlib
import importlib.util
import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pandas as pd
from statsforecast.models import AutoARIMA, AutoETS, SimpleExponentialSmoothingOptimized

from models.forecasting import conformal
from models.forecasting.settings import DAY
from models.series import Floats, Series
from predictor.replay.backtest import Indices

WINDOW = 7200.0  # seconds a model is fitted on, as for the level in the service
LEAST = 10  # points: what the rival planner waits for
PROPHETS = 50  # points the planner fits its Prophet on, however far apart they are
BATCH = 2000
MEDIAN = 0.5


class Case(Protocol):
    """What is forecast and when; a `Replayed` is one, and so is what the benchmark asks."""

    @property
    def series(self) -> Series:
        """The whole history."""

    @property
    def origins(self) -> Indices:
        """Indices of the newest point known at each origin, shape (n,)."""

    @property
    def came(self) -> Floats:
        """Largest value over the horizon of each origin, shape (n,); NaN where unknown."""

    @property
    def probabilities(self) -> tuple[float, ...]:
        """Of the quantiles."""

    @property
    def steps(self) -> int:
        """Grid steps of the horizon."""

    @property
    def every(self) -> int:
        """Grid steps between two origins."""


@dataclasses.dataclass(frozen=True, slots=True)
class Rival:
    """One way to forecast.

    Attributes:
        name: for tables.
        text: what it does.
        sampled: whether it is too slow for every origin.
        bounds: bounds at some origins (places among the origins), shape (places, quantiles).
    """

    name: str
    text: str
    sampled: bool
    bounds: Callable[[Case, Sequence[int]], Floats]


def window(one: Case, place: int) -> Floats:
    """Known values of the two hours that end at an origin, at least ten steps long."""
    return _before(one, place, max(round(WINDOW / one.series.step), LEAST))


def _before(one: Case, place: int, points: int) -> Floats:
    """Known values among the last `points` up to an origin."""
    end = int(one.origins[place]) + 1
    values = one.series.values  # noqa: PD011  (no frame)
    tail = values[max(end - points, 0) : end]
    return np.asarray(tail[~np.isnan(tail)])


def ses(one: Case, places: Sequence[int]) -> Floats:
    """Level by optimised simple exponential smoothing, shape (places,)."""
    model, out = SimpleExponentialSmoothingOptimized(), np.full(len(places), np.nan)
    for i, place in enumerate(places):
        known = window(one, place)
        if len(known) > 1:
            out[i] = model.forecast(y=known, h=1)["mean"][0]
    return out


def level(one: Case, places: Sequence[int]) -> Floats:
    """The present level, whatever the probability."""
    return _same(ses(one, places), one)


def last_value(one: Case, places: Sequence[int]) -> Floats:
    """The last known value, whatever the probability: the planner's `constant`."""
    known = [window(one, place) for place in places]
    return _same(np.array([values[-1] if len(values) else np.nan for values in known]), one)


def conformal_ses(one: Case, places: Sequence[int]) -> Floats:
    """SES plus split-conformal quantiles of a day of its past misses, in the unit of the values."""
    return around(one, ses(one, range(len(one.origins))))[list(places)]


def seasonal_naive(one: Case, places: Sequence[int]) -> Floats:
    """What came over the same horizon a day ago (on the first day: SES), plus its own split-conformal quantiles."""
    return seasonal_around(one, ses(one, range(len(one.origins))))[list(places)]


def seasonal_around(one: Case, first_day: Floats) -> Floats:
    """The same at all origins; `first_day` stands in where there is no yesterday."""
    back = max(round(DAY / (one.every * one.series.step)), 1)
    before = np.concatenate([np.full(back, np.nan), one.came])[: len(one.came)]
    # A horizon of a day ago has passed unless it is longer than a day: then it would be the future.
    if one.steps * one.series.step > DAY:
        before[:] = np.nan
    return around(one, np.where(np.isnan(before), first_day, before))


def around(one: Case, centre: Floats) -> Floats:
    """Centre plus quantiles of a day of scores, of those only whose horizon has passed."""
    lag = -(-one.steps // one.every)
    width = max(round(DAY / (one.every * one.series.step)), 1)
    scores = np.concatenate([np.full(width + lag, np.nan), one.came - centre])
    windows = np.lib.stride_tricks.sliding_window_view(scores, width)[1 : len(centre) + 1]
    parts = [conformal.quantiles(windows[i : i + BATCH], one.probabilities) for i in range(0, len(windows), BATCH)]
    return np.asarray(np.maximum.accumulate(centre[:, None] + np.concatenate(parts), axis=1))


def native_ets(one: Case, places: Sequence[int]) -> Floats:
    """Largest upper limit of AutoETS's own intervals over the horizon."""
    asked: list[Any] = [round(200 * q - 100, 6) for q in one.probabilities if q > MEDIAN]

    def bounds(known: Floats) -> Floats:
        found = AutoETS(season_length=1).forecast(y=known, h=one.steps, level=sorted(asked))
        limits = {float(name[3:]): values for name, values in found.items() if name.startswith("hi-")}
        wide = [limits.get(round(200 * q - 100, 6), found["mean"]) for q in one.probabilities]
        return np.array([np.max(values) for values in wide])

    return _fitted(one, places, bounds)


def arima(one: Case, places: Sequence[int]) -> Floats:
    """Largest point forecast of an automatic ARIMA: the planner has no quantiles."""
    return _fitted(one, places, lambda known: np.max(AutoARIMA().forecast(y=known, h=one.steps)["mean"]))


def kalman(one: Case, places: Sequence[int]) -> Floats:
    """Largest point forecast of a local linear trend: noise diag(1, .1), observation noise 10, as the planner has."""
    return _fitted(one, places, lambda known: np.float64(np.max(_local_trend(known, one.steps))))


def prophet(one: Case, places: Sequence[int]) -> Floats:
    """Largest point forecast of Prophet, refitted at each origin on the last 50 points as the planner does.

    Without seasons: on so few points Prophet's own rules leave them out, and say so each time.
    """
    model = importlib.import_module("prophet").Prophet
    logging.getLogger("cmdstanpy").disabled = True  # it tells of every fit

    def bounds(known: Floats) -> Floats:
        times = pd.date_range("2024-01-01", periods=len(known) + one.steps, freq=pd.Timedelta(seconds=one.series.step))
        fitted = model(daily_seasonality=False, weekly_seasonality=False, uncertainty_samples=0)
        fitted.fit(pd.DataFrame({"ds": times[: len(known)], "y": known}))
        return np.asarray(np.max(fitted.predict(pd.DataFrame({"ds": times[len(known) :]}))["yhat"]))

    return _fitted(one, places, bounds, points=PROPHETS)


def _fitted(
    one: Case, places: Sequence[int], bounds: Callable[[Floats], Floats | np.float64], *, points: int | None = None
) -> Floats:
    """Bounds from a model fitted at each place, on the window or the last points before it.

    NaN with too few points, or where the model gives up.
    """
    out = np.full((len(places), len(one.probabilities)), np.nan)
    for i, place in enumerate(places):
        known = window(one, place) if points is None else _before(one, place, points)
        if len(known) <= LEAST:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they warn of every series they cannot fit well
            try:
                out[i] = bounds(known)
            except (NotImplementedError, ValueError, ArithmeticError, RuntimeError):  # constant, or too short for it
                continue
    return out


def _local_trend(known: Floats, steps: int) -> Floats:
    state, spread = np.array([known[0], 0.0]), np.eye(2) * 1000.0
    move, noise = np.array([[1.0, 1.0], [0.0, 1.0]]), np.diag([1.0, 0.1])
    for value in known[1:]:
        state, spread = move @ state, move @ spread @ move.T + noise
        gain = spread[:, 0] / (spread[0, 0] + 10.0)
        state = state + gain * (value - state[0])
        spread = spread - np.outer(gain, spread[0])
    return np.asarray(state[0] + state[1] * np.arange(1, steps + 1))


def _same(values: Floats, one: Case) -> Floats:
    return np.repeat(values[:, None], len(one.probabilities), axis=1)


ALL: tuple[Rival, ...] = (
    Rival("conformal SES", "level plus quantiles of its past misses", sampled=False, bounds=conformal_ses),
    Rival("seasonal naive", "the same time yesterday, likewise", sampled=False, bounds=seasonal_naive),
    Rival("reactive level", "the smoothed load of now", sampled=False, bounds=level),
    Rival("planner: constant", "the last value", sampled=False, bounds=last_value),
    Rival("AutoETS intervals", "its own upper limits", sampled=True, bounds=native_ets),
    Rival("planner: ARIMA", "point forecast", sampled=True, bounds=arima),
    Rival("planner: Kalman", "point forecast", sampled=True, bounds=kalman),
    Rival("planner: Prophet", "point forecast", sampled=True, bounds=prophet),
)
OPTIONAL: Mapping[str, str] = {"planner: Prophet": "prophet"}


def missing() -> tuple[str, ...]:
    """Names of rivals whose package is not installed."""
    return tuple(name for name, package in OPTIONAL.items() if importlib.util.find_spec(package) is None)
