"""What is known to come to a target and no history tells of yet."""

import datetime as dt
from typing import Annotated, Self

import pydantic

from models.signals import Signal
from predictor.settings.durations import Duration
from predictor.settings.section import Number, Section, key

SIGNALS = (Signal.ARRIVALS, Signal.IN_FLIGHT)
_Positive = Annotated[float, Number, pydantic.Field(gt=0)]


class EventSettings(Section):
    """A launch at nine, a batch every Saturday."""

    name: str = key(..., "What to call it.", min_length=1, max_length=63, remedy="give it a short name")
    start: dt.datetime = key(
        ...,
        "When it first begins, as 2026-11-30T09:00; without an offset from UTC, in forecast.zone.",
        remedy="write a date and time, as 2026-11-30T09:00",
    )
    duration: Annotated[Duration, pydantic.Field(gt=0, le=2419200)] = key(..., "How long it lasts.")
    every: Annotated[Duration, pydantic.Field(gt=0)] | None = key(
        None,
        "Time from one beginning to the next: 1d, 7d. Whole days keep the local time when the clocks change. Unset: it"
        " comes once.",
    )
    ratio: _Positive | None = key(
        None,
        "Load expected over the median of the hour before it. Give this, or value.",
        remedy="1.5 is half as much more",
    )
    value: _Positive | None = key(
        None, "Load expected, in the unit of the signal, which must then be given.", remedy="or give ratio"
    )
    signal: Signal | None = key(
        None,
        "arrivals (requests a second) or in_flight (requests): what is raised. Unset: both, by the ratio.",
    )

    @pydantic.model_validator(mode="after")
    def _says_how_much(self) -> Self:
        if (self.ratio is None) == (self.value is None):
            raise ValueError("needs ratio or value, one of them; leave out the other")
        if self.value is not None and self.signal is None:
            raise ValueError(f"has a value, {self.value:g}, but no signal it is meant for; set signal, or give ratio")
        if self.signal is not None and self.signal not in SIGNALS:
            raise ValueError(f"signal is {self.signal}, which is not forecast; use {' or '.join(SIGNALS)}")
        if self.every is not None and self.every < self.duration:
            raise ValueError(f"every is {self.every:g} s, less than duration, {self.duration:g} s; lengthen it")
        return self
