"""Known future events: a launch at nine, a batch every Saturday. No history tells of the first one."""

import dataclasses
import datetime as dt
import math
from collections.abc import Iterable

import numpy as np

from models.forecasting import season
from models.forecasting.forecast import Forecast, NotEnoughHistory, Outlook
from models.forecasting.settings import DAY, HOUR
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
        zone: an event that comes again after whole days keeps its local time there when the clocks change.
    """

    start: float
    duration: float
    every: float | None = None
    ratio: float | None = None
    value: float | None = None
    zone: dt.tzinfo = dt.UTC

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
        begin, number = self.start, 0
        if self.every is not None:
            # An hour early where the clocks have changed; none comes before the first.
            number = max(math.floor((after - self.start - self.duration - HOUR) / self.every) + 1, 0)
            begin = self._begin(number, self.every)
            while begin + self.duration <= after:
                number += 1
                begin = self._begin(number, self.every)
        return begin if begin <= until and begin + self.duration > after else None

    def _begin(self, number: int, every: float) -> float:
        begin = self.start + number * every
        if every % DAY:
            return begin
        return begin + _ahead(self.start, self.zone) - _ahead(begin, self.zone)


def _ahead(time: float, zone: dt.tzinfo) -> float:
    """Seconds by which local time is ahead of UTC."""
    return float(season.offsets(np.array([time]), zone)[0])


def raised(outlook: Outlook, events: Iterable[Event], history: Series) -> Outlook:
    """The outlook with every quantile at least what the events within its horizon bring.

    Events only ever raise: one that does not take place costs idle replicas for its length, not requests.
    """
    if isinstance(outlook, NotEnoughHistory):
        return outlook
    least = max((_expected(event, outlook, history) for event in events), default=0.0)
    if least <= min(outlook.at(0.0), outlook.room(0.0)):
        return outlook
    quantiles = {q: max(v, least) for q, v in outlook.quantiles.items()}
    experts = {q: "event" if least > outlook.quantiles[q] else name for q, name in outlook.experts.items()}
    steady = {q: max(v, least) for q, v in outlook.steady.items()}
    return dataclasses.replace(outlook, quantiles=quantiles, experts=experts, steady=steady)


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
