"""The forecast's own numbers, each with the reason for its default."""

import dataclasses
import datetime as dt
import math

MINUTE = 60.0
HOUR = 3600.0
DAY = 86400.0
WEEK = 604800.0
MEMORY = 8 * DAY  # history a forecast looks back over: a week and a day to score it on
ORIGINS_PER_SEASON = 30  # a season is followed in at least this many steps


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ForecastSettings:
    """What a `Forecaster` may be told. Times are in seconds.

    Attributes:
        quantiles: probabilities to forecast, growing. The default serves a floor (.9 to .99) and a median to plot.
        seasons: periods after which load may repeat. What a season is worth to a target is learned from its history.
        zone: where days and weeks begin; a day is 23 or 25 hours long when its clocks change.
        level_window: history the level looks at: 2 h; longer windows follow a change of regime too slowly.
        spacing: distance between two origins at which past forecasts are scored: 2 min, since scores closer
            together repeat each other. Shorter seasons are followed at a thirtieth of their period.
        score_window: time over which past scores make the quantiles: 24 h, 720 of them; 90 of them reach only .976
            where .99 is asked.
        previous: how many earlier seasons the usual jump is averaged over: 6, a week of days without today; fewer
            where eight days of history do not hold them.
        cold_scores: prior scores that a target without own scores starts from; they fade as own ones come in.
        half_life: origins after which a past one weighs half in the regressions: 720 (24 h at 2 min). Three days
            were not better, and a restart with eight days of history would not forget what came before them.
        reaction: share of the band's width by which a miss widens quantiles up to .9 (adaptive conformal correction),
            over the root of the origins a horizon spans: .05. At .09 they cost 1 % more and p90 covers .001 more.
        forgetting: what is kept of that widening from one origin to the next: .99, gone after three hours.
        alarm: the reaction of the quantiles above: .15. At .13 the worst three hours of p95 cover .018 less, at .18
            .002 more for .3 % more loss, and floors that follow p95 need up to 4 % more replica-hours.
        alarm_forgetting: what these keep of it over two minutes: .985. At .99 they cost 1 % more.
    """

    quantiles: tuple[float, ...] = (0.5, 0.8, 0.9, 0.95, 0.975, 0.99)
    seasons: tuple[float, ...] = (HOUR, DAY, WEEK)
    zone: dt.tzinfo = dt.UTC
    level_window: float = 7200.0
    spacing: float = 120.0
    score_window: float = DAY
    previous: int = 6
    cold_scores: int = 20
    half_life: float = 720.0
    reaction: float = 0.05
    forgetting: float = 0.99
    alarm: float = 0.15
    alarm_forgetting: float = 0.985

    def __post_init__(self) -> None:
        if not self.quantiles or list(self.quantiles) != sorted(set(self.quantiles)):
            raise ValueError(f"quantiles are {self.quantiles!r}: must grow and not be empty")
        if not all(0 < q < 1 for q in self.quantiles):
            raise ValueError(f"quantiles are {self.quantiles!r}: must lie between 0 and 1")
        if not all(0 < period < math.inf for period in self.seasons):
            raise ValueError(f"seasons are {self.seasons!r}: periods must be positive")
        for name in ("level_window", "spacing", "score_window", "previous", "cold_scores", "half_life"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} is {getattr(self, name)!r}: must be positive")
        for name in ("reaction", "alarm"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)!r}: must not be negative")
        for name in ("forgetting", "alarm_forgetting"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)!r}: must lie in 0..1")

    def origin_steps(self, step: float) -> int:
        """Grid steps of `step` seconds between two origins, at least one."""
        shortest = min((*self.seasons, math.inf)) / ORIGINS_PER_SEASON
        return max(round(min(self.spacing, shortest) / step), 1)

    def scores(self, step: float) -> int:
        """How many scores the window holds. On a grid coarser than `spacing` as many as on a fine one.

        48 scores, a day on a grid of half hours, hold no .99.
        """
        return max(round(self.score_window / min(self.origin_steps(step) * step, self.spacing)), 1)

    def window_steps(self, step: float) -> int:
        """Grid steps in the level window, at least ten: on a grid of half hours two hours are no history."""
        return max(round(self.level_window / step), 10)
