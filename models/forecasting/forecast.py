"""What a forecast is, and what stands in its place when there is not enough history."""

import dataclasses
import enum
import math
from collections.abc import Mapping
from typing import TypeAlias


class Quality(enum.StrEnum):
    """How far a forecast may be trusted. The value is also the metric label."""

    SEASONED = "seasoned"  # scores of a full day, gaps rare
    YOUNG = "young"  # own scores, less than a day of them
    COLD = "cold"  # too few own scores: prior scores decide
    DEGRADED = "degraded"  # more than a tenth of the last two hours is unknown, or the newest point


@dataclasses.dataclass(frozen=True, slots=True)
class Forecast:
    """Quantiles of the largest value that comes within the horizon.

    Attributes:
        issued_at: Unix time of the newest point used, seconds.
        horizon: how far ahead the maximum is taken, seconds.
        level: the present level, in the unit of the signal.
        quantiles: probability (0..1) -> value; values grow with the probability and are never below the present value.
        quality: how far to trust it.
        experts: probability -> name of the expert that gave the value.
        steady: probability -> load to keep room for all the time, where that serves better than following the
            quantiles (`steady.Steady`); empty where it does not.
    """

    issued_at: float
    horizon: float
    level: float
    quantiles: Mapping[float, float]
    quality: Quality
    experts: Mapping[float, str] = dataclasses.field(default_factory=dict)
    steady: Mapping[float, float] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.horizon <= 0:
            raise ValueError(f"horizon is {self.horizon!r} s: must be positive")
        if not self.quantiles:
            raise ValueError("quantiles are empty: a forecast needs at least one probability")
        _check("quantiles", self.quantiles)
        if self.steady:
            _check("steady", self.steady)

    def at(self, probability: float) -> float:
        """The smallest forecast value whose probability is at least the one asked (the largest when none is).

        The cautious neighbour is taken, not an interpolation: a quantile that was not forecast is never understated.
        """
        return _at(self.quantiles, probability)

    def room(self, probability: float) -> float:
        """The load to plan for at a probability: as `at`, but of what to keep room for all the time where told."""
        return _at(self.steady or self.quantiles, probability)


def _check(name: str, told: Mapping[float, float]) -> None:
    probabilities, values = zip(*sorted(told.items()), strict=True)
    if not (probabilities[0] > 0 and probabilities[-1] < 1 and all(map(math.isfinite, values)) and min(values) >= 0):
        raise ValueError(f"{name} are {told!r}: probabilities lie in (0, 1), values are finite and >= 0")
    if list(values) != sorted(values):
        raise ValueError(f"{name} are {told!r}: values must not fall as the probability grows")


def _at(values: Mapping[float, float], probability: float) -> float:
    return next((value for q, value in sorted(values.items()) if q >= probability - 1e-9), max(values.values()))


@dataclasses.dataclass(frozen=True, slots=True)
class NotEnoughHistory:
    """No forecast: `have` known points, `need` are needed."""

    have: int
    need: int


Outlook: TypeAlias = Forecast | NotEnoughHistory
