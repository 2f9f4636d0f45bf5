"""A made-up week of traffic: what the rate is without noise, and the requests that come of it.

A day rises in the morning, dips at lunch, is strong in the afternoon and ebbs in the evening; weekends are quieter.
Every day differs a little in height and phase, has its regular jobs at about the same time and a few short bursts at
any time. One day may have a surge that no earlier day has shown.
"""

import dataclasses
import functools

import numpy as np

from models.fleet import requests
from models.fleet.requests import Requests
from models.series import Floats

DAY = 86400.0
BLOCK = 60.0  # seconds of requests that are drawn together; any cut of time into calls gives the same requests
# The shape of a working day: hour -> share of the peak.
HOURS = (0, 3, 5, 7, 9, 10.5, 12, 12.75, 13.5, 15, 17, 18.5, 20, 22, 24)
SHARES = (0.22, 0.10, 0.10, 0.24, 0.78, 0.95, 0.82, 0.62, 0.84, 1.0, 0.86, 0.56, 0.48, 0.36, 0.22)


@dataclasses.dataclass(frozen=True, slots=True)
class Lengths:
    """Log-normal lengths: median tokens, spread of the logarithm, the longest."""

    median: float
    spread: float
    longest: int

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Lengths of shape (count,), at least 1 token."""
        drawn = self.median * np.exp(self.spread * rng.standard_normal(count))
        return np.clip(drawn, 1, self.longest).astype(np.int64)


@dataclasses.dataclass(frozen=True, slots=True)
class Surge:
    """An unforeseen surge: the day, how often the usual rate, how long it rises and lasts (seconds)."""

    day: int
    factor: float = 1.9
    rise: float = 240.0
    lasts: float = 2400.0


@dataclasses.dataclass(frozen=True, slots=True)
class Traffic:
    """What the traffic is made of.

    Attributes:
        peak: requests per second at the height of an ordinary day.
        prompt: lengths of the prompts.
        output: lengths of the outputs.
        surge: the surge; None for none.
        day_zero: weekday of day 0, Monday 0.
    """

    peak: float = 16.0
    prompt: Lengths = Lengths(median=750.0, spread=0.8, longest=6000)
    output: Lengths = Lengths(median=280.0, spread=0.7, longest=2000)
    surge: Surge | None = None
    day_zero: int = 1


@dataclasses.dataclass(frozen=True, slots=True)
class _Bump:
    """More traffic around a time: rises and falls like a bell with a flat top."""

    at: float
    height: float  # share of the usual rate that comes on top
    rise: float
    lasts: float

    def at_times(self, times: Floats) -> Floats:
        up = np.clip((times - self.at) / self.rise, 0, 1)
        down = np.clip((self.at + self.rise + self.lasts - times) / self.rise + 1, 0, 1)
        bump: Floats = self.height * up * down
        return bump


@dataclasses.dataclass(frozen=True, slots=True)
class _Day:
    level: float
    shift: float
    waves: tuple[tuple[float, float], ...]
    bumps: tuple[_Bump, ...]


class Days:
    """Traffic by seed. Time is seconds from midnight of day 0; negative days are the past."""

    def __init__(self, traffic: Traffic, *, seed: int) -> None:
        self.traffic = traffic
        self._seed = seed
        self._day = functools.lru_cache(maxsize=32)(self._draw_day)
        self._block = functools.lru_cache(maxsize=4)(self._draw_block)  # short calls meet the same block again

    def rate(self, times: Floats) -> Floats:
        """Requests per second without noise at `times` (seconds), shape as given."""
        times = np.asarray(times, dtype=np.float64)
        rates = np.empty_like(times)
        days = np.floor(times / DAY).astype(np.int64)
        for number in np.unique(days):
            chosen = days == number
            rates[chosen] = self._rate_of_day(int(number), times[chosen] - number * DAY)
        return self.traffic.peak * rates

    def between(self, start: float, end: float) -> Requests:
        """The requests at or after `start` and before `end`, seconds."""
        blocks = range(int(start // BLOCK), int(np.ceil(end / BLOCK)))
        return requests.joined(map(self._block, blocks)).between(start, end)

    def surge_at(self) -> float | None:
        """When the surge begins, seconds; None when there is none."""
        surge = self.traffic.surge
        if surge is None:
            return None
        return surge.day * DAY + float(self._rng(surge.day, 2).uniform(13.8, 19.5)) * 3600

    def _rng(self, *key: int) -> np.random.Generator:
        return np.random.default_rng([self._seed, *(number + 2**31 for number in key)])

    def _rate_of_day(self, number: int, seconds: Floats) -> Floats:
        day = self._day(number)
        hours = np.clip(seconds / 3600 + day.shift, 0, 24)
        rates = np.interp(hours, HOURS, SHARES) * day.level
        for period, phase in day.waves:
            rates = rates * (1 + 0.03 * np.sin(2 * np.pi * seconds / period + phase))
        extra = np.ones_like(seconds)
        for bump in day.bumps:
            extra = extra + bump.at_times(seconds)
        product: Floats = rates * extra
        return product

    def _draw_day(self, number: int) -> _Day:
        rng = self._rng(number, 0)
        weekend = (number + self.traffic.day_zero) % 7 >= 5  # noqa: PLR2004  (Saturday)
        bumps = [
            # Regular jobs, a few minutes off from day to day.
            *(_Bump(hour * 3600 + rng.normal(0, 90), rng.uniform(0.3, 0.45), 120, 600) for hour in (9.5, 14.25, 16.5)),
            # Short bursts at any time.
            *(
                _Bump(rng.uniform(7, 22) * 3600, rng.uniform(0.15, 0.4), rng.uniform(20, 90), rng.uniform(60, 300))
                for _ in range(6)
            ),
        ]
        surge, begins = self.traffic.surge, self.surge_at()
        if surge is not None and begins is not None and surge.day == number:
            bumps.append(_Bump(begins - number * DAY, surge.factor - 1, surge.rise, surge.lasts))
        return _Day(
            level=float(rng.normal(0.6 if weekend else 1.0, 0.05)),
            shift=float(rng.normal(0, 0.1)),
            waves=tuple((float(rng.uniform(900, 5400)), float(rng.uniform(0, 2 * np.pi))) for _ in range(3)),
            bumps=tuple(bumps),
        )

    def _draw_block(self, number: int) -> Requests:
        """The requests of one block: a Poisson number for every second, spread evenly within it."""
        rng = self._rng(number, 1)
        seconds = number * BLOCK + np.arange(int(BLOCK), dtype=np.float64)
        counts = rng.poisson(self.rate(seconds + 0.5))
        times = np.sort(np.repeat(seconds, counts) + rng.uniform(0, 1, int(counts.sum())))
        return Requests(times, self.traffic.prompt.draw(rng, len(times)), self.traffic.output.draw(rng, len(times)))
