import dataclasses

import pytest

from models.forecasting.forecast import Forecast, Quality


def forecast(quantiles: dict[float, float], horizon: float = 60.0) -> Forecast:
    return Forecast(0.0, horizon, 1.0, quantiles, Quality.COLD)


def test_a_quantile_that_was_not_forecast_is_never_understated() -> None:
    found = forecast({0.5: 1.0, 0.9: 2.0, 0.99: 3.0})
    assert [found.at(q) for q in (0.1, 0.5, 0.6, 0.9, 0.95, 0.999)] == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]


def test_there_is_room_for_what_is_told_and_else_for_the_forecast() -> None:
    found = forecast({0.5: 1.0, 0.9: 2.0, 0.99: 3.0})
    assert found.room(0.9) == 2.0
    steady = dataclasses.replace(found, steady={0.5: 2.0, 0.9: 5.0, 0.99: 6.0})
    assert [steady.room(q) for q in (0.1, 0.9, 0.95, 0.999)] == [2.0, 5.0, 6.0, 6.0]
    assert steady.at(0.9) == 2.0


NONSENSE: list[dict[float, float]] = [{0.0: 1.0}, {1.0: 1.0}, {0.5: -1.0}, {0.5: float("nan")}, {0.5: 2.0, 0.9: 1.0}]


@pytest.mark.parametrize("quantiles", [{}, *NONSENSE])
def test_nonsense_is_no_forecast(quantiles: dict[float, float]) -> None:
    with pytest.raises(ValueError, match="quantiles"):
        forecast(quantiles)


@pytest.mark.parametrize("steady", NONSENSE)
def test_nonsense_is_no_room_to_plan_for(steady: dict[float, float]) -> None:
    with pytest.raises(ValueError, match="steady"):
        dataclasses.replace(forecast({0.5: 1.0}), steady=steady)


def test_a_horizon_is_positive() -> None:
    with pytest.raises(ValueError, match="horizon"):
        forecast({0.5: 1.0}, horizon=0.0)
