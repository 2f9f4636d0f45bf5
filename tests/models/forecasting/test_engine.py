import numpy as np
import pytest

from models.forecasting.engine import Forecaster
from models.forecasting.forecast import Forecast, NotEnoughHistory, Quality
from models.forecasting.settings import ForecastSettings
from models.series import Floats, Series

STEP = 5.0
PERIOD = 300.0
RNG = np.random.default_rng(20)


def hump(times: Floats) -> Floats:
    """Base 10, a ramp from 100 s to 140 s of each period, a plateau of 50 until 220 s, back at 240 s."""
    return 10 + np.interp(times % PERIOD, [0, 100, 140, 220, 240, 300], [0, 0, 40, 40, 0, 0])


def humps(until: float) -> Series:
    times = np.arange(0, until, STEP)
    return Series(0.0, STEP, np.random.default_rng(3).poisson(hump(times) * 4) / 4)


def forecast(series: Series, horizon: float = 40.0, settings: ForecastSettings | None = None) -> Forecast:
    (outlook,) = Forecaster(settings).update({"a": series}, horizons={"a": (horizon,)})["a"]
    assert isinstance(outlook, Forecast)
    return outlook


def test_one_point_is_not_enough_history() -> None:
    result = Forecaster().update({"a": Series(0.0, 30.0, np.array([1.0, np.nan]))}, horizons={"a": (60.0, 120.0)})
    assert result["a"] == (NotEnoughHistory(have=1, need=2),) * 2


@pytest.mark.parametrize(
    ("step", "known", "silent", "have"),
    [
        (3600.0, 100, 191, 1),  # eight days are 192 points
        (3600.0, 100, 192, 0),
        (3600.0, 100, 400, 0),
        (10 * 86400.0, 30, 0, 0),  # not one point in eight days
    ],
)
def test_a_series_silent_for_longer_than_a_forecast_looks_back_has_a_named_reason_and_stops_no_other(
    step: float, known: int, silent: int, have: int
) -> None:
    gone = Series(0.0, step, np.concatenate([np.full(known, 7.0), np.full(silent, np.nan)]))
    alive = Series(0.0, step, np.full(known + silent, 7.0))
    forecaster = Forecaster()
    for _ in range(2):
        result = forecaster.update({"gone": gone, "alive": alive}, horizons={"gone": (60.0,), "alive": (60.0,)})
        assert result["gone"] == (NotEnoughHistory(have=have, need=2),)
        assert isinstance(result["alive"][0], Forecast) == (step < 86400)


@pytest.mark.parametrize("horizon", [0.0, -60.0, float("nan"), float("inf")])
def test_a_horizon_is_a_positive_number_of_seconds(horizon: float) -> None:
    with pytest.raises(ValueError, match=f"horizon is {horizon} s: must be a positive number of seconds"):
        forecast(humps(1500.0), horizon)


def test_two_points_give_a_cold_forecast() -> None:
    outlook = forecast(Series(0.0, 30.0, np.array([4.0, 5.0])), 120.0)
    assert outlook.quality is Quality.COLD
    assert outlook.at(0.95) > 5.0


@pytest.mark.parametrize("offset", [85.0, 95.0])
def test_the_band_rises_ahead_of_a_ramp_that_returns(offset: float) -> None:
    outlook = forecast(humps(9000.0 + offset), settings=ForecastSettings(seasons=(PERIOD,)))
    assert outlook.level < 15
    assert outlook.at(0.95) > hump(np.array([offset + 40.0]))[0] - 3


@pytest.mark.parametrize("offset", [250.0, 280.0])
def test_the_band_is_back_in_the_valley(offset: float) -> None:
    outlook = forecast(humps(9000.0 + offset), settings=ForecastSettings(seasons=(PERIOD,)))
    assert outlook.at(0.95) < 20


def test_a_gap_never_becomes_zero_and_is_said() -> None:
    values = RNG.poisson(50, 600).astype(float)
    values[-40:] = np.nan
    outlook = forecast(Series(0.0, 30.0, values), 120.0)
    assert outlook.quality is Quality.DEGRADED
    assert outlook.at(0.5) > 35


def test_a_series_that_fell_silent_long_ago_keeps_its_last_level() -> None:
    values = np.concatenate([np.full(100, 7.0), np.full(500, np.nan)])
    outlook = forecast(Series(0.0, 60.0, values), 300.0)
    assert outlook.quality is Quality.DEGRADED
    assert outlook.level == pytest.approx(7.0)
    assert outlook.at(0.5) >= 7.0


def test_horizons_keep_their_order_and_their_own_length() -> None:
    forecaster = Forecaster()
    outlooks = forecaster.update({"a": humps(1500.0)}, horizons={"a": (600.0, 40.0, 41.0)})["a"]
    assert [o.horizon for o in outlooks if isinstance(o, Forecast)] == [600.0, 40.0, 41.0]


def test_a_history_with_negative_values_is_read_as_zero_there() -> None:
    values = np.tile([-5.0, 3.0], 50)
    assert forecast(Series(0.0, 60.0, values), 120.0).at(0.99) > 2.9


@pytest.mark.parametrize("seed", [0, 1, 4])
def test_after_a_first_jump_no_band_reaches_further_than_half_as_much_again(seed: int) -> None:
    calm, busy = 480, 60  # 4 h and 30 min
    rates = np.random.default_rng(seed).poisson(np.repeat([4.0, 20.0], [calm, busy]) * 30.0) / 30.0
    jump = np.sqrt(rates.max() + 0.375) - np.sqrt(rates.min() + 0.375)
    forecaster = Forecaster()
    for end in range(calm - 4, calm + busy, 2):
        (outlook,) = forecaster.update({"a": Series(0.0, 30.0, rates[:end])}, horizons={"a": (300.0,)})["a"]
        assert isinstance(outlook, Forecast)
        rise = np.sqrt(outlook.at(0.99)) - np.sqrt(max(outlook.level, rates[end - 1]))
        assert rise <= 1.75 * jump  # a quarter of a jump from the correction
