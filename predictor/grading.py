"""The service's own forecasts, scored once their horizon has passed."""

import collections
import dataclasses
import math
from collections.abc import Hashable, Mapping

from models.forecasting.forecast import Forecast, Outlook
from models.forecasting.scoring import Scored, Scoring
from models.series import Series

WINDOW = 24  # hours that a grade looks back over
HOUR = 3600.0
APART = 120.0  # seconds between two forecasts that are scored: closer ones share most of their horizon
INTERVALS = 4  # the same in slow intervals, where these are so short that this is less
CLOSE = 1e-6  # what sums of steps may be off


@dataclasses.dataclass(frozen=True, slots=True)
class Grade:
    """How good a target's forecasts of one signal over the raising horizon were.

    Attributes:
        fresh: forecasts scored in this tick.
        scored: forecasts scored in the window: a day, or since the service started.
        coverage: probability -> share of them that came true, in 0..1.
        pinball: probability -> mean pinball loss, in the unit of the signal.
    """

    fresh: int
    scored: int
    coverage: Mapping[float, float]
    pinball: Mapping[float, float]


class Grading:
    """Issues forecasts to a `Scoring` and keeps the sums of a day, an hour at a time.

    Scored is the first forecast from each whole multiple of `apart` on, as in a back-test: whoever starts when, all
    replicas score the same ones. Sums, not scores: a day of scores would be 40 kB for each series.
    """

    def __init__(self, *, apart: float = APART) -> None:
        """Nothing graded yet; `apart` are the seconds between two forecasts that are scored."""
        self._apart = apart
        self._scoring = Scoring(apart=0.0)
        self._stretches: dict[Hashable, int] = {}
        self._hours: dict[Hashable, collections.deque[_Hour]] = {}

    def grade(
        self, outlooks: Mapping[Hashable, Outlook], histories: Mapping[Hashable, Series]
    ) -> dict[Hashable, Grade]:
        """Takes this tick's outlooks in; grades by key, of those that have a score at all.

        Args:
            outlooks: of every series, over the horizon that is to be graded; what is missing is forgotten.
            histories: what they were made from.
        """
        # The newest point still gathers readings: what came is told only by those before it.
        whole = {key: series.until(series.end - series.step) for key, series in histories.items() if len(series)}
        fresh: collections.Counter[Hashable] = collections.Counter()
        for scored in self._scoring.settle(whole):
            fresh[scored.key] += 1
            self._hour_of(scored).add(scored)
        due = {key for key, outlook in outlooks.items() if isinstance(outlook, Forecast) and self._is_due(key, outlook)}
        # One that is not due is no reason to forget those that wait.
        self._scoring.issue({key: (outlook,) if key in due else () for key, outlook in outlooks.items()})
        self._stretches = {key: number for key, number in self._stretches.items() if key in outlooks}
        self._hours = {key: hours for key, hours in self._hours.items() if key in outlooks}
        for key, series in whole.items():
            self._forget(key, before=int(series.end // HOUR) - WINDOW)
        return {key: _grade(hours, fresh[key]) for key, hours in self._hours.items()}

    def _is_due(self, key: Hashable, forecast: Forecast) -> bool:
        """Whether it is the first of a stretch of time; where a series begins, only the start of one will do."""
        number = math.floor(forecast.issued_at / self._apart + CLOSE)
        before = self._stretches.get(key)
        self._stretches[key] = number
        return number > before if before is not None else abs(forecast.issued_at - number * self._apart) < CLOSE

    def _forget(self, key: Hashable, *, before: int) -> None:
        """Where nothing has been known for a day, what was scored before is no grade of the last one any more."""
        hours = self._hours.get(key, collections.deque())
        while hours and hours[0].number < before:
            hours.popleft()
        if not hours:
            self._hours.pop(key, None)

    def _hour_of(self, scored: Scored) -> "_Hour":
        hours = self._hours.setdefault(scored.key, collections.deque())
        number = int(scored.forecast.issued_at // HOUR)
        while hours and hours[-1].number > number:  # by a clock that has been set back since
            hours.pop()
        if not hours or hours[-1].number < number:
            hours.append(_Hour(number))
        while hours[0].number <= number - WINDOW:
            hours.popleft()
        return hours[-1]


@dataclasses.dataclass(slots=True)
class _Hour:
    """Sums over the forecasts issued within an hour; `number` counts hours since 1970."""

    number: int
    scored: int = 0
    covered: collections.Counter[float] = dataclasses.field(default_factory=collections.Counter)
    lost: dict[float, float] = dataclasses.field(default_factory=dict)

    def add(self, scored: Scored) -> None:
        self.scored += 1
        self.covered.update(probability for probability, covered in scored.covered.items() if covered)
        for probability, loss in scored.pinball.items():
            self.lost[probability] = self.lost.get(probability, 0.0) + loss


def _grade(hours: collections.deque[_Hour], fresh: int) -> Grade:
    scored = sum(hour.scored for hour in hours)
    probabilities = sorted({probability for hour in hours for probability in hour.lost})
    return Grade(
        fresh=fresh,
        scored=scored,
        coverage={q: sum(hour.covered[q] for hour in hours) / scored for q in probabilities},
        pinball={q: sum(hour.lost.get(q, 0.0) for hour in hours) / scored for q in probabilities},
    )
