"""What has ended for good leaves the season; what grows is followed; what goes by local time keeps it."""

import datetime as dt
import zoneinfo

import numpy as np
import pytest

from models.forecasting.engine import Forecaster
from models.forecasting.forecast import Forecast
from models.forecasting.settings import ForecastSettings
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


@pytest.mark.parametrize("day", [dt.date(2026, 3, 29), dt.date(2026, 10, 25)])
def test_what_begins_at_nine_is_seen_coming_at_nine_on_the_day_the_clocks_change(day: dt.date) -> None:
    """In UTC it begins an hour earlier in spring and later in autumn than on all days before."""
    berlin = zoneinfo.ZoneInfo("Europe/Berlin")
    nine = dt.datetime.combine(day, dt.time(9), berlin).timestamp()
    times = nine - STEP * np.arange(10 * DAY, -2 * HOURLY, -1)  # until two hours after
    hours = np.array([dt.datetime.fromtimestamp(time, berlin).hour for time in times])
    rates = np.where((hours >= 9) & (hours < 17), 160.0, 60.0)
    values = np.random.default_rng(4).poisson(rates * STEP) / STEP

    def p95(until: float, zone: dt.tzinfo) -> float:
        series = Series(times[0], STEP, values).until(until)
        forecaster = Forecaster(ForecastSettings(zone=zone))
        (outlook,) = forecaster.update({"a": series}, horizons={"a": (HORIZON,)})["a"]
        assert isinstance(outlook, Forecast)
        return outlook.at(0.95)

    at_nine, hour_before = nine - STEP, nine - 3600 - STEP
    assert p95(at_nine, berlin) > 140
    assert p95(hour_before, berlin) < 90
    assert (p95(at_nine, dt.UTC) > 140, p95(hour_before, dt.UTC) < 90) != (True, True)
