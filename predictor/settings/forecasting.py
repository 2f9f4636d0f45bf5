"""The sections about the forecast: what is kept of the past, and how the load is forecast from it."""

import zoneinfo
from typing import Annotated

import pydantic
from pydantic_core import PydanticCustomError

from predictor.settings.durations import Duration
from predictor.settings.section import Number, Section, key


def _zone(name: str) -> str:
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise PydanticCustomError("zone", "is no known time zone; write one like Europe/Berlin or UTC") from None
    return name


Zone = Annotated[str, pydantic.AfterValidator(_zone)]
Probability = Annotated[float, Number, pydantic.Field(gt=0, lt=1)]


class History(Section):
    """What is kept of the past, in memory; Prometheus is asked for it at the start."""

    step: Duration = key(
        30.0,
        "Distance between two points. Finer is more memory than foresight: 8 days at 30 s are 23 040 points, 92 kB for"
        " each signal of a target.",
        ge=1,
        le=300,
    )
    span: Duration = key(
        691200.0,
        "How far back. 8 days: a week to compare with, and a day to score the comparison on.",
        ge=3600,
        le=5184000,
    )
    carry: Duration = key(
        120.0,
        "A gap up to this long is filled with the last value; a longer one stays a gap, which is never read as zero.",
        ge=0,
        le=3600,
    )


class Forecast(Section):
    """How the load is forecast: the quantiles of the largest value over the warm-up."""

    quantiles: tuple[Probability, ...] = key(
        (0.5, 0.8, 0.9, 0.95, 0.975, 0.99),
        "Probabilities that are forecast, growing. Targets raise and lower at one of these; the median is to look at.",
        min_length=1,
    )
    seasons: tuple[Annotated[Duration, pydantic.Field(gt=0)], ...] = key(
        (3600.0, 86400.0, 604800.0),
        "Periods after which load may repeat: hour, day, week. One is used for a target only where it pays. None: [].",
    )
    zone: Zone = key(
        "UTC",
        "Time zone in which days and weeks begin. A zone with summer time keeps 8 o'clock at 8 o'clock when the clocks"
        " change.",
    )
    level_window: Duration = key(
        7200.0, "History the present level looks at. Longer ones follow a change of regime too slowly.", ge=60, le=86400
    )
    score_window: Duration = key(
        86400.0,
        "How long the errors of past forecasts count. With 24 h p99 covers .99; with 3 h it covers only .976.",
        ge=600,
        le=5184000,
    )
