import dataclasses
import datetime as dt
import zoneinfo
from typing import Any

import numpy as np
import pytest

from models.forecasting.events import Event, raised
from models.forecasting.forecast import Forecast, NotEnoughHistory, Quality
from models.series import Series

HOUR = 3600.0
DAY = 86400.0
HISTORY = Series(0.0, 60.0, np.full(241, 20.0))  # four hours
NOW = 4 * HOUR
FORECAST = Forecast(NOW, 300.0, 20.0, {0.5: 22.0, 0.95: 30.0}, Quality.YOUNG)


def quantiles(*events: Event, history: Series = HISTORY) -> list[float]:
    found = raised(FORECAST, events, history)
    assert isinstance(found, Forecast)
    return list(found.quantiles.values())


def test_an_event_beyond_the_horizon_changes_nothing() -> None:
    assert raised(FORECAST, [Event(start=NOW + 301, duration=HOUR, ratio=5)], HISTORY) is FORECAST
    assert raised(FORECAST, [], HISTORY) is FORECAST


def test_an_event_within_the_horizon_multiplies_the_load_before_it() -> None:
    assert quantiles(Event(start=NOW + 300, duration=HOUR, ratio=5)) == [100.0, 100.0]
    assert quantiles(Event(start=NOW + 300, duration=HOUR, ratio=1.2)) == [24.0, 30.0]


def test_an_event_under_way_multiplies_what_was_before_it_and_not_itself() -> None:
    values = np.concatenate([np.full(211, 20.0), np.full(30, 100.0)])
    assert quantiles(Event(start=3.5 * HOUR, duration=HOUR, ratio=5), history=Series(0.0, 60.0, values))[0] == 100.0


def test_a_value_holds_until_the_event_is_over() -> None:
    assert quantiles(Event(start=NOW - HOUR, duration=HOUR + 1, value=70)) == [70.0, 70.0]
    assert quantiles(Event(start=NOW - HOUR, duration=HOUR, value=70)) == [22.0, 30.0]


def test_an_event_comes_again() -> None:
    assert Event(start=0, duration=600, every=HOUR, value=1).begins(NOW - 60, NOW) == NOW
    assert Event(start=0, duration=600, every=HOUR, value=1).begins(NOW + 60, NOW + 120) == NOW
    assert Event(start=0, duration=600, every=HOUR, value=1).begins(NOW + 700, NOW + 900) is None
    assert Event(start=NOW, duration=600, every=HOUR, value=1).begins(0, HOUR) is None


def test_without_a_known_past_the_level_is_multiplied() -> None:
    empty = Series(0.0, 60.0, np.full(241, np.nan))
    assert quantiles(Event(start=NOW + 60, duration=60, ratio=3), history=empty) == [60.0, 60.0]


def test_an_event_raises_what_there_is_to_be_room_for() -> None:
    steady = dataclasses.replace(FORECAST, steady={0.5: 10.0, 0.95: 60.0})
    found = raised(steady, [Event(start=NOW, duration=60, value=15)], HISTORY)
    assert isinstance(found, Forecast)
    assert (found.quantiles, found.steady) == (FORECAST.quantiles, {0.5: 15.0, 0.95: 60.0})


def test_without_a_forecast_there_is_nothing_to_raise() -> None:
    missing = NotEnoughHistory(1, 2)
    assert raised(missing, [Event(start=NOW, duration=60, value=3)], HISTORY) is missing


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"duration": 0, "value": 1}, "duration"),
        ({"duration": 60, "every": 30, "value": 1}, "every"),
        ({"duration": 60}, "either"),
        ({"duration": 60, "ratio": 2, "value": 1}, "either"),
        ({"duration": 60, "ratio": -1}, "negative"),
    ],
)
def test_nonsense_is_refused_by_name(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Event(start=0.0, **wrong)


def test_an_event_of_every_day_keeps_its_local_time_when_clocks_change() -> None:
    berlin = zoneinfo.ZoneInfo("Europe/Berlin")
    first, changed = (dt.datetime(2026, 3, day, 9, tzinfo=berlin).timestamp() for day in (27, 30))
    assert changed - first == 3 * DAY - HOUR
    event = Event(start=first, duration=HOUR, every=DAY, ratio=2, zone=berlin)
    assert event.begins(changed - 60, changed + 60) == changed
    assert event.begins(changed + HOUR - 1, changed + HOUR) == changed
    assert event.begins(changed + HOUR, changed + HOUR) is None
    back = dt.datetime(2026, 10, 26, 9, tzinfo=berlin).timestamp()
    assert event.begins(back - 60, back) == back
    assert event.begins(first - DAY, first + DAY) == first


def test_what_an_event_decides_is_said() -> None:
    named = dataclasses.replace(FORECAST, experts={0.5: "level", 0.95: "blend"})
    found = raised(named, [Event(start=NOW, duration=HOUR, value=25)], HISTORY)
    assert isinstance(found, Forecast)
    assert found.experts == {0.5: "event", 0.95: "blend"}
