"""What has ended for good leaves the season; what grows is followed."""

import numpy as np
import pytest

from models.forecasting.engine import Forecaster
from models.forecasting.forecast import Forecast
from models.series import Floats, Series

STEP, HOURLY, DAY = 300.0, 12, 288
HORIZON = 600.0
DAYS = 12  # the last of which ends at 09:00, when the plateau used to begin
END = DAYS * DAY + 9 * HOURLY


def drawn(rate: Floats) -> Series:
    """Requests a second, counted by five minutes."""
    return Series(STEP, STEP, np.random.default_rng(4).poisson(rate * STEP) / STEP)


def p95(rate: Floats) -> float:
    (outlook,) = Forecaster().update({"a": drawn(rate)}, horizons={"a": (HORIZON,)})["a"]
    assert isinstance(outlook, Forecast)
    return outlook.at(0.95)


@pytest.fixture(scope="module")
def calm() -> Floats:
    hours = np.arange(END) / HOURLY
    return np.asarray(60 + 30 * np.sin(2 * np.pi * (hours - 9) / 24))


def plateau(until: int) -> Floats:
    """100 a second more from 09:00 to 17:00 of each day before day `until`."""
    hours = np.arange(END) / HOURLY
    return np.where((hours % 24 >= 9) & (hours % 24 < 17) & (hours < 24 * until), 100.0, 0.0)


def test_a_plateau_that_comes_each_day_is_seen_coming_and_one_that_ended_two_days_ago_is_not(calm: Floats) -> None:
    without = p95(calm)
    assert p95(calm + plateau(until=DAYS)) > without + 80
    assert p95(calm + plateau(until=DAYS - 2)) == pytest.approx(without, abs=10)


@pytest.mark.parametrize("a_week", [0.7, 1.1, 1.5])
def test_growth_over_weeks_is_in_the_level_and_scales_the_season(calm: Floats, a_week: float) -> None:
    grown = calm * a_week ** (np.arange(END) / (7 * DAY))
    factor = grown[-1] / calm[-1]
    assert p95(grown) == pytest.approx(factor * p95(calm), rel=0.05)
