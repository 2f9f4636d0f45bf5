"""What Floorcast is compared with, in the same process on the same origins: the rivals of the back-test.

Fast ones score themselves at every point of the trace: shape (points, quantiles). Slow ones are asked at some origins.
"""

import dataclasses
import functools
from collections.abc import Callable

import numpy as np

from benchmarks.forecast.traces import Trace
from models.series import Floats, Series
from predictor.replay import rivals
from predictor.replay.backtest import Indices


@dataclasses.dataclass(frozen=True)
class Task:
    """One trace and horizon, asked at every point: a case for the rivals.

    Attributes:
        trace: what is forecast.
        steps: horizon in grid steps.
        came: largest value over it, for each point of the trace.
        probabilities: of the quantiles.
    """

    trace: Trace
    steps: int
    came: Floats
    probabilities: tuple[float, ...]
    every: int = 1

    @functools.cached_property
    def series(self) -> Series:
        """The trace from time zero."""
        return Series(0.0, self.trace.step, self.trace.counts)

    @functools.cached_property
    def origins(self) -> Indices:
        """Every point."""
        return np.arange(len(self.trace.counts))


def levels(trace: Trace) -> Floats:
    """Level by statsforecast's optimised simple exponential smoothing at each point, shape (points,)."""
    task = Task(trace, 1, np.empty(0), (0.5,))
    return rivals.ses(task, range(len(task.origins)))


def plain_root(task: Task, level: Floats) -> Floats:
    """Conformal SES on the square-root scale, where a busy hour does not decide the width of a quiet one."""
    root = dataclasses.replace(task, came=np.sqrt(task.came + 3 / 8))
    bounds = rivals.around(root, np.sqrt(np.maximum(level, 0) + 3 / 8))
    return np.maximum(bounds, 0) ** 2 - 3 / 8


FAST: dict[str, Callable[[Task, Floats], Floats]] = {
    "plain_ses": rivals.around,
    "plain_ses_root": plain_root,
    "seasonal_naive": rivals.seasonal_around,
}
SLOW: dict[str, Callable[[Task, list[int]], Floats]] = {
    "autoets_native": rivals.native_ets,
    "autoarima": rivals.arima,
    "kalman": rivals.kalman,
    "prophet": rivals.prophet,
}


def missing() -> set[str]:
    """Those of SLOW whose package is not installed."""
    return {"prophet"} if rivals.missing() else set()
