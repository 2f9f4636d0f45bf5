"""What the report draws of a forecast, and of the room that is planned for instead."""

import base64
import dataclasses
import json

import numpy as np
import pytest

from models.series import Floats
from predictor.replay import backtest, charts
from tests.predictor.replay import histories
from tests.predictor.replay.histories import HOUR, KEY

QUESTIONS = backtest.Questions({"chat": (300.0,)}, every=600.0, learning=HOUR)
P95 = QUESTIONS.forecast.quantiles.index(0.95)


@pytest.fixture(scope="module")
def followed() -> backtest.Replayed:
    (found,) = backtest.run({KEY: histories.series(histories.daily(0.3))}, QUESTIONS)
    return found


def roomy(one: backtest.Replayed, *, begins: int) -> backtest.Replayed:
    """Twice the forecast is planned for, from an origin on."""
    room = one.bounds.copy()
    room[begins:] *= 2
    return dataclasses.replace(one, room=room)


def curves(one: backtest.Replayed) -> dict[str, dict[str, object]]:
    figure = json.loads(charts.band(one, thin=1, absolute=True))
    return {curve["name"]: curve for curve in figure["data"]}


def test_a_band_that_is_followed_has_no_line_of_room(followed: backtest.Replayed) -> None:
    assert np.isnan(followed.kept).all()
    assert list(curves(followed)) == ["p50", "p80", "p95", "p99", "came", "level"]


def test_room_is_a_dashed_line_from_where_it_is_planned_for(followed: backtest.Replayed) -> None:
    one = roomy(followed, begins=20)
    assert np.isnan(one.kept[:20]).all()
    np.testing.assert_array_equal(one.kept[20:], one.room[20:])
    drawn = curves(one)["room planned for instead of p95"]
    assert drawn["line"] == {"color": charts.GREEN, "width": 1.8, "dash": "dash"}
    room, band = (values(curves(one)[name]) for name in ("room planned for instead of p95", "p95"))
    assert np.isnan(room[:20]).all()
    np.testing.assert_allclose(room[20:], 2 * band[20:], rtol=1e-6)


def test_room_above_the_band_is_within_the_picture(followed: backtest.Replayed) -> None:
    one = roomy(followed, begins=20)
    figure = json.loads(charts.band(one, thin=1, absolute=True))
    assert figure["layout"]["yaxis"]["range"][1] >= np.nanmax(one.room[one.scored_from :, P95])


def values(curve: dict[str, object]) -> Floats:
    """The drawn values, which plotly may write as bytes."""
    y = curve["y"]
    if isinstance(y, dict):
        return np.frombuffer(base64.b64decode(y["bdata"]), dtype=y["dtype"])
    return np.array(y, dtype=float)
