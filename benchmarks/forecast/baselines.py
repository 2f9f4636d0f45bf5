"""What Floorcast is compared with, in the same process on the same origins.

Fast ones score themselves at every point of the trace: shape (points, quantiles). Slow ones are asked at some origins.
"""

import dataclasses
import importlib
import importlib.util
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from statsforecast.models import AutoARIMA, AutoETS, SimpleExponentialSmoothingOptimized

from benchmarks.forecast.traces import Trace
from models.forecasting import conformal
from models.series import Floats

DAY = 86400.0
WINDOW = 7200.0  # seconds of history each model is fitted on
BATCH = 2000


@dataclasses.dataclass(frozen=True)
class Task:
    """One trace and horizon.

    Attributes:
        trace: what is forecast.
        steps: horizon in grid steps.
        came: largest value over it, for each point of the trace.
        quantiles: probabilities.
    """

    trace: Trace
    steps: int
    came: Floats
    quantiles: tuple[float, ...]

    def window(self, origin: int, length: float = WINDOW) -> Floats:
        """Known values of the window that ends at an index, at least ten steps long."""
        tail = self.trace.counts[max(origin + 1 - max(round(length / self.trace.step), 10), 0) : origin + 1]
        return tail[~np.isnan(tail)]


def levels(trace: Trace) -> Floats:
    """Level by statsforecast's optimised simple exponential smoothing at each point, shape (points,)."""
    task = Task(trace, 1, np.empty(0), (0.5,))
    model, out = SimpleExponentialSmoothingOptimized(), np.full(len(trace.counts), np.nan)
    for i in range(len(out)):
        window = task.window(i)
        if len(window) > 1:
            out[i] = model.forecast(y=window, h=1)["mean"][0]
    return out


def plain(task: Task, level: Floats) -> Floats:
    """Level plus split-conformal quantiles of the last 24 h of scores, in the unit of the values."""
    return conformal_around(task, level, level)


def plain_root(task: Task, level: Floats) -> Floats:
    """The same on the square-root scale, where a busy hour does not decide the width of a quiet one."""
    root = dataclasses.replace(task, came=np.sqrt(task.came + 3 / 8))
    bounds = conformal_around(root, np.sqrt(np.maximum(level, 0) + 3 / 8), level)
    return np.maximum(bounds, 0) ** 2 - 3 / 8


def seasonal_naive(task: Task, level: Floats) -> Floats:
    """What came over the same horizon a day ago, plus its own split-conformal quantiles."""
    back = round(DAY / task.trace.step)
    before = np.concatenate([np.full(back, np.nan), task.came])[: len(task.came)]
    return conformal_around(task, np.where(np.isnan(before), level, before), level)


def conformal_around(task: Task, centre: Floats, level: Floats) -> Floats:
    """Centre plus quantiles of the scores of the last 24 h whose horizon has passed."""
    del level
    lag, width = task.steps, max(round(DAY / task.trace.step), 1)
    scores = np.concatenate([np.full(width + lag, np.nan), task.came - centre])
    windows = np.lib.stride_tricks.sliding_window_view(scores, width)[1 : len(centre) + 1]
    parts = [conformal.quantiles(windows[i : i + BATCH], task.quantiles) for i in range(0, len(windows), BATCH)]
    return np.asarray(np.maximum.accumulate(centre[:, None] + np.concatenate(parts), axis=1))


def native_ets(task: Task, origins: list[int]) -> Floats:
    """Largest upper limit of AutoETS's own interval over the horizon, at some origins."""
    levels_asked = sorted({round(200 * q - 100, 6) for q in task.quantiles if q > 0.5})  # noqa: PLR2004  (median)
    out = np.full((len(origins), len(task.quantiles)), np.nan)
    for i, origin in enumerate(origins):
        window = task.window(origin)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = AutoETS(season_length=1).forecast(y=window, h=task.steps, level=levels_asked)
        except (NotImplementedError, ValueError):  # too few points, or nothing but zeros
            continue
        for j, q in enumerate(task.quantiles):
            name = f"hi-{round(200 * q - 100, 6):g}" if q > 0.5 else "mean"  # noqa: PLR2004
            limits = found.get(name, found.get(name + ".0"))
            out[i, j] = np.max(found["mean"] if limits is None else limits)
    return out


def arima(task: Task, origins: list[int]) -> Floats:
    """Largest point forecast of an automatic ARIMA: the rival planner has no quantiles."""
    return _points(task, origins, lambda window: AutoARIMA().forecast(y=window, h=task.steps)["mean"])


def kalman(task: Task, origins: list[int]) -> Floats:
    """Largest point forecast of a Kalman filter with level and trend, noise variances 1, .1 and 10."""
    return _points(task, origins, lambda window: _local_trend(window, task.steps))


def prophet(task: Task, origins: list[int]) -> Floats:
    """Largest point forecast of Prophet."""
    model = importlib.import_module("prophet").Prophet

    def forecast(window: Floats) -> Floats:
        times = pd.date_range("2024-01-01", periods=len(window) + task.steps, freq=f"{task.trace.step:g}s")
        fitted = model(daily_seasonality=False, weekly_seasonality=False)
        fitted.fit(pd.DataFrame({"ds": times[: len(window)], "y": window}))
        return np.asarray(fitted.predict(pd.DataFrame({"ds": times[len(window) :]}))["yhat"], dtype=np.float64)

    return _points(task, origins, forecast)


def installed(name: str) -> bool:
    """Whether an optional package is there."""
    return importlib.util.find_spec(name) is not None


def _points(task: Task, origins: list[int], forecast: Callable[[Floats], Floats]) -> Floats:
    out = np.full((len(origins), len(task.quantiles)), np.nan)
    for i, origin in enumerate(origins):
        window = task.window(origin)
        if len(window) > 10:  # noqa: PLR2004  (what the rival asks for before it forecasts)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                out[i] = np.max(forecast(window))
    return out


def _local_trend(window: Floats, steps: int) -> Floats:
    state, spread = np.array([window[0], 0.0]), np.eye(2) * 10
    move, noise = np.array([[1.0, 1.0], [0.0, 1.0]]), np.diag([1.0, 0.1])
    for value in window[1:]:
        state, spread = move @ state, move @ spread @ move.T + noise
        gain = spread[:, 0] / (spread[0, 0] + 10.0)
        state = state + gain * (value - state[0])
        spread = spread - np.outer(gain, spread[0])
    return np.asarray(state[0] + state[1] * np.arange(1, steps + 1))
