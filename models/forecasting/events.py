"""Known future events: a launch at nine, a batch every Saturday. No history tells of the first one."""

import dataclasses
import math
from collections.abc import Iterable

import numpy as np

from models.forecasting.forecast import Forecast, NotEnoughHistory, Outlook
from models.series import Series

BEFORE = 3600.0  # seconds before an event whose median load its ratio multiplies


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Load that is known to come.

    Attributes:
        start: Unix time of the (first) beginning, seconds.
        duration: how long it lasts, seconds.
        every: seconds from one beginning to the next; None when it happens once.
        ratio: load expected over the load before it; None when `value` is given.
        value: load expected, in the unit of the signal; None when `ratio` is given.
    """

    start: float
    duration: float
    every: float | None = None
    ratio: float | None = None
    value: float | None = None

    def __post_init__(self) -> None:
        if self.duration <= 0:
            raise ValueError(f"duration is {self.duration!r} s: must be positive")
        if self.every is not None and self.every < self.duration:
            raise ValueError(f"every is {self.every!r} s: must not be less than the duration, {self.duration!r} s")
        if (self.ratio is None) == (self.value is None):
            raise ValueError("an event needs either a ratio or a value")
        if (self.ratio or self.value or 0.0) < 0:
            raise ValueError(f"ratio is {self.ratio!r}, value is {self.value!r}: must not be negative")

    def begins(self, after: float, until: float) -> float | None:
        """Beginning of the occurrence that overlaps (after, until], the earliest such; None when there is none."""
        if self.every is None:
            begin = self.start
        else:
            # the first one that is not over yet; none comes before the first
            begin = self.start + self.every * max(math.floor((after - self.start - self.duration) / self.every) + 1, 0)
        return begin if begin <= until and begin + self.duration > after else None


def raised(outlook: Outlook, events: Iterable[Event], history: Series) -> Outlook:
    """The outlook with every quantile at least what the events within its horizon bring.

    Events only ever raise: one that does not take place costs idle replicas for its length, not requests.
    """
    if isinstance(outlook, NotEnoughHistory):
        return outlook
    least = max((_expected(event, outlook, history) for event in events), default=0.0)
    if least <= outlook.at(0.0):
        return outlook
    return dataclasses.replace(outlook, quantiles={q: max(v, least) for q, v in outlook.quantiles.items()})


def _expected(event: Event, forecast: Forecast, history: Series) -> float:
    """Load an event brings within the horizon of a forecast, 0 when it does not overlap it."""
    begin = event.begins(forecast.issued_at, forecast.issued_at + forecast.horizon)
    if begin is None:
        return 0.0
    if event.value is not None:
        return event.value
    before = history.since(min(begin, forecast.issued_at) - BEFORE).until(min(begin, forecast.issued_at)).values
    known = before[~np.isnan(before)]
    return (event.ratio or 0.0) * (float(np.median(known)) if len(known) else forecast.level)
