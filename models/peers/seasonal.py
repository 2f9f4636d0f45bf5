"""Schedules made from a history: the replicas each hour of the day or week needed, as KEDA cron triggers."""

import math

import numpy as np

from models.peers import answer
from models.peers.triggers import HOUR, Timetable
from models.series import Series


def timetable(history: Series, *, per_replica: float, quantile: float, period: float, step: float = HOUR) -> Timetable:
    """Windows of `step` seconds, each asking for what `quantile` of the history's points in it needed.

    Args:
        history: requests per second; what is not known is left out.
        per_replica: requests per second one replica takes.
        quantile: of the points of a window over all periods, 0..1.
        period: seconds after which the schedule comes back: a day or a week; a multiple of `step`.
        step: length of a window, seconds.

    A window without a single point asks for what the whole history's quantile needs. Raises ValueError for a history
    without points.
    """
    windows = round(period / step)
    known = np.isfinite(history.values)
    if not known.any() or windows < 1 or not math.isclose(windows * step, period):
        raise ValueError(f"{known.sum()} known points for {windows} windows of {step:g} s in {period:g} s")
    places = ((history.times % period) // step).astype(np.int64)
    usual = float(np.quantile(history.values[known], quantile))
    needs = []
    for k in range(windows):
        points = history.values[known & (places == k)]
        rate = float(np.quantile(points, quantile)) if len(points) else usual
        needs.append(answer.ceil(rate / per_replica))
    return Timetable(tuple(needs), step)


def earlier(table: Timetable, lead: float) -> Timetable:
    """The same schedule, opened `lead` seconds earlier so that replicas are warm at the start of a window."""
    return Timetable(table.replicas, table.step, table.offset - lead)
