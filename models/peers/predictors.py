"""The predictors of NVIDIA's Dynamo Planner: one interval ahead, one value at a time.

Prophet is left out: it would be refitted on the last 50 points at each interval, and is no default.
"""

import itertools
import math
from collections.abc import Callable
from typing import Protocol

WARM_UP = 5  # points before a statistical predictor says anything but the last value
# 5 % point of the KPSS statistic for a level (Kwiatkowski et al. 1992); above it the series is differenced.
KPSS_LEVEL = 0.463


class Predictor(Protocol):
    """One series."""

    def add(self, value: float) -> None:
        """One more interval."""
        ...

    def ahead(self) -> float:
        """The next interval; not negative; 0 before the first."""
        ...


class Constant:
    """The next is the last."""

    def __init__(self) -> None:
        self._last = 0.0

    def add(self, value: float) -> None:
        """One more interval."""
        self._last = value

    def ahead(self) -> float:
        """The last one."""
        return self._last


class Kalman:
    """A local linear trend: state (level, slope), F = [[1, 1], [0, 1]], Q = diag(1, .1), R = 10, P0 = 1000."""

    def __init__(self, *, level_noise: float = 1.0, slope_noise: float = 0.1, noise: float = 10.0) -> None:
        self._q, self._r = (level_noise, slope_noise), noise
        self._level = self._slope = self._last = 0.0
        self._p = (1000.0, 0.0, 1000.0)  # covariance: level, both, slope
        self._count = 0

    def add(self, value: float) -> None:
        """Moves on by one interval, then takes the value in."""
        self._last, self._count = value, self._count + 1
        level, (pll, pls, pss) = self._level + self._slope, self._p
        pll, pls, pss = pll + 2 * pls + pss + self._q[0], pls + pss, pss + self._q[1]
        gain_level, gain_slope = pll / (pll + self._r), pls / (pll + self._r)
        surprise = value - level
        self._level, self._slope = level + gain_level * surprise, self._slope + gain_slope * surprise
        self._p = ((1 - gain_level) * pll, (1 - gain_level) * pls, pss - gain_slope * pls)

    def ahead(self) -> float:
        """Level and one slope; the last value in the first intervals."""
        return max(self._level + self._slope, 0.0) if self._count >= WARM_UP else self._last


class Arima:
    """ARIMA whose order is chosen once, on the first five points, and refitted on all that came since.

    A small own one in place of pmdarima: differenced once where the KPSS test says so, then a mean with or without one
    autoregressive term by AIC, least squares. On five points a search hardly ever affords more. What matters of it: on
    a level the order is (0, 0, 0), so the forecast is the mean of the whole past, and a step is hardly followed.
    """

    def __init__(self) -> None:
        self._first: list[float] = []
        self._differenced = self._regressed = False
        self._last = 0.0
        self._before: float | None = None  # the last of the series that is modelled
        self._mean = Sums()

    def add(self, value: float) -> None:
        """One more interval."""
        if len(self._first) < WARM_UP:
            self._first.append(value)
            self._last = value
            if len(self._first) == WARM_UP:
                self._choose()
            return
        self._take(value - self._last if self._differenced else value)
        self._last = value

    def ahead(self) -> float:
        """The forecast; the last value in the first intervals."""
        if len(self._first) < WARM_UP or self._before is None:
            return self._last
        step = self._mean.ahead(self._before) if self._regressed else self._mean.mean
        return max(self._last + step if self._differenced else step, 0.0)

    def _choose(self) -> None:
        points = self._first
        self._differenced = kpss(points) > KPSS_LEVEL
        modelled = [b - a for a, b in itertools.pairwise(points)] if self._differenced else points
        for value in modelled:
            self._take(value)
        self._regressed = self._mean.prefers_regression()

    def _take(self, value: float) -> None:
        self._mean.add(value, self._before)
        self._before = value


class Sums:
    """Running sums of a series and of its pairs (before, after): mean, and least squares of after on before."""

    def __init__(self) -> None:
        self._n = self._pairs = 0
        self._total = self._square = 0.0
        self._x = self._y = self._xx = self._xy = self._yy = 0.0

    def add(self, value: float, before: float | None) -> None:
        """One more value, and its pair unless it is the first."""
        self._n, self._total, self._square = self._n + 1, self._total + value, self._square + value * value
        if before is not None:
            self._pairs += 1
            self._x, self._y = self._x + before, self._y + value
            self._xx, self._xy, self._yy = self._xx + before**2, self._xy + before * value, self._yy + value**2

    @property
    def mean(self) -> float:
        """Of all."""
        return self._total / self._n if self._n else 0.0

    def ahead(self, before: float) -> float:
        """The regression at `before`."""
        slope = self._slope()
        return self._y / self._pairs + slope * (before - self._x / self._pairs) if self._pairs else before

    def prefers_regression(self) -> bool:
        """Whether AIC prefers the autoregressive term: n ln(RSS) + 2 k, on the pairs."""
        if self._pairs < 3:  # noqa: PLR2004  (a line through two points always fits)
            return False
        around = self._yy - self._y**2 / self._pairs
        slope = self._slope()
        left = around - slope * (self._xy - self._x * self._y / self._pairs)
        if around <= 1e-9 * max(self._yy, 1.0):
            return False
        return self._pairs * math.log(max(left, 1e-12) / around) + 2 < 0

    def _slope(self) -> float:
        """Of the regression, kept inside the stationary region."""
        spread = self._xx - self._x**2 / self._pairs
        if spread <= 1e-9 * max(self._xx, 1.0):
            return 0.0
        return min(max((self._xy - self._x * self._y / self._pairs) / spread, -0.99), 0.99)


def kpss(points: list[float]) -> float:
    """The KPSS statistic for a level without lags: sum of squared partial sums over n^2 times the variance."""
    n, mean = len(points), sum(points) / len(points)
    variance = sum((value - mean) ** 2 for value in points) / n
    if variance <= 1e-12 * max(mean * mean, 1.0):
        return 0.0
    partial = squares = 0.0
    for value in points:
        partial += value - mean
        squares += partial * partial
    return squares / (n * n * variance)


PREDICTORS: dict[str, Callable[[], Predictor]] = {"constant": Constant, "arima": Arima, "kalman": Kalman}
