"""What the page is told of forecasts: the band, and the room that is planned for instead where it is."""

import dataclasses

import pytest

from models.forecasting.forecast import Forecast, NotEnoughHistory, Outlook, Quality
from models.signals import Signal
from predictor.board import Entry
from predictor.demo import film, scenario
from predictor.demo.options import DemoOptions
from predictor.demo.stage import Stage
from tests.predictor.telemetry import examples

BAND = {0.5: 4.0, 0.95: 7.0, 0.975: 8.0, 0.99: 9.12345}
SURGES = {0.5: 5.0, 0.95: 15.0, 0.975: 16.04321, 0.99: 20.0}


def entry(steady: dict[float, float], *, quantile: float = 0.975) -> Entry:
    """A target with that forecast of its arrivals over the warm-up; the longer one has room of its own."""
    forecast = Forecast(0.0, 345.0, 4.0, BAND, Quality.SEASONED, steady=steady)
    longer = dataclasses.replace(forecast, horizon=645.0, steady={0.975: 99.0})
    return planned((forecast, longer), quantile=quantile)


def planned(pair: tuple[Outlook, Outlook], *, quantile: float = 0.975) -> Entry:
    objectives = dataclasses.replace(scenario.TARGET.objectives, raise_quantile=quantile)
    known = Entry(dataclasses.replace(scenario.TARGET, objectives=objectives))
    known.plans = dataclasses.replace(examples.PLANS, outlooks={Signal.ARRIVALS: pair})
    return known


@pytest.mark.parametrize("steady", [{}, SURGES])
def test_the_band_is_what_was_forecast_with_room_and_without(steady: dict[float, float]) -> None:
    assert film.band(entry(steady)) == ({"0.5": 4.0, "0.95": 7.0, "0.975": 8.0, "0.99": 9.123}, 345.0)


@pytest.mark.parametrize(("quantile", "room"), [(0.95, 15.0), (0.975, 16.043), (0.99, 20.0)])
def test_room_is_that_of_the_quantile_the_floor_is_raised_for(quantile: float, room: float) -> None:
    assert film.room(entry(SURGES, quantile=quantile)) == room


def test_there_is_none_to_draw_where_the_band_is_planned_for() -> None:
    missing = NotEnoughHistory(have=1, need=2)
    assert film.room(Entry(scenario.TARGET)) is None
    assert film.room(planned((missing, missing))) is None
    assert film.room(entry({})) is None
    assert film.room(entry({0.5: 5.0, 0.975: 8.0 + 1e-12})) is None  # load has outgrown it


def test_a_frame_has_the_room_of_its_moment() -> None:
    stage = Stage(DemoOptions(days=0))
    stage.board.entries[scenario.TARGET.key] = entry(SURGES)
    assert stage._frame().room == 16.043
    stage.board.entries[scenario.TARGET.key] = entry({})
    assert stage._frame().room is None
