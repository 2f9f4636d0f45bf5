"""The forecast's own numbers, each with the reason for its default."""

import dataclasses
import datetime as dt

HOUR = 3600.0
DAY = 86400.0
WEEK = 604800.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ForecastSettings:
    """What a `Forecaster` may be told. Times are in seconds.

    Attributes:
        quantiles: probabilities to forecast, growing. The default serves a floor (.9 to .99) and a median to plot.
        seasons: periods after which load may repeat. A season is used for a target only where it pays.
        zone: where days and weeks begin; a day is 23 or 25 hours long when its clocks change.
        level_window: history the level looks at: 2 h; longer windows follow a change of regime too slowly.
        spacing: distance between two origins at which past forecasts are scored: 2 min, since scores closer
            together repeat each other. Shorter seasons are followed at a thirtieth of their period.
        scores: how many past scores make the quantiles: 720 (24 h); 90 of them reach only .976 where .99 is asked.
        previous: how many earlier seasons the usual jump is averaged over: 6, a week of days without today.
        cold_scores: prior scores that a target without own scores starts from; they fade as own ones come in.
    """

    quantiles: tuple[float, ...] = (0.5, 0.8, 0.9, 0.95, 0.975, 0.99)
    seasons: tuple[float, ...] = (HOUR, DAY, WEEK)
    zone: dt.tzinfo = dt.UTC
    level_window: float = 7200.0
    spacing: float = 120.0
    scores: int = 720
    previous: int = 6
    cold_scores: int = 20

    def __post_init__(self) -> None:
        if not self.quantiles or list(self.quantiles) != sorted(set(self.quantiles)):
            raise ValueError(f"quantiles are {self.quantiles!r}: must grow and not be empty")
        if not all(0 < q < 1 for q in self.quantiles):
            raise ValueError(f"quantiles are {self.quantiles!r}: must lie between 0 and 1")
        if not all(period > 0 for period in self.seasons):
            raise ValueError(f"seasons are {self.seasons!r}: periods must be positive")
        for name in ("level_window", "spacing", "scores", "previous", "cold_scores"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} is {getattr(self, name)!r}: must be positive")
